"""Everything that makes a run: stream, method, seed, settings, machine. Written to and read from settings.toml."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ordisco.errors import OrdiscoError, UsageError, shown
from ordisco.runs.presets import changed, preset, preset_learner, preset_of, preset_stream, preset_threads
from ordisco.settings.fields import MOST_SEED, Settings, fault_of_path, fault_of_text
from ordisco.settings.learner import GROUPS, LearnerSettings
from ordisco.settings.machine import MachineSettings
from ordisco.settings.methods import method
from ordisco.streams.catalogue import check_dataset, short_name, stream_settings
from ordisco.streams.settings import DATASETS, StreamSettings

DEMO_STREAM = "digits-5-new-class"


@dataclass(frozen=True)
class RunConfig:
    """One run of one method on one stream with one seed."""

    stream_name: str
    stream: StreamSettings
    method: str
    preset: str
    seed: int = 0
    machine: MachineSettings = field(default_factory=MachineSettings)
    learner: LearnerSettings = field(default_factory=LearnerSettings)

    def __post_init__(self) -> None:
        method(self.method)
        preset(self.preset)
        if not isinstance(self.stream_name, str) or fault_of_text(self.stream_name):
            raise UsageError(
                f"stream_name = {shown(self.stream_name)} is not allowed: a text without control characters"
            )
        if type(self.seed) is not int or not 0 <= self.seed <= MOST_SEED:
            raise UsageError(f"seed = {shown(self.seed)} is not allowed: from 0 to {MOST_SEED}")

    @staticmethod
    def resolve(
        stream: str = DEMO_STREAM,
        method: str = "ordisco",
        preset: str | None = None,
        seed: int = 0,
        *,
        runs_at_once: int = 1,
        **changes: Any,
    ) -> RunConfig:
        """The configuration of a run: the stream by name or path, the preset, and what is changed.

        `changes` are fields of the stream's, the learner's and the machine's settings by their names. Without a
        preset, the digits take `demo` and all else `small`. Threads are shared by `runs_at_once` runs.

        >>> RunConfig.resolve("svhn-1", steps=10, seed=2).learner.step.steps
        10
        """
        for name in changes:
            if name not in FIELDS:
                raise UsageError(f"{shown(name)} is no setting of a run (see `ordisco run --help`)")
        named = stream_settings(stream)
        chosen = preset_of(named) if preset is None else preset
        arriving = dataclasses.replace(preset_stream(chosen, named), **only(changes, StreamSettings))
        check_dataset(arriving.dataset)
        if arriving.dataset not in DATASETS:  # a path: `resume` may be called from elsewhere
            arriving = dataclasses.replace(arriving, dataset=str(Path(arriving.dataset).expanduser().resolve()))
        machine = MachineSettings(**{"threads": preset_threads(chosen, runs_at_once), **only(changes, MachineSettings)})
        learner = changed(preset_learner(chosen, arriving), only(changes, *GROUPS))
        return RunConfig(short_name(stream), arriving, method, chosen, seed, with_real_paths(machine), learner)

    def to_dict(self) -> dict[str, Any]:
        """Nested plain values for TOML."""
        return {
            "method": self.method,
            "preset": self.preset,
            "seed": self.seed,
            "stream_name": self.stream_name,
            "stream": dataclasses.asdict(self.stream),
            "machine": dataclasses.asdict(self.machine),
            "learner": self.learner.to_dict(),
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> RunConfig:
        """Read back what `to_dict` gave."""
        try:
            return RunConfig(
                stream_name=values["stream_name"],
                stream=StreamSettings(**values["stream"]),
                method=values["method"],
                preset=values["preset"],
                seed=values["seed"],
                machine=MachineSettings(**values["machine"]),
                learner=LearnerSettings.from_dict(values["learner"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise OrdiscoError(f"these are not the settings of a run of this version ({error})") from error


# every setting of a run by its name, and the group it belongs to
FIELDS: dict[str, type[Settings]] = {
    field.name: group
    for group in (StreamSettings, *GROUPS, MachineSettings)
    for field in dataclasses.fields(group)
    if field.metadata
}
PATHS = ("data_dir", "judge")


def only(changes: Mapping[str, Any], *groups: type[Settings]) -> dict[str, Any]:
    """The changes that are fields of these groups."""
    return {name: value for name, value in changes.items() if FIELDS.get(name) in groups}


def with_real_paths(machine: MachineSettings) -> MachineSettings:
    """The settings with paths as they are from anywhere; what can name no file is refused."""
    for name in PATHS:
        path = getattr(machine, name)
        if path is not None and (fault := fault_of_path(path)):
            raise UsageError(f"{name} = {shown(path)} is not allowed: {fault}")
    data_dir, judge = (None if path is None else os.path.realpath(path) for path in (machine.data_dir, machine.judge))
    return dataclasses.replace(machine, data_dir=data_dir, judge=judge)

"""What a model is, apart from what it has learned: model.toml."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from typing import Any, Literal

import tomli_w

from ordisco import files
from ordisco.errors import OrdiscoError, UsageError, shown
from ordisco.learner.checks import SIDES, check_image_shape
from ordisco.runs.directory import without_none
from ordisco.settings.fields import MOST_SEED
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.methods import method

FORMAT = 1
HEAD = "# Written by ordisco; each of versions/ holds its own copy, which is what counts.\n"
Labels = Literal["text", "number"]


@dataclass(frozen=True)
class About:
    """The kind of images, the classes by name in the order they came, method and settings.

    `side`, `channels` and `settings` are None until the first delivery decides on them.
    """

    method: str = "ordisco"
    seed: int = 0
    side: int | None = None
    channels: int | None = None
    flip: bool = False  # a mirrored image keeps its class
    holdout: float = 0.0  # share of the labelled images that is set aside
    labels: Labels = "text"  # are classes named by texts or by whole numbers?
    classes: tuple[str, ...] = ()
    settings: LearnerSettings | None = None

    def __post_init__(self) -> None:
        method(self.method)
        if self.side is not None and self.side not in SIDES:
            raise UsageError(f"side = {shown(self.side)} is not allowed: {', '.join(str(side) for side in SIDES)}")
        if self.channels not in (None, 1, 3):
            raise UsageError(f"channels = {shown(self.channels)} is not allowed: 1 (grey) or 3 (colour)")
        if type(self.seed) is not int or not 0 <= self.seed <= MOST_SEED:
            raise UsageError(f"seed = {shown(self.seed)} is not allowed: from 0 to {MOST_SEED}")
        if not isinstance(self.holdout, int | float) or not 0 <= self.holdout <= 0.9:
            raise UsageError(f"holdout = {shown(self.holdout)} is not allowed: a share from 0 to 0.9")

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width, once they are known."""
        if self.side is None or self.channels is None:
            raise OrdiscoError("the model has learned nothing yet: learn a first delivery")
        check_image_shape((self.channels, self.side, self.side))
        return self.channels, self.side, self.side

    def to_dict(self) -> dict[str, Any]:
        """Plain values for TOML and JSON."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        settings = None if self.settings is None else self.settings.to_dict()
        plain = {"format": FORMAT, **fields, "classes": list(self.classes), "settings": settings}
        return dict(without_none(plain))

    @staticmethod
    def from_dict(values: Any) -> About:
        """Read back what `to_dict` gave; a newer format is refused."""
        if not isinstance(values, dict) or type(values.get("format")) is not int:
            raise OrdiscoError("this describes no model: it has no format")
        if values["format"] > FORMAT:
            raise OrdiscoError(
                f"its format is {values['format']}, this version of ordisco reads {FORMAT}: use a newer ordisco"
            )
        fields = {name: value for name, value in values.items() if name != "format"}
        try:
            if isinstance(settings := fields.get("settings"), dict):
                fields["settings"] = LearnerSettings.from_dict(settings)
            classes = fields.pop("classes", [])
            if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
                raise OrdiscoError(f"classes = {shown(classes)} is not allowed: a list of names")
            if len(set(classes)) < len(classes):
                raise OrdiscoError("classes has a name twice")
            return About(**fields, classes=tuple(classes))
        except (TypeError, AttributeError, ValueError) as error:
            raise OrdiscoError(f"this describes no model ({error})") from error

    def to_toml(self) -> bytes:
        """The bytes of model.toml."""
        return files.text_bytes(HEAD + tomli_w.dumps(self.to_dict()))

    @staticmethod
    def from_toml(data: bytes) -> About:
        """Read them back."""
        try:
            return About.from_dict(tomllib.loads(files.text_of(data)))
        except (ValueError, RecursionError) as error:
            raise OrdiscoError(f"not valid TOML: {error}") from error

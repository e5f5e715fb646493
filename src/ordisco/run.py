"""A run: learn a stream, evaluate after each increment, survive a crash at any moment.

Whatever a step draws depends only on the seed and its number, so a checkpoint needs no random state and the
resumed run is, on a CPU, bit for bit the run that was never interrupted.
"""

from __future__ import annotations

import resource
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ordisco import checkpoint
from ordisco.config import RunConfig
from ordisco.errors import OrdiscoError
from ordisco.evaluation import assess, evaluate, generated_accuracy, pseudo_label_accuracy
from ordisco.learner import TRACE, Learner, NonFiniteError
from ordisco.methods import method
from ordisco.outcome import draw_samples, write_summary
from ordisco.progress import Display
from ordisco.rundir import RunDirectory
from ordisco.stream import Stream

SHOW_SECONDS = 0.2  # between two updates of the display
QUICK_LOOK = 1_000  # test images when --max-steps ends a run early


class Interrupted(OrdiscoError):
    """The run was asked to stop; its state is saved."""

    exit_code = 130


class Run:
    """One learner on one stream, with its directory."""

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        stream: Stream,
        learner: Learner,
        display: Display,
        judge: Learner | None = None,
    ) -> None:
        self.config, self.directory, self.stream = config, directory, stream
        self.learner, self.display = learner, display
        self.judge = judge
        self.seconds = 0.0  # of training before this process
        self.started = self.saved_at = self.shown_at = time.monotonic()
        self.shown_steps = learner.total_steps
        self.seconds_before_increment = 0.0
        self.stop_signal: str | None = None

    @property
    def chief(self) -> bool:
        """Only the first process of a data-parallel run writes and speaks."""
        return self.learner.fabric.is_global_zero

    @property
    def finished(self) -> bool:
        """Are all increments learned and the summary written?"""
        return self.learner.increments == len(self.stream) and self.directory.summary_json.exists()

    # ------------------------------------------------------------------ the loop

    def go(self, max_steps: int | None = None) -> None:
        """Learn what is left of the stream."""
        learner, stream = self.learner, self.stream
        if self.chief:
            self.display.start(
                f"{method(self.config.method).title} on {stream.name}, seed {self.config.seed}",
                len(stream),
                learner.settings.step.steps,
                learner.total_steps,
            )
        with self.stopping_on_signals(), learner.random("run"):
            for index in range(learner.increments, len(stream)):
                if learner.step_in_increment == 0:
                    learner.begin(stream[index])
                while not learner.done:
                    if max_steps is not None and learner.total_steps >= max_steps:
                        self.quick_look(max_steps)
                        return
                    learner.step()
                    self.between_steps()
                learner.finish()
                self.close_increment(index)
        if self.chief:
            write_summary(self.directory, self.config, stream, learner)

    def between_steps(self) -> None:
        """Record, check, show, save and stop, each when it is time."""
        learner = self.learner
        record = learner.step_in_increment % TRACE == 0 or learner.done
        if record:
            self.check_finite()
        now = time.monotonic()
        if record and self.chief:
            losses = {name: value for name, value in learner.mean_losses().items() if value}
            place = {"increment": learner.increments + 1, "step": learner.step_in_increment}
            self.directory.append_metrics({"kind": "step", **place, **losses})
            learner.fabric.log_dict({f"loss/{name}": value for name, value in losses.items()}, learner.total_steps)
        if self.chief and record and now - self.shown_at > SHOW_SECONDS:
            self.show(now)
        if self.stop_signal is not None:
            self.save()
            raise Interrupted(
                f"stopped by {self.stop_signal}, all is saved; go on with: ordisco resume {self.directory.path}"
            )
        if now - self.saved_at > self.config.machine.checkpoint_seconds and not learner.done:
            self.save()

    def close_increment(self, index: int) -> None:
        """Evaluate, record, draw samples, save."""
        learner, stream = self.learner, self.stream
        if self.chief:
            evaluation = assess(learner, stream.test_after(index), stream.num_classes)
            kept = learner.bytes_kept()
            hidden = learner.increment.labels < 0
            record = {
                "kind": "increment",
                "increment": index + 1,
                "classes_seen": len(learner.classes),
                "images": len(learner.increment),
                "labeled": int((~hidden).sum()),
                "accuracy": evaluation.accuracy,
                "per_class": {stream.dataset.classes[label]: acc for label, acc in evaluation.per_class.items()},
                "pseudo_label_accuracy": pseudo_label_accuracy(
                    learner, learner.increment.images[hidden], stream.truth(index)[hidden]
                ),
                "generated_accuracy": None if self.judge is None else generated_accuracy(learner, self.judge),
                "confusion": evaluation.confusion.tolist(),
                "seconds": round(self.elapsed() - self.seconds_before_increment, 3),
                "total_seconds": round(self.elapsed(), 3),
                "peak_memory_bytes": peak_memory(learner.device),
                "kept_bytes": sum(kept.values()),
                "kept": kept,
            }
            self.directory.append_metrics(record)
            learner.fabric.log_dict({"accuracy": evaluation.accuracy}, learner.total_steps)
            draw_samples(self.directory, learner, stream, index)
            self.display.increment_done(index + 1, evaluation.accuracy, record)
        self.seconds_before_increment = self.elapsed()
        self.save()

    def quick_look(self, max_steps: int) -> None:
        """--max-steps is reached: save, say how good C′ is by now on a few test images, and how to go on."""
        self.save()
        if self.chief:
            test = self.stream.test_after(self.learner.increments)
            few = torch.randperm(len(test), generator=torch.Generator().manual_seed(0))[:QUICK_LOOK]
            accuracy = evaluate(self.learner, test[few])
            self.display.message(
                f"stopped after {max_steps} steps as asked: accuracy {accuracy:.1%} on {len(few):,} test images; "
                f"go on with: ordisco resume {self.directory.path}"
            )

    # ------------------------------------------------------------------ state

    def save(self) -> None:
        """Write a checkpoint: all tensors, and where the run is."""
        self.saved_at = time.monotonic()
        if not self.chief:
            return
        self.check_finite()
        tensors, state = self.learner.state()
        progress = {
            "metrics_size": self.directory.metrics_size(),
            "seconds": self.elapsed(),
            "seconds_before_increment": self.seconds_before_increment,
            "image_shape": list(self.learner.image_shape),
        }
        checkpoint.save(self.directory.checkpoints, self.learner.total_steps, tensors, {"learner": state, **progress})
        self.saved_at = time.monotonic()

    def restore(self) -> None:
        """Go back to the last whole checkpoint; a run killed before its first one begins anew."""
        if not any(self.directory.checkpoints.glob("step-*")):
            if self.chief:
                self.directory.truncate_metrics(0)
            return
        loaded = checkpoint.load_latest(self.directory.checkpoints)
        for line in loaded.skipped if self.chief else ():
            self.display.message(line)
        state = loaded.state["learner"]
        under_way = self.stream[state["increments"]] if state["step_in_increment"] else None
        self.learner.load(loaded.tensors, state, under_way)
        self.seconds = loaded.state["seconds"]
        self.seconds_before_increment = loaded.state["seconds_before_increment"]
        self.shown_steps = self.learner.total_steps
        if self.chief:
            self.directory.truncate_metrics(loaded.state["metrics_size"])

    def elapsed(self) -> float:
        """Seconds of training, those before an interruption included."""
        return self.seconds + time.monotonic() - self.started

    def check_finite(self) -> None:
        """A loss that is not finite ends the run, with the way back to the last good state."""
        try:
            self.learner.check_finite()
        except NonFiniteError as error:
            last = sorted(self.directory.checkpoints.glob("step-*"))
            where = f"the last good checkpoint is {last[-1]}" if last else "there was no checkpoint yet"
            raise NonFiniteError(f"{error}; {where}") from None

    # ------------------------------------------------------------------ the outside

    def show(self, now: float) -> None:
        """Tell the display how far we are."""
        sizes, learner = self.learner.settings.step, self.learner
        images = sizes.batch_labeled + sizes.batch_unlabeled + (sizes.batch_generated if learner.nets.G else 0)
        steps = learner.total_steps - self.shown_steps
        rate = steps * images * learner.fabric.world_size / (now - self.shown_at)
        self.shown_steps, self.shown_at = learner.total_steps, now
        losses = {name: value for name, value in learner.mean_losses().items() if value}
        self.display.step(learner.increments + 1, learner.step_in_increment, losses, rate)

    @contextmanager
    def stopping_on_signals(self) -> Iterator[None]:
        """Ctrl-C and a cluster's SIGTERM end the run after the step under way, saved."""

        def note(number: int, frame: object) -> None:
            if self.stop_signal is not None:  # asked twice: at once
                raise KeyboardInterrupt
            self.stop_signal = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name

        try:
            old: dict[int, Any] = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not in the main thread: the caller handles signals
            old = {}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)


def peak_memory(device: torch.device) -> int:
    """The most memory that this process has held: on the GPU if it uses one, else in RAM."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

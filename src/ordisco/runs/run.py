"""A run: learn a stream, evaluate after each increment, survive a crash at any moment.

Whatever a step draws depends only on the seed and its number, so a checkpoint needs no random state and the
resumed run is, on a CPU, bit for bit the run that was never interrupted.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ordisco.errors import OrdiscoError
from ordisco.evaluation.accuracy import PseudoLabels, assess, generated_accuracy
from ordisco.evaluation.record import IncrementRecord, Look
from ordisco.learner.learner import Learner, NonFiniteError
from ordisco.learner.state import TRACE
from ordisco.machine.group import ALONE
from ordisco.machine.memory import peak_memory, reset_peak_memory
from ordisco.report.terminal import Display
from ordisco.runs import checkpoint
from ordisco.runs.clock import Clock
from ordisco.runs.config import RunConfig
from ordisco.runs.directory import RunDirectory, resume_command, without_none
from ordisco.runs.looks import a_few, look
from ordisco.runs.place import fits_run
from ordisco.runs.signals import Interrupted, StopRequest
from ordisco.runs.summary import draw_samples, write_summary
from ordisco.settings.methods import method
from ordisco.streams.stream import Increment, Stream
from ordisco.words import percent

if TYPE_CHECKING:
    from lightning_fabric.loggers.logger import Logger

SHOW_SECONDS, SLOW_SECONDS = 0.2, 2.0  # between two updates of the display, where steps are quick or slow


class Run:
    """One learner on one stream, with its directory.

    In a data-parallel run every process has one; all take the same decisions, and only the first, the chief,
    writes and speaks.
    """

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        stream: Stream,
        learner: Learner,
        display: Display,
        judge: Learner | None = None,
        logger: Logger | None = None,
    ) -> None:
        self.config, self.directory, self.stream = config, directory, stream
        self.learner, self.display = learner, display
        self.judge, self.logger = judge, logger
        self.go_on = f"go on with: {resume_command(directory.path)}"
        self.clock = Clock()
        self.saved_at = self.shown_at = time.monotonic()
        self.shown_steps = learner.total_steps
        self.seconds_before_increment = 0.0
        self.saved_place: tuple[int, int] | None = None  # increments and steps done at the last checkpoint
        self.stop = StopRequest()

    @property
    def chief(self) -> bool:
        """Only the first process of a data-parallel run writes and speaks."""
        return self.learner.fabric.is_global_zero

    # ------------------------------------------------------------------ the loop

    def go(self, max_steps: int | None = None) -> bool:
        """Learn what is left of the stream; False if `max_steps` ended it before."""
        reset_peak_memory(self.learner.device)
        try:
            with self.stop, self.learner.random("run"):
                self.start_display()
                if not self.learn(max_steps):
                    return False
                if self.chief:
                    write_summary(self.directory, self.config, self.stream, self.learner)
                    self.directory.check_still_there()
                return True
        except KeyboardInterrupt:
            raise Interrupted(f"stopped at once, without a checkpoint of this moment; {self.go_on}") from None
        except OrdiscoError as error:
            if isinstance(error.__cause__, OSError):
                raise OrdiscoError(f"{error}; when that is put right, {self.go_on}") from error.__cause__
            raise

    def learn(self, max_steps: int | None) -> bool:
        """The steps that are left, increment by increment."""
        learner, stream = self.learner, self.stream
        for index in range(learner.increments, len(stream)):
            if learner.step_in_increment == 0:
                learner.begin(self.arriving(index))
            while not learner.done:
                if max_steps is not None and learner.total_steps >= max_steps:
                    self.save()
                    self.quick_look()
                    return False
                learner.step()
                self.between_steps()
            measures = learner.mean_measures()
            learner.finish()
            self.close_increment(index, measures.get("penalty_ratio") or None)
        return True

    def arriving(self, index: int) -> Increment:
        """An increment of the stream, or this process's share of it."""
        group = self.learner.setup.group
        return self.stream.share(index, group.rank, group.size) if self.learner.takes_shares else self.stream[index]

    def between_steps(self) -> None:
        """Record, check, show, save and stop, each when it is time."""
        learner, now = self.learner, time.monotonic()
        stop, save = self.agree(now - self.saved_at > self.config.machine.checkpoint_seconds and not learner.done)
        record = learner.step_in_increment % TRACE == 0 or learner.done
        if record:
            self.check_finite()
            if self.chief:
                self.record_step()
        if self.chief and now - self.shown_at > (SHOW_SECONDS if record else SLOW_SECONDS):
            self.show(now)
        every = self.config.machine.evaluate_every
        if every is not None and learner.step_in_increment % every == 0 and not learner.done:
            self.look()
        if stop or save:
            self.save()
        if stop:
            raise Interrupted(f"stopped by {self.stop.reason or 'a signal'}, all is saved; {self.go_on}")

    def agree(self, save: bool) -> tuple[bool, bool]:
        """Whether to stop and whether to save: in a data-parallel run, the same in all processes.

        On the way their losses are averaged, so that one that is not finite is seen by all.
        """
        stop = self.stop.reason is not None
        if self.learner.fabric.world_size == 1:
            return stop, save
        losses = self.learner.state.trace[(self.learner.step_in_increment - 1) % TRACE]
        mine = torch.cat([losses, losses.new_tensor([stop, save and self.chief])])
        shared = self.learner.setup.averaged(mine)
        losses.copy_(shared[:-2])
        return bool(shared[-2] > 0), bool(shared[-1] > 0)

    def asked_to_stop(self) -> bool:
        """Has any process been asked to stop?"""
        stop, fabric = self.stop.reason is not None, self.learner.fabric
        return stop if fabric.world_size == 1 else fabric.strategy.reduce_boolean_decision(stop, all=False)

    def close_increment(self, index: int, ratio: float | None) -> None:
        """Evaluate, record, draw samples, save; `ratio` is the penalty's gradient over that of the loss."""
        learner, stream = self.learner, self.stream
        increment, group = self.arriving(index), learner.setup.group if learner.takes_shares else ALONE
        hidden = increment.labels < 0
        images, truth = increment.images[hidden], stream.truth(index, group.rank, group.size)[hidden]
        pseudo = PseudoLabels.of(learner, images, truth, group) if self.chief or group.size > 1 else PseudoLabels()
        evaluation = None
        if self.chief:
            evaluation = assess(learner, stream.dataset.test, stream.num_classes, stream.test_rows(index))
        seconds, cpu_seconds = self.clock.seconds(), self.cpu_seconds()
        if evaluation is not None:
            kept = learner.bytes_kept()
            record = IncrementRecord(
                increment=index + 1,
                classes_seen=len(learner.classes),
                images=increment.size,
                labeled=int((~hidden).sum()),
                accuracy=evaluation.accuracy,
                per_class={stream.dataset.classes[label]: acc for label, acc in evaluation.per_class.items()},
                pseudo_label_accuracy=pseudo.accuracy,
                trusted_share=pseudo.trusted_share,
                trusted_accuracy=pseudo.trusted_accuracy,
                penalty_ratio=ratio,
                generated_accuracy=None if self.judge is None else generated_accuracy(learner, self.judge),
                confusion=evaluation.confusion.tolist(),
                seconds=round(seconds - self.seconds_before_increment, 3),
                total_seconds=round(seconds, 3),
                peak_memory_bytes=peak_memory(learner.device),
                kept_bytes=sum(kept.values()),
                kept=kept,
                total_cpu_seconds=cpu_seconds,
            )
            self.directory.metrics.append(record.to_dict())
            self.log(record.shares)
            draw_samples(self.directory, learner, stream, index)
            self.display.increment_done(record)
        self.seconds_before_increment = self.clock.seconds()
        self.save()
        self.shown_steps, self.shown_at = learner.total_steps, time.monotonic()

    def look(self) -> None:
        """How good is C′ by now? Recorded; no number of the run depends on it."""
        learner, cpu_seconds = self.learner, self.cpu_seconds()
        with self.clock.stopped():
            accuracy = look(learner, self.stream.dataset.test, self.stream.test_rows(learner.increments))
            if accuracy is not None:
                place = learner.increments + 1, learner.step_in_increment
                self.directory.metrics.append(Look(*place, accuracy, cpu_seconds).to_dict())

    def quick_look(self) -> None:
        """--max-steps is reached: how good is C′ by now on a few test images?"""
        rows = a_few(self.stream.test_rows(self.learner.increments))
        accuracy, steps = look(self.learner, self.stream.dataset.test, rows), self.learner.total_steps
        if accuracy is not None:
            self.display.message(
                f"stopped after {steps:,} step{'s' if steps != 1 else ''} as asked: "
                f"accuracy {percent(accuracy)} on {len(rows):,} test images"
            )

    # ------------------------------------------------------------------ state

    def save(self) -> None:
        """Write a checkpoint: all tensors, and where the run is; nothing where that is saved already."""
        place = (self.learner.increments, self.learner.total_steps)
        if place == self.saved_place:
            return
        tensors, state = self.learner.saved()
        self.check_finite(tensors)
        cpu_seconds = self.cpu_seconds()
        if self.chief:
            self.directory.check_still_there()
            progress = {
                **self.directory.metrics.mark(),
                "seconds": self.clock.seconds(),
                "cpu_seconds": cpu_seconds,
                "seconds_before_increment": self.seconds_before_increment,
                "image_shape": list(self.learner.image_shape),
                "settings": without_none(self.config.to_dict()),
            }
            checkpoint.save(
                self.directory.checkpoints, self.learner.total_steps, tensors, {"learner": state, **progress}
            )
        self.saved_at, self.saved_place = time.monotonic(), place

    def restore(self) -> None:
        """Go back to the last whole checkpoint; a run killed before its first one begins anew."""
        if checkpoint.newest(self.directory.checkpoints) is None:
            if self.chief:
                self.directory.metrics.truncate(0)
            return
        loaded = checkpoint.load_latest(
            self.directory.checkpoints, fits_run(self.config, self.stream, self.learner.state.nets)
        )
        for line in loaded.skipped:
            self.display.message(line)
        state = loaded.state["learner"]
        under_way = self.arriving(state["increments"]) if state["step_in_increment"] else None
        try:
            self.learner.load(loaded.tensors, state, under_way)
        except OrdiscoError as error:
            raise OrdiscoError(f"checkpoint {loaded.path} does not fit: {error}") from error
        self.clock.go_on(loaded.state)
        self.seconds_before_increment = loaded.state["seconds_before_increment"]
        self.shown_steps = self.learner.total_steps
        if self.chief:
            self.directory.metrics.truncate(loaded.state["metrics_size"], loaded.state.get("metrics_sha256"))

    def cpu_seconds(self) -> float | None:
        """Of all processes, which all have to ask; None where an older version has begun the run."""
        spent = self.clock.cpu_seconds(self.learner.setup.group, self.learner.device)
        return None if spent is None else round(spent, 3)

    def check_finite(self, tensors: dict[str, Tensor] | None = None) -> None:
        """A loss or a weight that is not finite ends the run; the last good state stays."""
        learner = self.learner
        try:
            learner.check_finite()
            for name, tensor in (tensors or {}).items():
                if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                    raise NonFiniteError(
                        f"{name} is not finite after step {learner.step_in_increment} of increment "
                        f"{learner.increments + 1}, though the losses were: lower the learning rate"
                    )
        except NonFiniteError as error:
            last = checkpoint.newest(self.directory.checkpoints)
            where = f"the last good checkpoint is {last}" if last else "there was no checkpoint yet"
            raise NonFiniteError(f"{error}; {where}") from None

    # ------------------------------------------------------------------ the outside

    def start_display(self) -> None:
        """Say what is to be done; offline replay takes more steps in later increments."""
        learner, increments = self.learner, len(self.stream)
        self.display.start(
            f"{method(self.config.method).title} on {self.stream.name}, seed {self.config.seed}",
            increments,
            [learner.setup.steps_of(index, images) for index, images in enumerate(self.stream.sizes)],
            learner.total_steps,
        )

    def show(self, now: float) -> None:
        """Tell the display how far we are."""
        sizes, learner = self.learner.settings.step, self.learner
        images = sizes.batch_labeled + sizes.batch_unlabeled + (sizes.batch_generated if learner.has_generator else 0)
        steps = learner.total_steps - self.shown_steps
        rate = steps * images / (now - self.shown_at)
        self.shown_steps, self.shown_at = learner.total_steps, now
        self.display.step(learner.increments + 1, learner.step_in_increment, self.losses(), rate)

    def losses(self) -> dict[str, float]:
        """The mean of each loss term over the last steps; those that a method lacks are left out."""
        return {name: value for name, value in self.learner.mean_losses().items() if value}

    def record_step(self) -> None:
        """Append the losses to metrics.jsonl."""
        losses, learner = self.losses(), self.learner
        place = {"increment": learner.increments + 1, "step": learner.step_in_increment}
        measures = {name: value for name, value in learner.mean_measures().items() if value}
        self.directory.metrics.append({"kind": "step", **place, **losses, **measures})
        self.log({f"loss/{name}": value for name, value in losses.items()})

    def log(self, values: dict[str, float]) -> None:
        """To TensorBoard, where it is wanted."""
        if self.logger is not None:
            try:
                self.logger.log_metrics(values, self.learner.total_steps)
            except (OSError, ValueError) as error:  # which it makes of any error
                raise OrdiscoError(f"cannot log to TensorBoard: {error.__cause__ or error}") from error.__cause__

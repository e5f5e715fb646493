"""One delivery learned: planned and measured before, trained on, measured after."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import torch
from torch import Tensor

from ordisco.data.dataset import UNLABELED, Split, folded
from ordisco.errors import OrdiscoError, UsageError, shown
from ordisco.machine.fabric import Fabric
from ordisco.model import measures
from ordisco.model.about import About, Labels
from ordisco.model.automatic import settings_for, steps_for
from ordisco.model.delivery import Delivery
from ordisco.model.knowledge import Knowledge, copied
from ordisco.model.training import train
from ordisco.model.work import Work
from ordisco.report.terminal import Display
from ordisco.streams.stream import Increment
from ordisco.words import counted, duration, percent, some_of

MOST_STEPS, MOST_MINUTES = 10**9, 10**6
TRIAL_STEPS, TRIAL_SECONDS = 3, 2.0  # timed, before a budget of minutes becomes a number of steps
NAMES_SHOWN = 12


@dataclass(frozen=True)
class Options:
    """What can be asked of a delivery."""

    steps: int | None = None
    minutes: float | None = None
    again: bool = False

    def __post_init__(self) -> None:
        if self.steps is not None and not 1 <= self.steps <= MOST_STEPS:
            raise UsageError(f"steps = {shown(self.steps)} is not allowed: from 1 to {MOST_STEPS}")
        if self.minutes is not None and not 0 < self.minutes <= MOST_MINUTES:
            raise UsageError(f"minutes = {shown(self.minutes)} is not allowed: above 0, up to {MOST_MINUTES}")
        if self.steps is not None and self.minutes is not None:
            raise UsageError("give steps or minutes, not both")


@dataclass(frozen=True)
class Plan:
    """What was decided and measured before learning, so that going on decides nothing anew."""

    about: About  # with the classes of the delivery
    steps: int
    record: dict[str, Any]  # the line of the history as far as it is known

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"about": self.about.to_dict(), "steps": self.steps, "record": self.record}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Plan | None:
        """Read back; None where it is no plan."""
        try:
            steps, record = values["steps"], values["record"]
            if type(steps) is not int or not isinstance(record, dict):
                return None
            return Plan(About.from_dict(values["about"]), steps, record)
        except (KeyError, TypeError, OrdiscoError):
            return None


# ---------------------------------------------------------------------- before


def make_plan(knowledge: Knowledge, delivery: Delivery, options: Options, fabric: Fabric) -> Plan:
    """Decide on classes, settings and steps; measure what has to be measured before anything is learned."""
    refuse_twice(knowledge, delivery, options.again)
    about = with_classes(knowledge.about, delivery)
    if about.settings is None and about.side is not None:
        about = dataclasses.replace(about, settings=settings_for(about.side))
    labels = labels_in(about, delivery)
    learned, given = delivery.learned, int((labels[: delivery.learned] >= 0).sum())
    if knowledge.learner is None and not given:
        raise OrdiscoError(f"{delivery.source}: the first delivery has no labelled image to learn from: label a few")
    increment = increment_of(about, delivery)
    assert about.side is not None
    assert about.settings is not None
    steps = options.steps or steps_for(about.side, about.settings, learned)
    if options.minutes is not None:
        steps = steps_within(knowledge, about, increment, options.minutes * 60, fabric)
    before = shift = None
    if knowledge.learner is not None:
        part = slice(0, given)
        known = knowledge.learner
        before = measures.before_learning(known, delivery.images[part], labels[part], about.classes)
        usual = next((past["distance"] for past in reversed(knowledge.history) if past["distance"] is not None), None)
        shift = measures.compared(measures.shift_from_the_past(known, delivery.images[given:learned]), usual)
    counts = torch.bincount(labels[labels >= 0], minlength=len(about.classes)).tolist()
    record = {
        "delivery": knowledge.deliveries + 1,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": delivery.source,
        "fingerprint": delivery.fingerprint,
        "images": len(delivery),
        "labeled": given,
        "unlabeled": learned - given,
        "held_out": delivery.held,
        "labels_per_class": {name: count for name, count in zip(about.classes, counts, strict=True) if count},
        "new_classes": list(about.classes[len(knowledge.about.classes) :]),
        "classes": len(about.classes),
        "steps": steps,
        "before": before,
        "shift": shift,
    }
    return Plan(about, steps, record)


def refuse_twice(knowledge: Knowledge, delivery: Delivery, again: bool) -> None:
    """A delivery whose content was learned before is refused, unless it is to be learned again."""
    for past in knowledge.history:
        if past.get("fingerprint") == delivery.fingerprint and not again:
            raise OrdiscoError(
                f"{delivery.source} has been learned already, as delivery {past['delivery']} ({past['source']}): "
                "give --again (again=True) to learn it once more"
            )


def with_classes(about: About, delivery: Delivery) -> About:
    """The model's classes with those that are new in the delivery, in its order."""
    kind: Labels = about.labels
    if delivery.kind is not None:
        if not about.classes:
            kind = delivery.kind
        elif kind == "number" and not all(name.isdecimal() for name in delivery.names):
            raise OrdiscoError(
                f"{delivery.source}: the model's classes are numbers, not texts as {delivery.names[0]!r}"
            )
    known = {folded(name): name for name in about.classes}
    for name in delivery.names:
        if (other := known.setdefault(folded(name), name)) != name:
            raise OrdiscoError(
                f"{delivery.source}: the class {name!a} and {other!a} of the model differ only in case, spaces or "
                "Unicode form; give them one name"
            )
    new = tuple(name for name in delivery.names if name not in about.classes)
    return dataclasses.replace(about, classes=about.classes + new, labels=kind)


def labels_in(about: About, delivery: Delivery) -> Tensor:
    """The delivery's labels as positions in the model's classes."""
    table = torch.tensor([*(about.classes.index(name) for name in delivery.names), UNLABELED])
    return table[delivery.labels]


def increment_of(about: About, delivery: Delivery) -> Increment:
    """What is learned from; views, without a copy of the images."""
    return Increment(delivery.images[: delivery.learned], labels_in(about, delivery)[: delivery.learned])


def steps_within(knowledge: Knowledge, about: About, increment: Increment, seconds: float, fabric: Fabric) -> int:
    """How many steps fit into the time, from the time that a few take on a copy that is thrown away."""
    trial = copied(knowledge, about, MOST_STEPS, fabric)
    trial.begin(increment)
    with trial.random("trial"):
        trial.step()  # the first is slower
        done, started = 0, time.monotonic()
        while done < TRIAL_STEPS or time.monotonic() - started < min(TRIAL_SECONDS, seconds / 20):
            trial.step()
            done += 1
    a_step = (time.monotonic() - started) / done
    return max(1, int(0.95 * seconds / a_step))


def in_words(plan: Plan) -> str:
    """One line on what was chosen."""
    about, record = plan.about, plan.record
    assert about.settings is not None
    colour = "colour" if about.channels == 3 else "grey"
    classes = counted(record["classes"], "class")
    if record["new_classes"] and len(record["new_classes"]) < record["classes"]:
        classes += f" (new: {some_of(record['new_classes'], NAMES_SHOWN)})"
    held = f", {record['held_out']:,} set aside" if record["held_out"] else ""
    return (
        f"{record['labeled']:,} labelled and {counted(record['unlabeled'], 'unlabelled image')}{held}, {classes}; "
        f"{about.side}×{about.side} pixels in {colour}, width {about.settings.classifier.width}, "
        f"{counted(plan.steps, 'step')}"
    )


def too_late(plan: Plan, options: Options, holdout: float | None) -> str | None:
    """What a delivery that goes on cannot follow any more."""
    wanted = {
        "steps": None if options.steps == plan.steps else options.steps,
        "minutes": options.minutes,
        "holdout": None if holdout == plan.about.holdout else holdout,
    }
    names = [name for name, value in wanted.items() if value is not None]
    if not names:
        return None
    return f"{' and '.join(names)} as planned when it began, not as given now; `ordisco undo` drops what is under way"


# ---------------------------------------------------------------------- learning, and after


def learn(
    knowledge: Knowledge,
    delivery: Delivery,
    plan: Plan,
    fabric: Fabric,
    display: Display,
    work: Work,
    go_on: str,
) -> Knowledge:
    """What is known after the delivery; `knowledge` stays as it is."""
    about, increment = plan.about, increment_of(plan.about, delivery)
    learner = copied(knowledge, about, plan.steps, fabric)
    seconds = work.restore(learner, increment)
    if seconds is None:
        learner.begin(increment)
    display.start(f"learning {delivery.source}", 1, plan.steps, learner.step_in_increment)
    seconds = train(learner, increment, display, work, go_on, seconds or 0.0)
    holdout = with_held_out(knowledge.holdout, delivery, labels_in(about, delivery))
    after = None if holdout is None else measures.on_holdout(learner, holdout, about.classes, knowledge.history)
    distance = measures.shift_from_the_past(learner, increment.unlabeled)
    record = {
        **plan.record,
        "seconds": round(seconds, 3),
        "holdout": after,
        "distance": None if distance is None else distance.mmd2,
        "kept_images": len(learner.state.memories.data or ()),
        "kept": learner.bytes_kept(),
    }
    return Knowledge(about, learner, [*knowledge.history, record], holdout)


def with_held_out(old: Split | None, delivery: Delivery, labels: Tensor) -> Split | None:
    """The images set aside so far with those of the delivery."""
    if not delivery.held:
        return old
    images, given = delivery.images[delivery.learned :].clone(), labels[delivery.learned :]
    return (
        Split(images, given) if old is None else Split(torch.cat([old.images, images]), torch.cat([old.labels, given]))
    )


def result_in_words(record: dict[str, Any]) -> str:
    """The line that closes a delivery."""
    parts = [f"delivery {record['delivery']} learned in {duration(record['seconds'])}"]
    if record["before"]:
        parts.append(f"its labels before learning: {percent(record['before']['accuracy'])} right")
    if record["holdout"]:
        parts.append(f"images set aside: {percent(record['holdout']['accuracy'])}")
    if record["holdout"] and record["holdout"]["forgetting"] is not None:
        parts.append(f"forgotten {percent(record['holdout']['forgetting'])}")
    return "; ".join(parts)


def warning_in_words(record: dict[str, Any]) -> str | None:
    """What a user should know before the delivery is learned."""
    shift = record["shift"]
    if not shift or not shift["shifted"]:
        return None
    usual = "" if shift["usual"] is None else f" (MMD² {shift['mmd2']:.3f}, usual {shift['usual']:.3f})"
    return f"the unlabelled images look unlike those learned so far{usual}: look at them; learning goes on"

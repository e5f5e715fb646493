"""What a run leaves to look at: sample grids, curves, confusion matrix, summaries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ordisco.errors import OrdiscoError
from ordisco.evaluation.record import IncrementRecord, Look, increments_in, looks_in
from ordisco.report.confusion import confusion_matrix
from ordisco.report.curves import accuracy_curves
from ordisco.report.grids import sample_grid
from ordisco.report.summary import run_summary_markdown
from ordisco.runs.config import RunConfig
from ordisco.runs.directory import RunDirectory
from ordisco.runs.made import code_now, machine_now
from ordisco.settings.methods import method
from ordisco.streams.settings import name_of_increment
from ordisco.words import percent

if TYPE_CHECKING:
    from ordisco.learner.learner import Learner
    from ordisco.streams.stream import Stream

SAMPLES_PER_CLASS = 10


def draw_samples(directory: RunDirectory, learner: Learner, stream: Stream, index: int) -> None:
    """A grid of generated images from fixed noise, a row a class; nothing for methods without a generator."""
    if not learner.has_generator:
        return
    import torch  # which pages of finished runs can do without

    labels = sorted(learner.classes)
    images = learner.sample(torch.tensor(labels).repeat_interleave(SAMPLES_PER_CLASS), seed=0)
    path = directory.place(f"samples/increment-{index + 1:02d}.png")
    sample_grid(path, images.cpu(), len(labels), [stream.dataset.classes[label] for label in labels])


def increments_of(directory: RunDirectory) -> list[IncrementRecord]:
    """The records of finished increments."""
    try:
        return increments_in(directory.metrics.read())
    except OrdiscoError as error:
        raise OrdiscoError(f"{directory.metrics.file} is damaged: {error}") from error


def looks_of(directory: RunDirectory) -> list[Look]:
    """The looks at C′ within increments."""
    try:
        return looks_in(directory.metrics.read())
    except OrdiscoError as error:
        raise OrdiscoError(f"{directory.metrics.file} is damaged: {error}") from error


def write_summary(directory: RunDirectory, config: RunConfig, stream: Stream, learner: Learner) -> None:
    """Curve, confusion matrix and summary of a finished run."""
    records = increments_of(directory)
    accuracies = [record.accuracy for record in records]
    title = method(config.method).title
    x_label = name_of_increment(stream.scenario)
    accuracy_curves(directory.place("figures/accuracy.png"), {title: accuracies}, x_label, f"{title} on {stream.name}")
    classes = stream.dataset.classes
    confusion_matrix(
        directory.place("figures/confusion.png"), records[-1].confusion, classes, f"{title} on {stream.name}"
    )
    figures = [
        ("Accuracy on the classes seen", "figures/accuracy.png"),
        ("Confusion", "figures/confusion.png"),
    ]
    if learner.has_generator:
        figures.append(("Generated images, a row a class", f"samples/increment-{len(records):02d}.png"))
    facts = {
        "stream": f"{stream.name} ({stream.scenario}, seed {stream.seed})",
        "method": title,
        "preset": config.preset,
        "final accuracy": percent(accuracies[-1]),
        "mean accuracy": percent(sum(accuracies) / len(accuracies)),
    }
    directory.write_text("summary.md", run_summary_markdown(f"{title} on {stream.name}", facts, records, figures))
    summary = {
        "stream": stream.name,
        "scenario": stream.scenario,
        "seed": config.seed,
        "method": config.method,
        "preset": config.preset,
        "accuracies": accuracies,
        "final_accuracy": accuracies[-1],
        "mean_accuracy": sum(accuracies) / len(accuracies),
        "seconds": records[-1].total_seconds,
        "cpu_seconds": records[-1].total_cpu_seconds,
        "peak_memory_bytes": records[-1].peak_memory_bytes,
        "kept_bytes": records[-1].kept_bytes,
        "code": code_now(),
        "machine": machine_now(config.machine),
    }
    directory.write_text("summary.json", json.dumps(summary, indent=2) + "\n")

"""What the generators of finished runs have learned: samples judged, data covered, t-SNE (Table 4, Fig. 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ordisco.evaluation.accuracy import evaluate, evenly
from ordisco.evaluation.nearness import nearness_of
from ordisco.evaluation.samples import (
    Images,
    check_generator,
    coverings,
    generate,
    sample_accuracy,
    seen_images,
    some,
)
from ordisco.files import json_bytes, write_atomically
from ordisco.learner.learner import Learner
from ordisco.report.grids import sample_grid
from ordisco.report.table import TextTable
from ordisco.report.tsne import draw_tsne
from ordisco.runs.directory import RunDirectory
from ordisco.runs.launch import load_learner, read_config, saved_stream
from ordisco.settings.learner import LearnerSettings
from ordisco.streams.stream import Increment, Stream
from ordisco.studies.judge import cached_judge, judge_settings, train_on
from ordisco.words import percent

GRID = 16  # samples of each class


@dataclass(frozen=True)
class Judging:
    """How generators are judged: where files go and judges are kept, and how many points are taken and drawn.

    `umb_images`: images of the UMB that G is compared with; None: as many as fit into G's bytes.
    `taught`: is a classifier taught by so many generated images alone, too?
    """

    out: Path
    judges: Path
    points: int
    drawn: int
    data_dir: Path | None = None
    umb_images: int | None = None
    taught: int = 0


def judge_run(path: Path, how: Judging) -> dict[str, Any]:
    """Judge one run's generator; writes NAME.json, NAME-samples.png and NAME-tsne.png."""
    config = read_config(path)
    if how.data_dir is not None:
        config = replace(config, machine=replace(config.machine, data_dir=str(how.data_dir.resolve())))
    learner = load_learner(path)
    check_generator(learner)
    stream = saved_stream(RunDirectory(path), config)
    where, judge_accuracy = cached_judge(config, stream, how.judges)
    judge = load_learner(where)
    name = path.resolve().name
    samples, images = sample_accuracy(learner, judge), seen_images(stream, learner, umb_images=how.umb_images)
    result: dict[str, Any] = {
        "run": name,
        "stream": config.stream_name,
        "method": config.method,
        "seed": config.seed,
        "increments": learner.increments,
        "judge": where.name,
        "judge_test_accuracy": judge_accuracy,
        "sample_accuracy": samples.accuracy,
        "sample_accuracy_per_class": {stream.dataset.classes[label]: a for label, a in samples.per_class.items()},
        "samples_per_class": int(samples.confusion.sum()) // len(learner.classes),
        "train_images": len(images.train),
        "umb_images": len(images.umb),
        "nearness_per_class": {stream.dataset.classes[c]: value for c, value in nearness_of(learner, stream).items()},
        "coverings": [asdict(covering) for covering in coverings(learner, judge, images, how.points)],
    }
    if how.taught:
        result["taught"] = taught(learner, stream, how.taught, config.machine.threads)
    write_atomically(how.out / f"{name}.json", json_bytes(result, indent=1))
    if how.drawn:
        title = "UMB" if how.umb_images else "UMB of G's bytes"
        draw_features(how.out / f"{name}-tsne.png", learner, judge, images, how.drawn, title)
    labels = sorted(learner.classes)
    grid = learner.sample(torch.tensor(labels).repeat_interleave(GRID), seed=1).cpu()
    rows = [stream.dataset.classes[label] for label in labels]
    sample_grid(how.out / f"{name}-samples.png", grid, len(labels), rows)
    return result


def taught(
    learner: Learner, stream: Stream, count: int, threads: int | None = None, settings: LearnerSettings | None = None
) -> dict[str, float]:
    """The accuracy on test images of a classifier that knows `count` generated images alone, y′ as their labels.

    That is the classification accuracy score of Ravuri and Vinyals (2019): images may show their class and still be
    all alike, which a judge does not notice. Beside it stands that of the labelled images that the learner keeps, if
    there are any, in as many steps.
    """
    labels = evenly(sorted(learner.classes), count)
    lessons = {"generated": Increment(learner.sample(labels, seed=2).cpu(), labels)}
    kept = learner.state.memories.data
    if kept is not None and bool((kept.labels >= 0).any()):
        known = kept.labels >= 0
        lessons["labelled"] = Increment(kept.images[known].cpu(), kept.labels[known].cpu())
    settings = settings or judge_settings(count)
    test = stream.test_after(learner.increments - 1)
    return {name: evaluate(train_on(images, stream, settings, threads), test) for name, images in lessons.items()}


def draw_features(
    path: Path, learner: Learner, judge: Learner, images: Images, count: int, title: str, seed: int = 0
) -> None:
    """The picture of `count` training images, of a UMB thinned in the same proportion, and of as many from G."""
    real = some(images.train, count, seed)
    remembered = some(images.umb, round(len(real) / len(images.train) * len(images.umb)), seed + 1)
    generated = generate(learner, len(real), seed)
    features = [judge.features(part).cpu().numpy() for part in (real, remembered, generated)]
    held = f"{title}: {len(images.umb):,} of {len(images.train):,} images"
    draw_tsne(path, features[0], features[1], features[2], held, seed)


def summary(results: Sequence[dict[str, Any]]) -> TextTable:
    """A row for each run; coverage of test images."""
    header = [
        "run",
        "increments",
        "judge on test",
        "judge on samples",
        "coverage by G",
        "by UMB (images)",
        "by real",
        "nearness",
    ]
    teachers = [name for name in ("generated", "labelled") if any(name in of.get("taught", {}) for of in results)]
    header += [f"taught by {name} images" for name in teachers]
    rows = []
    for result in results:
        test = {row["points_of"]: row for row in result["coverings"] if row["reference"] == "test"}
        umb = percent(test["UMB"]["coverage"]) if "UMB" in test else "—"
        rows.append(
            (
                result["run"],
                str(result["increments"]),
                percent(result["judge_test_accuracy"]),
                percent(result["sample_accuracy"]),
                percent(test["generated"]["coverage"]),
                f"{umb} ({result['umb_images']} of {result['train_images']})",
                percent(test["real"]["coverage"]),
                nearness_cell(result["nearness_per_class"]),
                *(percent(result["taught"][name]) if name in result.get("taught", {}) else "—" for name in teachers),
            )
        )
    return TextTable(tuple(header), tuple(rows))


def nearness_cell(of: dict[str, float]) -> str:
    """The smallest and the largest of the classes."""
    return f"{min(of.values()):.2f} to {max(of.values()):.2f}" if of else "—"

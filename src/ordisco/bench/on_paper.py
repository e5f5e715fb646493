"""The preset `paper` on devices that are not here: its step counted, and what the model of cost makes of it.

`python -m ordisco.bench.on_paper` prints the table of docs/scale.md. Nothing of it is measured.
"""

from __future__ import annotations

from ordisco.bench.cost import Link, Step
from ordisco.nets.count import WEIGHT, preset_sizes
from ordisco.report.table import markdown_table
from ordisco.runs.presets import PRESET_IMAGES, preset
from ordisco.settings.learner import LearnerSettings

GPU, LINK = 6e13, Link(1e-5, 2e10)  # operations a second; seconds of a message, bytes a second
CLASSES = 10
SUMS = 135  # of a step of the preset: counted with narrow networks, as they depend on the layers, not on their width
CASES = ((1, 1), (1, 8), (8, 8), (1, 64), (64, 64), (1024, 1024))  # times the preset's mini-batch, devices


def passes(settings: LearnerSettings) -> dict[str, int]:
    """Images that C with C′, G and D see in a step of ORDisCo with mean teacher: a backward pass counts as two.

    C′ is taken to see all labelled images beside those that it teaches (`teacher_batch`).
    """
    step, d_steps = settings.step, settings.gan.d_steps
    labeled, unlabeled, generated = step.batch_labeled, step.batch_unlabeled, step.batch_generated
    student, taught = labeled + unlabeled + generated, unlabeled + generated + labeled
    pseudo_labels = (d_steps - 1) * (unlabeled + labeled)  # of the first D steps; the last has what C′ has taught
    return {
        "C": 3 * student + taught + pseudo_labels,
        "G": (d_steps + 2) * generated,
        "D": 3 * d_steps * (labeled + unlabeled + generated) + 2 * generated,  # G's step: no gradient of D's weights
    }


def operations(settings: LearnerSettings, shape: tuple[int, int, int]) -> dict[str, float]:
    """Floating-point operations of a step by network."""
    sizes = preset_sizes(settings, shape, CLASSES)
    return {name: 2.0 * count * sizes[name].multiply_adds for name, count in passes(settings).items()}


def image_bytes(settings: LearnerSettings, shape: tuple[int, int, int]) -> int:
    """Of the images that all processes get: drawn ones as they lie on disk, generated ones, G's gradient of these."""
    step, d_steps = settings.step, settings.gan.d_steps
    values = d_steps * (step.batch_unlabeled + WEIGHT * step.batch_generated) + WEIGHT * step.batch_generated
    return values * shape[0] * shape[1] * shape[2]


def gradient_bytes(settings: LearnerSettings, shape: tuple[int, int, int]) -> int:
    """Of the gradients that are summed: D's once for each of its steps."""
    sizes = {name: size.parameters for name, size in preset_sizes(settings, shape, CLASSES).items()}
    return WEIGHT * (sizes["C"] + sizes["G"] + settings.gan.d_steps * sizes["D"])


def paper_step(times: int) -> Step:
    """The preset's step with so many times its mini-batch."""
    settings, shape = preset("paper"), PRESET_IMAGES["paper"]
    flop = sum(operations(settings, shape).values())
    return Step(times * flop, gradient_bytes(settings, shape), SUMS - 2, times * image_bytes(settings, shape))


def table() -> str:
    """Work and what is told, for some devices."""
    rows, generated = [], preset("paper").step.batch_generated
    for times, devices in CASES:
        work, talk = paper_step(times).seconds(devices, GPU, LINK)
        told = [f"{1000 * talk:,.0f} ms", f"{100 * talk / (work + talk):.0f} %"] if devices > 1 else ["–", "–"]
        rows.append([f"{times * generated:,}", f"{devices:,}", f"{1000 * work:,.0f} ms", *told])
    return markdown_table(["generated images a step", "GPUs", "work", "telling each other", "share"], rows)


if __name__ == "__main__":
    step, of_each = paper_step(1), operations(preset("paper"), PRESET_IMAGES["paper"])
    parts = ", ".join(f"{name} {count / 1e12:.1f}" for name, count in of_each.items())
    sums = f"{step.gradients / 1e6:.0f} MB of gradients, {step.images / 1e6:.1f} MB of images"
    print(f"{step.flop / 1e12:.1f} TFLOP a step ({parts}), {sums}\n")
    print(table())

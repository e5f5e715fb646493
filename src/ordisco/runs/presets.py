"""Settings that belong together: `paper` for GPUs, `small` for two cores, `demo` for the embedded digits."""

from __future__ import annotations

import dataclasses

from ordisco.data.catalogue import CATALOGUE
from ordisco.errors import UsageError, shown
from ordisco.machine.cores import cores
from ordisco.settings.learner import LearnerSettings
from ordisco.streams.settings import StreamSettings

# The paper's α and λ; everything else is the published code of its reference, Triple-GAN.
PAPER = LearnerSettings()

# What runs of a few hundred steps have in common: much larger rates than the reference's 1e-4, one D step, and
# mismatched pairs in the place of Eq. 4's third term.
SHORT = PAPER.replace(
    batch_labeled=32,
    c_lr=2e-3,
    consistency_weight=1.0,
    align="all",
    z_dim=32,
    g_lr=2e-3,
    d_lr=2e-3,
    gan_beta2=0.9,
    d_steps=1,
    alpha=1.0,
    pseudo_real=0.75,
    d_balance=True,
    mismatched=0.5,
)

# 8×8 digits, a minute on two cores.
DEMO = SHORT.replace(
    steps=200,
    batch_unlabeled=48,
    batch_generated=48,
    c_width=16,
    dropout=0.3,
    ema=0.95,
    g_width=32,
    d_width=32,
    d_tail=1,
    d_head="flat",
)

# 16×16 images of SVHN or CIFAR-10, minutes on one core.
SMALL = SHORT.replace(
    steps=300,
    batch_unlabeled=64,
    batch_generated=64,
    c_width=24,
    dropout=0.2,
    teacher_dropout=False,
    ema=0.99,
    unlabeled_loss="fixmatch",
    threshold=0.8,
    labeller="teacher",
    consistency_ramp=0.0,
    gan_net="dcgan",
    g_width=24,
    d_width=24,
    pseudo_threshold=0.6,
    d_translate=1,
    g_ema=0.99,
    replay_ramp=0.0,
    replay_new=0.3,
    replay_unlabeled=0.25,
)

SMALL_STEPS = 5 * SMALL.step.steps  # of a whole stream: five tasks of New Class

# What a preset does to a stream of larger images.
STREAM_CHANGES: dict[str, dict[str, int | bool]] = {"small": {"size": 16, "max_images": 10_000, "contrast": True}}

# The images that each preset is meant for: channels, height, width.
PRESET_IMAGES: dict[str, tuple[int, int, int]] = {"demo": (1, 8, 8), "small": (1, 16, 16), "paper": (3, 32, 32)}

PRESETS: dict[str, LearnerSettings] = {"demo": DEMO, "small": SMALL, "paper": PAPER}


def preset(name: str) -> LearnerSettings:
    """The preset of that name."""
    if not isinstance(name, str) or name not in PRESETS:
        raise UsageError(f"preset = {shown(name)} is not allowed: one of {', '.join(PRESETS)}")
    return PRESETS[name]


def preset_of(stream: StreamSettings) -> str:
    """The preset of a stream for which none is named."""
    return "demo" if stream.dataset == "digits" else "small"


def preset_learner(name: str, stream: StreamSettings) -> LearnerSettings:
    """The preset for a stream: increments of New Instance share the steps of `small`, so that a run takes minutes."""
    learner = preset(name)
    if name == "small" and stream.scenario == "new-instance":
        return learner.replace(steps=max(1, SMALL_STEPS // stream.increments))
    return learner


def preset_stream(name: str, stream: StreamSettings) -> StreamSettings:
    """The stream as the preset wants it: `small` takes a part of real images, smaller and of even contrast."""
    if stream.dataset == "digits":
        return stream
    changes = STREAM_CHANGES.get(name, {})
    if changes and stream.dataset in CATALOGUE and not CATALOGUE[stream.dataset].colour:
        changes = {**changes, "grey": True}
    return dataclasses.replace(stream, **changes)  # type: ignore[arg-type]


def preset_threads(name: str, jobs: int = 1) -> int | None:
    """CPU threads that pay: one for small nets, whose second thread waits more than it works; else all cores.

    Several jobs at once share the cores.
    """
    if name != "paper":
        return 1
    return max(1, cores() // jobs) if jobs > 1 else None

"""Settings that belong together: `paper`, `triple-gan` for GPUs; `small`, `quick`, `colour`, `demo` for two cores."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from ordisco.data.catalogue import CATALOGUE
from ordisco.errors import UsageError, shown
from ordisco.machine.cores import cores
from ordisco.settings.learner import LearnerSettings
from ordisco.streams.settings import StreamSettings

# The paper's text: 500 epochs an increment and 200,000 iterations jointly (App. B), half of C's mini-batch of 100
# labelled (as Oliver et al., whom App. B follows), α and λ (App. G). What it leaves open is Triple-GAN's.
PAPER = LearnerSettings().replace(epochs=500.0, joint_steps=200_000)

# The published code of the paper's reference: real pairs of which 0.9 are pseudo-labelled, the third term expected,
# few labelled images in C's mini-batch of 100 (see `preset_learner`), replay at weight 3.
TRIPLE_GAN = PAPER.replace(
    pseudo_real=0.9,
    pseudo_real_start=0.0,
    third_term="expectation",
    replay_weight=3.0,
    batch_labeled=10,
    batch_unlabeled=90,
)

# What runs of a few hundred steps have in common: much larger rates than the reference's 1e-4, one D step, and
# mismatched pairs in the place of Eq. 4's third term.
SHORT = LearnerSettings().replace(
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

# The same in half of the seconds: two thirds of the channels, with a rate and an average that keep up with few steps.
# See "Seconds" in docs/results.md.
QUICK = SMALL.replace(c_width=16, g_width=16, d_width=16, c_lr=4e-3, ema=0.97)

# 32×32 images in colour, minutes on two cores: half the unlabelled images of a mini-batch and twice the steps in about
# the same time, and a G of a fourth of the weights, which draws nearly as well, kept in half of the bits. See "32×32 in
# colour" in docs/results.md. Labelled images as strong views, as few labels are soon known by heart, and as many of
# them as unlabelled ones, as new classes are a small part of them: see there, too.
COLOUR = QUICK.replace(
    steps=600,
    batch_unlabeled=32,
    batch_generated=32,
    labeled_view="strong",
    g_width=8,
    d_translate=2,
    kept_precision="16",
)

SHORT_PRESETS = ("small", "quick", "colour")  # minutes on one core, for real images
TASKS = 5  # of New Class, ten classes by twos

# What a preset does to a stream of larger images.
STREAM_CHANGES: dict[str, dict[str, int | bool]] = {
    "small": {"size": 16, "max_images": 10_000, "contrast": True},
    "quick": {"size": 16, "max_images": 10_000, "contrast": True},
    "colour": {"size": 32, "max_images": 10_000, "contrast": True},
}

# The images that each preset is meant for: channels, height, width.
PRESET_IMAGES: dict[str, tuple[int, int, int]] = {
    "demo": (1, 8, 8),
    "small": (1, 16, 16),
    "quick": (1, 16, 16),
    "colour": (3, 32, 32),
    "paper": (3, 32, 32),
    "triple-gan": (3, 32, 32),
}

PRESETS: dict[str, LearnerSettings] = {
    "demo": DEMO,
    "small": SMALL,
    "quick": QUICK,
    "colour": COLOUR,
    "paper": PAPER,
    "triple-gan": TRIPLE_GAN,
}

# Settings of a preset that belong to one of its choices: with another choice, they have their own defaults again.
LEADING: dict[str, tuple[str, ...]] = {
    "unlabeled_loss": ("consistency_weight", "threshold", "labeller", "student_view", "vat_entropy"),
    "c_net": ("c_width", "dropout"),
    "steps": ("epochs", "joint_steps"),  # a number of steps is meant for all
}


def preset(name: str) -> LearnerSettings:
    """The preset of that name."""
    if not isinstance(name, str) or name not in PRESETS:
        raise UsageError(f"preset = {shown(name)} is not allowed: one of {', '.join(PRESETS)}")
    return PRESETS[name]


def preset_of(stream: StreamSettings) -> str:
    """The preset of a stream for which none is named."""
    return "demo" if stream.dataset == "digits" else "small"


def preset_learner(name: str, stream: StreamSettings) -> LearnerSettings:
    """The preset for a stream.

    Increments of New Instance share the steps of `small`, `quick` and `colour`, so that a run takes minutes. VAT's ε is
    the published one of the data set; Triple-GAN's code has 1 labelled image in C's mini-batch on SVHN, 10 on CIFAR-10.
    `colour` has strong views of any colour where colour tells nothing of the class.
    """
    learner = preset(name)
    if stream.dataset == "cifar10":
        learner = learner.replace(vat_epsilon=6.0)
    if name == "triple-gan" and stream.dataset == "svhn":
        learner = learner.replace(batch_labeled=1, batch_unlabeled=99)
    if name == "colour" and colour_is_idle(stream):
        learner = learner.replace(strong_colours="any")
    if name in SHORT_PRESETS and stream.scenario == "new-instance":
        learner = learner.replace(steps=max(1, TASKS * learner.step.steps // stream.increments))
    return learner


def colour_is_idle(stream: StreamSettings) -> bool:
    """Does colour tell nothing of the class, as far as is known?"""
    return stream.dataset in CATALOGUE and not CATALOGUE[stream.dataset].colour


def changed(learner: LearnerSettings, changes: Mapping[str, Any]) -> LearnerSettings:
    """A preset with some settings changed; with another unlabelled loss or network, its own defaults come back.

    >>> changed(DEMO, {"unlabeled_loss": "vat"}).unlabeled.consistency_weight is None
    True
    """
    now = flat(learner)
    own: dict[str, Any] = {}
    for name, belonging in LEADING.items():
        if name in changes and (changes[name] != now[name] or name == "steps"):
            own |= {other: paper_defaults()[other] for other in belonging}
    return learner.replace(**{**own, **changes})


def flat(learner: LearnerSettings) -> dict[str, Any]:
    """The settings of all groups by their names."""
    return {name: value for group in vars(learner).values() for name, value in vars(group).items()}


@functools.cache
def paper_defaults() -> Mapping[str, Any]:
    """The paper's defaults by their names."""
    return flat(LearnerSettings())


def preset_stream(name: str, stream: StreamSettings) -> StreamSettings:
    """The stream as the preset wants it: a part of real images, of even contrast, smaller but for `colour`.

    `small` and `quick` have them in grey where colour tells nothing of the class.
    """
    if stream.dataset == "digits":
        return stream
    changes = STREAM_CHANGES.get(name, {})
    if name in ("small", "quick") and colour_is_idle(stream):
        changes = {**changes, "grey": True}
    return dataclasses.replace(stream, **changes)  # type: ignore[arg-type]


def preset_threads(name: str, jobs: int = 1) -> int | None:
    """CPU threads that pay: one for small nets, whose second thread waits more than it works; else all cores.

    Several jobs at once share the cores.
    """
    if name in ("demo", *SHORT_PRESETS):
        return 1
    return max(1, cores() // jobs) if jobs > 1 else None

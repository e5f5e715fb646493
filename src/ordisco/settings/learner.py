"""Every choice that the paper leaves open, as a named setting; defaults are the paper's or its reference's.

The groups follow the networks: how C is built and trained, its unlabelled loss, the GAN, the replay, and the
sizes of a step. `docs/paper.md` has a line for each.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from ordisco.errors import UsageError
from ordisco.settings.fields import Settings, setting

BATCH, WIDTH, IMAGES, WEIGHT = 65_536, 4_096, 100_000_000, 1e6  # the most that is allowed; far beyond what is sensible


@dataclass(frozen=True)
class StepSettings(Settings):
    """A training step."""

    steps: int = setting(7_000, "training steps an increment, where `epochs` is not given", low=1, high=10**9)
    epochs: float | None = setting(None, "passes of C over an increment's images, instead of steps", low=1e-6, high=1e6)
    joint_steps: int | None = setting(
        None, "training steps an increment of joint training; default: as for the others", low=1, high=10**9
    )
    batch_labeled: int = setting(50, "labelled images a step, drawn from b_l ∪ SMB", low=1, high=BATCH)
    batch_unlabeled: int = setting(50, "unlabelled images a step", low=1, high=BATCH)
    batch_generated: int = setting(100, "generated images a step", low=1, high=BATCH)


@dataclass(frozen=True)
class ClassifierSettings(Settings):
    """The classifier C and its teacher C′."""

    c_net: Literal["nine-conv", "wrn-28"] = setting("nine-conv", "architecture of C")
    c_width: int | None = setting(
        None, "channels of C's first convolutions; default: 128, for wrn-28 32 (WRN-28-2)", low=1, high=WIDTH
    )
    dropout: float | None = setting(None, "dropout in C; default: 0.5, for wrn-28 none", low=0.0, high=0.95)
    c_lr: float = setting(3e-3, "learning rate of C (Adam)", low=0.0, high=WEIGHT)
    c_warm_up: float = setting(
        0.0, "share of each increment, at its start, over which C's rate rises from 0", low=0.0, high=1.0
    )
    c_decay: float = setting(
        0.0, "share of each increment, at its end, over which C's rate falls to 0 (paper: constant)", low=0.0, high=1.0
    )
    c_beta1: float = setting(0.9, "Adam's first decay for C", low=0.0, high=0.9999)
    c_beta2: float = setting(0.99, "Adam's second decay for C", low=0.0, high=0.99999)
    labeled_view: Literal["weak", "strong"] = setting(
        "weak", "labelled images as C learns them: shifted and flipped, or as FixMatch's strong views"
    )
    teacher_dropout: bool = setting(True, "dropout in C′ too when it teaches (ε′ of Eq. 3)")
    teacher_batch: Literal["unlabeled", "old-classes", "labeled"] = setting(
        "old-classes",
        "whose statistics C′ teaches by: unlabelled and replayed images alone, with labelled images of classes that "
        "did not come with the increment, or with all labelled images of the mini-batch",
    )
    ema: float = setting(0.999, "decay of the teacher, min(ema, 1 − 1/(t + 1)) at step t", low=0.0, high=1.0)
    statistics: int = setting(
        32, "mini-batches from which C′ gathers its batch-norm statistics after an increment", low=1, high=10**6
    )
    moments: Literal["fresh", "kept"] = setting(
        "fresh", "Adam's moments of C, G and D at the start of an increment: 0, or those of the last"
    )

    @property
    def width(self) -> int:
        """Channels of C's first convolutions."""
        return self.c_width if self.c_width is not None else {"nine-conv": 128, "wrn-28": 32}[self.c_net]

    @property
    def dropped(self) -> float:
        """The share of activations that dropout leaves out: each network's own where none is given."""
        return self.dropout if self.dropout is not None else {"nine-conv": 0.5, "wrn-28": 0.0}[self.c_net]


@dataclass(frozen=True)
class UnlabeledSettings(Settings):
    """The unlabelled loss L_ul."""

    unlabeled_loss: Literal["mean-teacher", "pi-model", "pseudo-label", "vat", "fixmatch", "none"] = setting(
        "mean-teacher", "loss on unlabelled images"
    )
    consistency_weight: float | None = setting(
        None, "weight of the unlabelled loss after its ramp; default: each loss's own", low=0.0, high=WEIGHT
    )
    consistency_ramp: float = setting(0.5, "share of each increment over which the weight ramps up", low=0.0, high=1.0)
    threshold: float = setting(0.95, "least confidence of a pseudo-label (pseudo-label, fixmatch)", low=0.0, high=1.0)
    labeller: Literal["student", "teacher"] = setting(
        "student", "who gives FixMatch's pseudo-labels: C, or its moving average C′"
    )
    student_view: Literal["weak", "strong"] = setting(
        "weak", "mean teacher's ε: the student's images shifted and flipped, or as FixMatch's"
    )
    strong_colours: Literal["near", "any"] = setting(
        "near",
        "colours of strong views: near the image's, or any, where colour and polarity tell nothing of the class: "
        "hue turned, every other image a negative",
    )
    vat_epsilon: float = setting(
        1.0, "length of VAT's perturbation, images in [−1, 1] (published: SVHN 1, CIFAR-10 6)", low=0.0, high=WEIGHT
    )
    vat_entropy: float = setting(0.0, "weight of the entropy beside VAT's term (VAT+EntMin: 1)", low=0.0, high=WEIGHT)
    align: Literal["none", "pseudo-labels", "all"] = setting(
        "none",
        "distribution alignment with the class frequencies of the increment's labels: of pseudo-labels for D, "
        "or of these and of the targets of the unlabelled loss",
    )


@dataclass(frozen=True)
class GanSettings(Settings):
    """The generator G and the discriminator D."""

    gan_net: Literal["residual", "dcgan"] = setting(
        "residual", "architecture of G and D: residual (the paper) or plain convolutions"
    )
    g_width: int = setting(256, "channels of G (dcgan: at full size, doubled at each half)", low=1, high=WIDTH)
    d_width: int = setting(256, "channels of D (dcgan: at full size, doubled at each half)", low=1, high=WIDTH)
    z_dim: int = setting(256, "length of the noise z", low=1, high=65_536)
    d_tail: int = setting(2, "residual blocks of D after those that halve the side (residual)", low=0, high=64)
    d_head: Literal["pool", "flat"] = setting("pool", "D's head sees the pooled or the flat last map (residual)")
    g_lr: float = setting(1e-4, "learning rate of G (Adam)", low=0.0, high=WEIGHT)
    d_lr: float = setting(1e-4, "learning rate of D (Adam)", low=0.0, high=WEIGHT)
    gan_beta1: float = setting(0.0, "Adam's first decay for G and D", low=0.0, high=0.9999)
    gan_beta2: float = setting(0.99, "Adam's second decay for G and D", low=0.0, high=0.99999)
    d_steps: int = setting(5, "D steps a G step", low=1, high=1_000)
    gan_start: float = setting(
        0.0, "share of each increment before D and G step at all: till then G replays as it is", low=0.0, high=0.99
    )
    gan_every: int = setting(1, "D and G step only with every n-th step of C (paper: every one)", low=1, high=1_000)
    gan_every_start: float = setting(
        0.0, "share of each increment before `gan_every` counts: till then D and G step always", low=0.0, high=1.0
    )
    adversarial: Literal["logistic", "hinge"] = setting("hinge", "form of the adversarial terms")
    alpha: float = setting(0.5, "α of Eq. 4: generated against pseudo-labelled pairs", low=0.0, high=1.0)
    third_term: Literal["argmax", "expectation"] = setting(
        "argmax", "third term of Eq. 4: on C's most likely class, or expected over C's probabilities"
    )
    pseudo_real: float = setting(
        0.0,
        "share of pseudo-labelled pairs among D's real ones (paper 0, Triple-GAN's code 0.9)",
        low=0.0,
        high=0.99,
    )
    pseudo_real_start: float = setting(
        0.2, "share of each increment before pseudo-labelled pairs count as real", low=0.0, high=1.0
    )
    pseudo_threshold: float = setting(
        0.0, "least confidence of a pseudo-labelled pair that counts as real", low=0.0, high=1.0
    )
    d_balance: bool = setting(False, "every class weighs the same among D's real pairs (paper: every pair)")
    mismatched: float = setting(
        0.0, "weight of real images with a wrong class as fake pairs (paper: 0; Reed et al. 2016)", low=0.0, high=WEIGHT
    )
    d_translate: int = setting(
        0, "pixels by which D's images are shifted at random, real and fake alike", low=0, high=64
    )
    d_colour: float = setting(
        0.0,
        "how much D's images are changed in brightness, saturation and contrast, real and fake alike; 1: DiffAugment's",
        low=0.0,
        high=1.0,
    )
    lecam: float = setting(
        0.0,
        "weight of LeCam regularisation of D (paper: 0; Tseng et al. 2021, there 0.01 to 0.3)",
        low=0.0,
        high=WEIGHT,
    )
    g_ema: float = setting(
        0.0, "decay of a moving average of G that replays and draws samples; 0: G itself (paper)", low=0.0, high=0.9999
    )
    g_restart: Literal["none", "average"] = setting(
        "none", "G at the start of an increment: as it was, or its moving average, so that one of the two is kept"
    )
    d_restart: Literal["none", "fresh"] = setting(
        "none", "D at the start of an increment: as it was, or begun anew, so that it need not be kept (not with Reg)"
    )
    d_penalty: float = setting(1e-3, "λ of Eq. 8: strength of D's stabilisation", low=0.0, high=WEIGHT)
    d_importance: Literal["paper", "normalised"] = setting(
        "paper", "ξ of Eq. 8 as measured, or over its mean, so that λ means the same for every network and loss"
    )
    kept_precision: Literal["32", "16", "8"] = setting(
        "32", "bits of each weight of G and D from one increment to the next (ξ: at least 16); computed with in 32"
    )
    importance_chunk: int = setting(
        8, "images at once when Eq. 10 is measured: as quick as more but for tiny networks", low=1, high=BATCH
    )


@dataclass(frozen=True)
class ReplaySettings(Settings):
    """The replay of generated images into C (L_G→C)."""

    replay_weight: float = setting(1.0, "weight of L_G→C after its ramp", low=0.0, high=WEIGHT)
    replay_start: float = setting(0.0, "share of each increment before replay starts", low=0.0, high=1.0)
    replay_ramp: float = setting(0.25, "share of each increment over which replay ramps up", low=0.0, high=1.0)
    replay_new: float = setting(
        0.0, "share of each increment before classes that are new in it are replayed", low=0.0, high=1.0
    )
    replay_unlabeled: float = setting(
        1.0, "weight of generated images as unlabelled data in Eq. 7", low=0.0, high=WEIGHT
    )
    replay_targets: Literal["label", "distilled", "both"] = setting(
        "label",
        "what C learns on replayed images of old classes: y′ (paper), the probabilities that C′ gives them as it was "
        "after the last increment, or the mean of both",
    )
    replay_trust: Literal["none", "teacher"] = setting(
        "none",
        "weight of each replayed image: 1 (paper), or the probability that C′ gives to its y′, over the mean of these",
    )
    replay_view: Literal["first", "weak"] = setting(
        "first",
        "replayed images as labelled data (Eq. 7): the first view that the unlabelled loss makes, with FixMatch the "
        "strong one, or a weak one of their own",
    )
    offline_steps: Literal["growing", "equal"] = setting(
        "growing", "steps of increment b in offline replay: b times as many (paper), or as many as the others make"
    )


@dataclass(frozen=True)
class MemorySettings(Settings):
    """Buffers and penalties of the baselines."""

    smb_size: int = setting(200, "images kept by mean-of-feature (SMB-mof)", low=1, high=IMAGES)
    umb_size: int | None = setting(
        None,
        "unlabelled images kept by any method with a UMB; default: what its row says, 1 × is G's bytes",
        low=1,
        high=IMAGES,
    )
    umb_share: float | None = setting(
        None,
        "share of a step's unlabelled images that are drawn from the UMB; default: its natural share",
        high=0.99,
        low=0.0,
    )
    c_penalty: float | None = setting(None, "λ of the penalty on C; default: 1, for MAS 1e-4", low=0.0, high=WEIGHT)
    less_forget: float = setting(5.0, "weight of the Unified Classifier's less-forget constraint", low=0.0, high=WEIGHT)
    margin_ranking: float = setting(1.0, "weight of the Unified Classifier's margin ranking", low=0.0, high=WEIGHT)


@dataclass(frozen=True)
class LearnerSettings:
    """All settings of a learner, in groups."""

    step: StepSettings = field(default_factory=StepSettings)
    classifier: ClassifierSettings = field(default_factory=ClassifierSettings)
    unlabeled: UnlabeledSettings = field(default_factory=UnlabeledSettings)
    gan: GanSettings = field(default_factory=GanSettings)
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    memory: MemorySettings = field(default_factory=MemorySettings)

    def replace(self, **changes: Any) -> LearnerSettings:
        """A copy with some fields changed, each found in its group by name."""
        groups: dict[str, Settings] = {}
        for group in dataclasses.fields(self):
            old = getattr(self, group.name)
            names = {f.name for f in dataclasses.fields(old)} & changes.keys()
            groups[group.name] = (
                dataclasses.replace(old, **{name: changes.pop(name) for name in names}) if names else old
            )
        if changes:
            known = sorted(f.name for g in dataclasses.fields(self) for f in dataclasses.fields(getattr(self, g.name)))
            raise UsageError(f"unknown setting {sorted(changes)[0]!r}; known: {', '.join(known)}")
        return LearnerSettings(**groups)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Nested plain values, as in a run's TOML file."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_dict(values: dict[str, dict[str, Any]]) -> LearnerSettings:
        """Read back what `to_dict` gave."""
        flat = {name: value for group in values.values() for name, value in group.items()}
        return LearnerSettings().replace(**flat)


GROUPS = (StepSettings, ClassifierSettings, UnlabeledSettings, GanSettings, ReplaySettings, MemorySettings)

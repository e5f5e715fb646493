"""The studies by name: what was run, on what, and what for."""

from __future__ import annotations

from collections.abc import Mapping

from rows import Row, Study, Value, over_seeds

SEEDS = range(3)

# one of the paper's four losses, and the one beyond them; named, whatever the preset has
MEAN_TEACHER: dict[str, Value] = {"unlabeled_loss": "mean-teacher"}
FIXMATCH: dict[str, Value] = {"unlabeled_loss": "fixmatch"}
# mean teacher that works in the steps of the preset `small`
STRONG_TEACHER: dict[str, Value] = {**MEAN_TEACHER, "student_view": "strong", "consistency_weight": 3.0}

# for tuning, so that test images are used for the tables only
HELD_OUT: dict[str, Value] = {"validation": 4000}

# the claims of the paper, a row a method: name, method, what for
CLAIMS = (
    ("JT", "jt", "joint training, the ceiling"),
    ("ST", "st", "ST ≪ JT"),
    ("SMB", "smb", "SMB ≫ ST but < JT"),
    ("ORDisCo", "ordisco", "ORDisCo > SMB, half of the gap"),
    ("ORDisCo −Reg", "ordisco-reg", "+Reg ≥ −Reg"),
    ("cGAN + SMB", "cgan+smb", "samples without replay and Reg"),
    ("SMB+UMB", "smb+umb", "UMB does not close the gap"),
    ("SMB+UMB+UC", "smb+umb+uc", "nor does the Unified Classifier"),
    ("SMB-mof", "smb-mof", "SMB-mof < SMB"),
    ("EWC-sl+ul", "ewc-sl+ul", "EWC does not fix ST"),
    ("SI-sl+ul", "si-sl+ul", "SI does not fix ST"),
    ("MAS-sl+ul", "mas-sl+ul", "MAS does not fix ST"),
)


def claims(stream: str, title: str, changes: Mapping[str, Value]) -> Study:
    """Every method of the claims on one stream."""
    rows = [Row(name, stream, method, changes=changes, purpose=purpose) for name, method, purpose in CLAIMS]
    return Study(title, over_seeds(rows, SEEDS), judged=True)


# What one change does to ORDisCo: name, settings, what is asked. The preset `demo`, mean teacher.
DIGITS_CHANGES: tuple[tuple[str, dict[str, Value], str], ...] = (
    (
        "Eq. 4 as in the paper",
        {"alpha": 0.5, "mismatched": 0, "third_term": "argmax"},
        "third term or mismatched pairs",
    ),
    (
        "Eq. 4, third term expected",
        {"alpha": 0.5, "mismatched": 0, "third_term": "expectation"},
        "as Triple-GAN's code",
    ),
    ("no mismatched pairs", {"mismatched": 0}, "does D need wrong pairs to look at y?"),
    ("labelled real pairs only", {"pseudo_real": 0}, "do pseudo-labelled pairs help D?"),
    ("no balance of D's pairs", {"d_balance": False}, "should every class weigh the same?"),
    ("no alignment", {"align": "none"}, "do pseudo-labels need the increment's frequencies?"),
    ("GAN rates of the reference", {"g_lr": 1e-4, "d_lr": 1e-4}, "what do large rates give?"),
    ("generated as labelled only", {"replay_unlabeled": 0}, "Eq. 7 without its second term"),
    ("λ = 1", {"d_penalty": 1.0}, "a stronger Reg"),
)

# The same for the preset `small`, FixMatch.
SVHN_CHANGES: tuple[tuple[str, dict[str, Value], str], ...] = (
    ("Eq. 4 as in the paper", {"alpha": 0.5, "mismatched": 0}, "third term or mismatched pairs"),
    ("new classes replayed at once", {"replay_new": 0}, "should G first learn the new classes?"),
    ("Eq. 7 at full weight", {"replay_unlabeled": 1}, "generated images as unlabelled data"),
    ("all pseudo-labels are real pairs", {"pseudo_threshold": 0}, "which pairs should D trust?"),
    ("no average of G", {"g_ema": 0}, "does a moving average of G help?"),
)


def buffers(stream: str, title: str, changes: Mapping[str, Value]) -> Study:
    """How large a buffer of unlabelled images has to be.

    In the paper 10,000 images are twice G's bytes, so G has the room of 7 % of SVHN; its smallest UMB, 500, is 0.7 %.
    """
    rows = [Row(name, stream, name.lower(), changes=changes) for name in ("JT", "SMB", "ORDisCo", "SMB+UMB")]
    rows += [
        Row(f"SMB+UMB, {share} % of the images", stream, "smb+umb", changes={**changes, "umb_size": images})
        for images, share in ((700, "7"), (70, "0.7"))
    ]
    return Study(title, over_seeds(rows, SEEDS), judged=True)


# Is SMB as good as it can be? On held-out images; what helps SMB would have to go into the preset for all methods.
SMB_CHANGES: tuple[tuple[str, dict[str, Value], str], ...] = (
    ("twice the steps", {"steps": 600}, "the time of an ORDisCo run"),
    ("threshold 0.95", {"threshold": 0.95}, "FixMatch's own"),
    ("threshold 0.6", {"threshold": 0.6}, "more pseudo-labels"),
    ("unlabelled loss × 0.3", {"consistency_weight": 0.3}, "are new classes too loud?"),
    ("no alignment", {"align": "none"}, "does alignment help SMB?"),
)


def smb_tuning(stream: str, title: str) -> Study:
    """SMB with one change at a time, on images held out of the training set."""
    rows = [Row("SMB", stream, "smb", changes=FIXMATCH, stream_changes=HELD_OUT, purpose="the preset")]
    rows += [
        Row(name, stream, "smb", changes={**FIXMATCH, **change}, stream_changes=HELD_OUT, purpose=why)
        for name, change, why in SMB_CHANGES
    ]
    return Study(title, over_seeds(rows, SEEDS), ceiling=None)


def one_change(
    stream: str, title: str, fixed: Mapping[str, Value], changes: tuple[tuple[str, dict[str, Value], str], ...]
) -> Study:
    """ORDisCo as in the preset, then with one change at a time."""
    rows = [Row("ORDisCo", stream, "ordisco", changes=fixed, purpose="the preset")]
    rows += [Row(name, stream, "ordisco", changes={**fixed, **change}, purpose=why) for name, change, why in changes]
    return Study(title, over_seeds(rows, SEEDS), reference="ORDisCo", ceiling=None, judged=True)


STUDIES: dict[str, Study] = {
    "digits-new-class": claims("digits-5-new-class", "Digits, New Class, mean teacher", MEAN_TEACHER),
    "digits-new-class-fixmatch": claims("digits-5-new-class", "Digits, New Class, FixMatch", FIXMATCH),
    "digits-new-instance": claims("digits-1", "Digits, New Instance, mean teacher", MEAN_TEACHER),
    "digits-new-instance-fixmatch": claims("digits-1", "Digits, New Instance, FixMatch", FIXMATCH),
    "svhn-new-class": claims("svhn-1-new-class", "SVHN, New Class, mean teacher", STRONG_TEACHER),
    "svhn-new-class-fixmatch": claims("svhn-1-new-class", "SVHN, New Class, FixMatch", FIXMATCH),
    "svhn-new-instance": claims("svhn-1", "SVHN, New Instance, mean teacher", STRONG_TEACHER),
    "svhn-new-instance-fixmatch": claims("svhn-1", "SVHN, New Instance, FixMatch", FIXMATCH),
    "cifar10-new-class": claims("cifar10-5-new-class", "CIFAR-10, New Class, FixMatch", FIXMATCH),
    "cifar10-new-instance": claims("cifar10-5", "CIFAR-10, New Instance, FixMatch", FIXMATCH),
    "digits-one-change": one_change(
        "digits-5-new-class", "Digits, New Class: one change at a time", MEAN_TEACHER, DIGITS_CHANGES
    ),
    "svhn-buffers": buffers("svhn-1-new-class", "SVHN, New Class: buffers of unlabelled images", FIXMATCH),
    "svhn-smb-tuning": smb_tuning("svhn-1-new-class", "SVHN, New Class: SMB, one change at a time, held-out images"),
    "svhn-one-change": one_change("svhn-1-new-class", "SVHN, New Class: one change at a time", FIXMATCH, SVHN_CHANGES),
}

"""The studies by name: what was run, on what, and what for."""

from __future__ import annotations

from collections.abc import Mapping

from rows import Row, Study, Value, over_seeds

SEEDS = range(3)

# one of the paper's four losses, and the one beyond them; named, whatever the preset has
MEAN_TEACHER: dict[str, Value] = {"unlabeled_loss": "mean-teacher"}
FIXMATCH: dict[str, Value] = {"unlabeled_loss": "fixmatch"}

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


STUDIES: dict[str, Study] = {
    "digits-new-class": claims("digits-5-new-class", "Digits, New Class, mean teacher", MEAN_TEACHER),
    "digits-new-class-fixmatch": claims("digits-5-new-class", "Digits, New Class, FixMatch", FIXMATCH),
    "digits-new-instance": claims("digits-1", "Digits, New Instance, mean teacher", MEAN_TEACHER),
    "digits-new-instance-fixmatch": claims("digits-1", "Digits, New Instance, FixMatch", FIXMATCH),
    "svhn-new-class": claims("svhn-1-new-class", "SVHN, New Class, mean teacher", MEAN_TEACHER),
    "svhn-new-class-fixmatch": claims("svhn-1-new-class", "SVHN, New Class, FixMatch", FIXMATCH),
    "svhn-new-instance": claims("svhn-1", "SVHN, New Instance, mean teacher", MEAN_TEACHER),
    "svhn-new-instance-fixmatch": claims("svhn-1", "SVHN, New Instance, FixMatch", FIXMATCH),
    "cifar10-new-class": claims("cifar10-5-new-class", "CIFAR-10, New Class, FixMatch", FIXMATCH),
    "cifar10-new-instance": claims("cifar10-5", "CIFAR-10, New Instance, FixMatch", FIXMATCH),
}

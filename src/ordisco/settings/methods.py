"""ORDisCo and every baseline of the paper: a method is a choice of parts, a row of one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args, get_type_hints

from ordisco.errors import UsageError, shown

Memory = Literal["none", "labels", "herding", "all"]
Head = Literal["linear", "cosine"]
PenaltyName = Literal["none", "ewc", "si", "mas"]
PenaltyOn = Literal["sl", "sl+ul"]
Replay = Literal["none", "online", "last", "offline-all", "offline-last"]


@dataclass(frozen=True)
class Method:
    """The parts that a method is made of; a row that contradicts itself is refused when it is made.

    memory      what is kept of labelled data: none, labels (all of them: SMB), herding (a fixed number by
                mean-of-feature), all (every image, labelled or not: joint training)
    umb_of_G    unlabelled images kept (UMB), as a multiple of G's bytes, or
    umb_images  as a number of images
    head        linear, or cosine with the Unified Classifier's losses
    penalty     on C: none, ewc, si, mas;  penalty_on: sl (supervised loss) or sl+ul (both)
    gan         are G and D trained?
    replay      of generated images into C: none, online, last (those of the last increment's G, which are real images
                for D, too), offline-all, offline-last
    stabilize   D's important parameters (Eqs. 8–10)?

    >>> Method("x", "X", "nowhere", replay="online")
    Traceback (most recent call last):
        ...
    ordisco.errors.UsageError: method 'x': replay needs a GAN, set gan=True
    """

    name: str
    title: str
    where: str
    memory: Memory = "none"
    umb_of_G: float = 0
    umb_images: int = 0
    head: Head = "linear"
    penalty: PenaltyName = "none"
    penalty_on: PenaltyOn = "sl"
    gan: bool = False
    replay: Replay = "none"
    stabilize: bool = False

    def __post_init__(self) -> None:
        for part, hint in get_type_hints(type(self)).items():
            choices = get_args(hint)
            if choices and getattr(self, part) not in choices:
                raise UsageError(f"method {self.name!r}: {part} = {getattr(self, part)!r} is not one of {choices}")
        if self.umb_of_G < 0 or self.umb_images < 0 or (self.umb_of_G and self.umb_images):
            raise UsageError(f"method {self.name!r}: a UMB has umb_of_G or umb_images, not both and not below 0")
        if not self.gan and (self.replay != "none" or self.stabilize):
            part = "stabilize" if self.stabilize else "replay"
            raise UsageError(f"method {self.name!r}: {part} needs a GAN, set gan=True")

    @property
    def has_umb(self) -> bool:
        """Are unlabelled images kept?"""
        return self.umb_of_G > 0 or self.umb_images > 0

    @property
    def rehearses(self) -> bool:
        """Are replayed images real ones for D?"""
        return self.replay in ("last", "offline-last")

    @property
    def offline(self) -> bool:
        """Are saved generators replayed?"""
        return self.replay in ("offline-all", "offline-last")


TABLE: tuple[Method, ...] = (
    Method("jt", "JT", "Figs. 1, 7", memory="all"),
    Method("st", "ST", "Figs. 1, 7"),
    Method("smb", "SMB", "Figs. 1, 5, 7, 9, Tables 2, 3, 5, 6, 9, 10", memory="labels"),
    Method("smb-mof", "SMB-mof", "Table 6, Fig. 12", memory="herding"),
    Method("smb-mof+umb", "SMB-mof+UMB", "Fig. 12", memory="herding", umb_of_G=1),
    Method("smb-mof+umb+uc", "SMB-mof+UMB+UC", "Fig. 12", memory="herding", umb_of_G=1, head="cosine"),
    Method("smb+umb", "SMB+UMB", "Figs. 5, 9, Tables 2, 5, 10", memory="labels", umb_of_G=1),
    Method("smb+4umb", "SMB+4×UMB", "Table 10", memory="labels", umb_of_G=4),
    Method("smb+umb-500", "SMB+UMB (500)", "Fig. 8", memory="labels", umb_images=500),
    Method("smb+umb-1000", "SMB+UMB (1,000)", "Fig. 8", memory="labels", umb_images=1_000),
    Method("smb+umb-10000", "SMB+UMB (10,000)", "Figs. 1, 8", memory="labels", umb_images=10_000),
    Method("smb+umb+uc", "SMB+UMB+UC", "Figs. 5, 9, Tables 5, 10", memory="labels", umb_of_G=1, head="cosine"),
    Method("smb+4umb+uc", "SMB+4×UMB+UC", "Table 10", memory="labels", umb_of_G=4, head="cosine"),
    Method("ewc-sl", "EWC-sl", "Figs. 1, 7, Table 8", penalty="ewc"),
    Method("ewc-sl+ul", "EWC-sl+ul", "Figs. 1, 7, Table 8", penalty="ewc", penalty_on="sl+ul"),
    Method("si-sl", "SI-sl", "Figs. 1, 7, Table 8", penalty="si"),
    Method("si-sl+ul", "SI-sl+ul", "Figs. 1, 7, Table 8", penalty="si", penalty_on="sl+ul"),
    Method("mas-sl", "MAS-sl", "Figs. 1, 7, Table 8", penalty="mas"),
    Method("mas-sl+ul", "MAS-sl+ul", "Figs. 1, 7, Table 8", penalty="mas", penalty_on="sl+ul"),
    Method("cgan+smb", "cGAN + SMB", "Table 4, Figs. 4, 6", memory="labels", gan=True),
    Method("ordisco", "ORDisCo", "everywhere", memory="labels", gan=True, replay="online", stabilize=True),
    Method("ordisco-reg", "ORDisCo −Reg", "Tables 3, 4, 9", memory="labels", gan=True, replay="online"),
    Method("ordisco-replay", "ORDisCo −Replay", "not in the paper", memory="labels", gan=True, stabilize=True),
    Method(
        "ordisco+umb",
        "ORDisCo + UMB",
        "not in the paper",
        memory="labels",
        umb_of_G=1,
        gan=True,
        replay="online",
        stabilize=True,
    ),
    Method(
        "ordisco-reg+umb",
        "ORDisCo −Reg + UMB",
        "not in the paper",
        memory="labels",
        umb_of_G=1,
        gan=True,
        replay="online",
    ),
    Method("ordisco-last", "ORDisCo, last G", "not in the paper", memory="labels", gan=True, replay="last"),
    Method("ordisco-no-images", "ORDisCo, no images", "not in the paper", gan=True, replay="last"),
    Method("ordisco+", "ORDisCo+", "not in the paper", memory="labels", umb_of_G=1, gan=True, replay="last"),
    Method(
        "ordisco-mof",
        "ORDisCo, SMB-mof",
        "Fig. 12",
        memory="herding",
        gan=True,
        replay="online",
        stabilize=True,
    ),
    Method(
        "offline-all",
        "Offline replay (1), every G kept",
        "Table 1, App. E",
        memory="labels",
        gan=True,
        replay="offline-all",
    ),
    Method(
        "offline-last",
        "Offline replay (2), the last G kept",
        "Table 1, App. E",
        memory="labels",
        gan=True,
        replay="offline-last",
    ),
)

METHODS: dict[str, Method] = {row.name: row for row in TABLE}


def method(name: str) -> Method:
    """The method of that name.

    >>> method("ordisco").replay
    'online'
    """
    if not isinstance(name, str) or name not in METHODS:
        raise UsageError(f"method = {shown(name)} is not allowed: one of {', '.join(METHODS)}")
    return METHODS[name]

"""ORDisCo and every baseline of the paper: a method is a choice of parts, a row of one table."""

from __future__ import annotations

from dataclasses import dataclass

from ordisco.errors import UsageError, shown


@dataclass(frozen=True)
class Method:
    """The parts that a method is made of.

    memory    what is kept of labelled data: none, labels (all of them: SMB), herding (a fixed number by
              mean-of-feature), all (every image, labelled or not: joint training)
    umb       unlabelled images kept (UMB), as a multiple of G's bytes; 0 for none, an int n ≥ 100 for n images
    head      linear, or cosine with the Unified Classifier's losses
    penalty   on C: none, ewc, si, mas;  penalty_on: sl (supervised loss) or sl+ul (both)
    gan       are G and D trained?
    replay    of generated images into C: none, online, offline-all, offline-last
    stabilize D's important parameters (Eqs. 8–10)?
    """

    name: str
    title: str
    where: str
    memory: str = "none"
    umb: float = 0
    head: str = "linear"
    penalty: str = "none"
    penalty_on: str = "sl"
    gan: bool = False
    replay: str = "none"
    stabilize: bool = False


TABLE: tuple[Method, ...] = (
    Method("jt", "JT", "Figs. 1, 7", memory="all"),
    Method("st", "ST", "Figs. 1, 7"),
    Method("smb", "SMB", "Figs. 1, 5, 7, 9, Tables 2, 3, 5, 6, 9, 10", memory="labels"),
    Method("smb-mof", "SMB-mof", "Table 6, Fig. 12", memory="herding"),
    Method("smb+umb", "SMB+UMB", "Figs. 5, 9, Tables 2, 5, 10", memory="labels", umb=1),
    Method("smb+4umb", "SMB+4×UMB", "Table 10", memory="labels", umb=4),
    Method("smb+umb-500", "SMB+UMB (500)", "Fig. 8", memory="labels", umb=500),
    Method("smb+umb-1000", "SMB+UMB (1,000)", "Fig. 8", memory="labels", umb=1_000),
    Method("smb+umb-10000", "SMB+UMB (10,000)", "Figs. 1, 8", memory="labels", umb=10_000),
    Method("smb+umb+uc", "SMB+UMB+UC", "Figs. 5, 9, Tables 5, 10", memory="labels", umb=1, head="cosine"),
    Method("smb+4umb+uc", "SMB+4×UMB+UC", "Table 10", memory="labels", umb=4, head="cosine"),
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
    """The method of that name."""
    if not isinstance(name, str) or name not in METHODS:
        raise UsageError(f"method = {shown(name)} is not allowed: one of {', '.join(METHODS)}")
    return METHODS[name]

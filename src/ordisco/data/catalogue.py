"""The data sets by name, one row each. A new one needs its row here, a reader, a line in docs/data.md and a test.

A reader is a module of `ordisco.data` with two functions: `classes(files)`, the names of the classes by the key that
the files use, and `read(files, keys, size)`, the train and test images of these classes, labelled by their position.
This file loads no torch, so that `ordisco --help` is quick.
"""

from __future__ import annotations

from dataclasses import dataclass

from ordisco.errors import UsageError, shown


@dataclass(frozen=True)
class Source:
    """A file as its publisher offers it: where, how many bytes, which checksums."""

    filename: str
    url: str
    size: int
    md5: str
    sha256: str | None = None  # only where it was computed from a file that has the publisher's MD5


@dataclass(frozen=True)
class Entry:
    """A data set: its files, its reader, and what keeps the meaning of its images."""

    name: str
    reader: str  # the module of `ordisco.data`
    flip: bool  # a mirrored image keeps its label
    translate: int  # pixels by which an image of the side `side` may be shifted; others in proportion
    side: int = 32
    sources: tuple[Source, ...] = ()  # none: the images come with a package
    by_class: bool = False  # only the chosen classes are decoded, as all would take too long
    colour: bool = True  # does colour tell anything of the class?

    def shift(self, side: int) -> int:
        """The shift for images of another side: in proportion, but never larger."""
        return max(1, min(self.translate, self.translate * side // self.side))


# https where the publisher has it; SVHN's publisher gives http addresses only, and its checksum has to vouch for it.
# No SHA-256 is given yet: no file with these MD5s has been at hand to compute one.
TABLE: tuple[Entry, ...] = (
    Entry("digits", "digits", flip=False, translate=1, side=8, colour=False),
    Entry(
        "svhn",
        "svhn",
        flip=False,
        translate=2,
        colour=False,
        sources=(
            Source(
                "train_32x32.mat",
                "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
                182_040_794,
                "e26dedcc434d2e4c54c9b2d4a06d8373",
            ),
            Source(
                "test_32x32.mat",
                "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
                64_275_384,
                "eb5a983be6a315427106f1b164d9cef3",
            ),
        ),
    ),
    Entry(
        "cifar10",
        "cifar10",
        flip=True,
        translate=4,
        sources=(
            Source(
                "cifar-10-binary.tar.gz",
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                170_052_171,
                "c32a1d4ab5d03f1284b67883e8d87530",
            ),
        ),
    ),
    Entry(
        "tiny-imagenet",
        "tiny_imagenet",
        flip=True,
        translate=4,
        by_class=True,
        sources=(
            Source(
                "tiny-imagenet-200.zip",
                "https://cs231n.stanford.edu/tiny-imagenet-200.zip",
                248_100_043,
                "90528d7ca1a48142e341f4ef8d21d0de",
            ),
        ),
    ),
)

CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in TABLE}
OWN = Entry("own", "own", flip=False, translate=4)  # a user's own folder or CSV file


def not_a_dataset(name: str) -> UsageError:
    """The error for what is neither a data set nor one's own data."""
    known = ", ".join(CATALOGUE)
    return UsageError(f"data set {shown(name)} is not allowed: one of {known}, or an existing folder or .csv")


def entry_of(name: str) -> Entry:
    """The row of a data set that has a name."""
    if name not in CATALOGUE:
        raise UsageError(f"data set {shown(name)} is not allowed: one of {', '.join(CATALOGUE)}")
    return CATALOGUE[name]

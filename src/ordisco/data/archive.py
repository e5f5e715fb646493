"""Archives are read member by member; a member whose path points outside is refused."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ordisco.errors import OrdiscoError

if TYPE_CHECKING:
    from io import BufferedIOBase


def check_member(archive: Path, name: str) -> None:
    """Refuse an absolute path, a drive letter or a step upwards."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name:
        raise OrdiscoError(f"{archive}: the member {name!r} points outside the archive; do not trust this file")


class Bounded:
    """A stream that is read up to `limit` bytes, whatever a compressed file may swell to."""

    def __init__(self, archive: Path, stream: BufferedIOBase, limit: int) -> None:
        self._archive, self._stream, self._limit, self._left = archive, stream, limit, limit

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`."""
        content = self._stream.read(min(size, self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            raise OrdiscoError(f"{self._archive}: holds more than {self._limit:,} bytes; not the publisher's file")
        return content

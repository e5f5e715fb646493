"""Archives are read member by member; a member whose path points outside is refused."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from ordisco.errors import OrdiscoError


def check_member(archive: Path, name: str) -> None:
    """Refuse an absolute path, a drive letter or a step upwards."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name:
        raise OrdiscoError(f"{archive}: the member {name!r} points outside the archive; do not trust this file")

"""Is a lock on this file system honest, so that a process on another machine sees it?

Locks are the system's own (`flock`). They last as long as the process that holds them. Linux hands them on to the
server of an NFS mount, unless a mount option says that they are of this machine only.
"""

from __future__ import annotations

import os
from pathlib import Path

MOUNTS = Path("/proc/mounts")
LOCAL = ("nolock", "local_lock=all", "local_lock=flock", "localflock")  # mount options: locks of one machine only


def lock_fault(path: Path, mounts: Path = MOUNTS) -> str | None:
    """Why another machine would not see a lock below this path; None where nothing speaks against it."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return None
    place, found = os.path.realpath(path), ("", "", "")
    for line in lines:
        _, where, kind, options, *_ = [*line.split(), "", "", "", ""]
        where = where.encode().decode("unicode_escape")
        if (place == where or place.startswith(where.rstrip("/") + "/")) and len(where) >= len(found[0]):
            found = (where, kind, options)
    where, kind, options = found
    wrong = [option for option in options.split(",") if option in LOCAL]
    if wrong and (kind.startswith("nfs") or kind == "lustre"):
        return f"{where} is mounted with {wrong[0]}, so that machines do not see each other's locks"
    return None

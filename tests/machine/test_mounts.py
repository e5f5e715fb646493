"""Locks that another machine would not see."""

import pytest

from ordisco.machine.mounts import lock_fault

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/a {at}/nfs4 nfs4 rw,vers=4.2,local_lock=none 0 0
server:/b {at}/nolock nfs rw,vers=3,nolock 0 0
server:/c {at}/nolock/inner nfs rw,vers=3 0 0
server:/d {at}/with\\040space nfs rw,local_lock=flock 0 0
pool {at}/lustre lustre rw,localflock 0 0
"""


@pytest.mark.parametrize(
    ("place", "option"),
    [
        ("here", None),
        ("nfs4/runs", None),
        ("nolock/runs", "nolock"),
        ("nolock/inner/runs", None),
        ("nolocks", None),
        ("with space/runs", "local_lock=flock"),
        ("lustre", "localflock"),
    ],
)
def test_a_mount_whose_locks_are_of_one_machine(tmp_path, place, option):
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS.format(at=tmp_path.resolve()))
    fault = lock_fault(tmp_path / place, mounts)
    assert fault is None if option is None else f"is mounted with {option}, so that" in fault


def test_a_system_that_does_not_tell(tmp_path):
    assert lock_fault(tmp_path, tmp_path / "nothing") is None

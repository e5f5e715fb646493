"""What Linux tells of this process's memory."""

import subprocess
import sys
from pathlib import Path

from ordisco.machine.memory import most_resident, resident_memory, told_by_linux


def test_sizes_are_read_by_their_names(tmp_path: Path):
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmHWM:\t  2000 kB\nVmRSS:\t  1000 kB\n")
    assert (told_by_linux("VmHWM", status), told_by_linux("VmRSS", status)) == (2_048_000, 1_024_000)
    assert told_by_linux("VmSwap", status) is None
    assert told_by_linux("VmRSS", tmp_path / "none") is None


def test_a_process_does_not_count_what_its_parent_held():
    code = "from ordisco.machine.memory import most_resident; print(most_resident())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    mine, now = most_resident(), resident_memory()
    if mine is not None and now is not None:  # Linux
        assert int(done.stdout) < mine / 2
        assert 0 < now <= mine

"""What is free is given back between two phases; on Linux with glibc."""

import subprocess
import sys

import pytest

from ordisco.machine.allocator import give_back_memory, keep_freed_memory
from ordisco.machine.memory import resident_memory

CODE = """
from ordisco.machine.allocator import give_back_memory, keep_freed_memory
from ordisco.machine.memory import resident_memory
keep_freed_memory()
blocks = [b"x" * 2**20 for _ in range(200)]
last = b"x" * 2**20  # above the hole, so that it does not go by itself
full = resident_memory()
del blocks
kept = resident_memory()
print(full, kept, give_back_memory(), resident_memory())
"""


def test_holes_are_kept_until_they_are_given_back():
    if not keep_freed_memory() or resident_memory() is None:
        pytest.skip("the C library is another one")
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    full, kept, gave, after = done.stdout.split()
    assert int(kept) > int(full) - 2**24
    assert gave == "True"
    assert int(after) < int(full) - 150 * 2**20


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not give_back_memory()
    assert not keep_freed_memory()

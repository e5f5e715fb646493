"""Output that is closed, full, without a reader or ASCII only: no traceback, and the run finishes."""

import errno
import io
import os
import subprocess
import sys

import numpy as np
import pytest

from ordisco import cli
from ordisco.report.confusion import confusion_matrix
from ordisco.report.curves import accuracy_curves
from ordisco.report.grids import sample_grid
from ordisco.report.output import Output, guarded
from ordisco.report.terminal import make_display
from tiny import arguments, call, one_line, without_figures


class Broken(io.StringIO):
    """Writes fail."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error


FULL, GONE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), BrokenPipeError(errno.EPIPE, "Broken pipe")
BROKEN = [FULL, GONE, ValueError("I/O operation on closed file"), OSError(errno.EIO, "Input/output error")]


@pytest.mark.parametrize("error", BROKEN)
def test_a_broken_stream_becomes_silent(error):
    stream = Broken(error)
    output = Output(stream)
    print("one", file=output, flush=True)
    stream.write = lambda text: pytest.fail("it is written to again")
    print("two", file=output, flush=True)
    assert output.failure is (error if isinstance(error, OSError) else None)
    display = make_display(guarded(Broken(error)))
    display.message("one")
    display.message("two")


@pytest.mark.parametrize("error", BROKEN)
def test_a_run_finishes_though_nothing_can_be_printed(tmp_path, capsys, monkeypatch, error):
    without_figures(monkeypatch)
    monkeypatch.setattr(sys, "stdout", Broken(error))
    run = tmp_path / "run"
    code = cli.main(arguments(run, "--method", "st", steps=1))
    err = capsys.readouterr().err
    assert code == 0
    assert (run / "summary.json").exists()
    if error in (GONE, BROKEN[2]):
        assert err == ""
    else:
        assert one_line(err) == f"ordisco: warning: cannot write to standard output: {error.strerror}"


def test_a_table_that_cannot_be_printed_is_an_error_but_for_head(capsys, monkeypatch):
    for error, expected in ((FULL, 1), (GONE, 0)):
        monkeypatch.setattr(sys, "stdout", Broken(error))
        assert cli.main(["methods"]) == expected
        assert cli.main(["methods", "--json"]) == expected
        assert "Traceback" not in capsys.readouterr().err


def test_the_streams_are_given_back(capsys):
    before = sys.stdout, sys.stderr
    call(capsys, "--version")
    assert (sys.stdout, sys.stderr) == before


def shell(command, **environment):
    """A command line of a shell, `ordisco` in it."""
    program = f"{sys.executable} -m ordisco"
    return subprocess.run(
        ["bash", "-c", command.replace("ordisco ", f"{program} ")],
        capture_output=True,
        env=os.environ | environment,
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.slow
def test_a_shells_ways_to_lose_output():
    done = shell(
        "ordisco methods >/dev/full; echo $? >&2; ordisco methods | true; echo ${PIPESTATUS[0]} >&2; "
        "ordisco methods >&-; echo $? >&2; ordisco methods >&- 2>&- <&-; echo $? >&2; "
        "ordisco nonsense 2>/dev/full; echo $? >&2"
    )
    assert done.stderr.decode().splitlines() == [
        "ordisco: error: cannot write to standard output: No space left on device",
        *("1", "0", "0", "0", "2"),
    ]


@pytest.mark.slow
def test_a_run_and_its_jobs_in_ascii_without_output(tmp_path):
    """A comparison of two processes, a name that is not UTF-8, standard output and error closed or ASCII."""
    path = os.path.join(os.fsencode(tmp_path), b"r\xff\xc3\xa9")
    words = arguments("OUT", "--method", "st", "--method", "smb", steps=1)
    words[words.index("--jobs") + 1] = "2"
    command = [sys.executable, "-m", "ordisco", *words]
    command[command.index("OUT")] = os.fsdecode(path)
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=os.environ | ascii_only)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"r\\udcff" in done.stdout
    assert done.stdout.isascii()
    assert os.path.exists(path + b"/comparison.md")


@pytest.mark.slow
def test_figures_of_names_that_are_not_unicode(tmp_path):
    odd = os.fsdecode(b"caf\xe9")
    accuracy_curves(tmp_path / "a.png", {"ST": [0.1, 0.2]}, "increment", odd)
    confusion_matrix(tmp_path / "c.png", [[1, 0], [0, 1]], [odd, "b"], odd)
    sample_grid(tmp_path / "s.png", np.zeros((2, 1, 8, 8), dtype=np.uint8), 2, [odd, "b"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "c.png", "s.png"]

"""`python tests/fuzz.py --minutes 20 --seed 1`: wrong input at random, for as long as one likes.

Each case depends only on its kind, the seed and its number, and runs in a forked process, so that a crash of the
interpreter is one failed case. The last line has the counts.
"""

import argparse
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from fuzzing import command_lines, own_data, run_directories
from fuzzing.oracle import SECONDS, Answer, Failure

KINDS: dict[str, Callable[[random.Random, Path], Answer]] = {
    "command-lines": command_lines.one_case,
    "run-directories": run_directories.one_case,
    "own-data": own_data.one_case,
}
MEMORY = 12 * 2**30  # bytes of address space for a case: more is a failure of its own, not of the machine
PATIENCE = 3 * SECONDS + 10


@dataclass
class Counts:
    """What became of the cases of one kind."""

    kind: str
    seed: int
    cases: int = 0
    accepted: int = 0
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        refused = self.cases - self.accepted - len(self.failures)
        return (
            f"{self.kind}: {self.cases} cases, {self.accepted} accepted, {refused} refused, {len(self.failures)} failed"
        )


def fuzz(kind: str, seed: int, seconds: float, first: int = 0, most: int | None = None) -> Counts:
    """Try one case after the other until the time, or their number, is over."""
    counts, until = Counts(kind, seed), time.monotonic() + seconds
    if kind == "run-directories":
        run_directories.prepared()  # in this process, so that all children have it
    last = None if most is None else first + most
    with tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True) as root:
        while time.monotonic() < until and (last is None or first < last):
            first = _one_child(counts, first, until, last, root)
    return counts


def one_case(kind: str, seed: int, number: int, root: str | None = None) -> tuple[str, str]:
    """Run one case here: accepted, refused or failed, and what is to be said about it."""
    folder = Path(tempfile.mkdtemp(prefix="case-", dir=root))
    told = folder / "case.txt"
    try:
        answer = KINDS[kind](random.Random(f"{kind} {seed} {number}"), folder)
        return ("accepted" if answer.code == 0 else "refused"), answer.err
    except Failure as failure:
        case = told.read_text() if told.exists() else ""
        return "failed", f"{case[:2000]}\n{failure}"
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


def _one_child(counts: Counts, number: int, until: float, last: int | None, root: str) -> int:
    """Cases in a forked process as long as it lives; the number of the next case."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of threads
        child = os.fork()
    if child == 0:
        os.close(reader)
        _work(counts.kind, counts.seed, number, until, last, root, writer)
    os.close(writer)
    pending = b""
    ended = False
    with os.fdopen(reader, "rb", buffering=0) as news:
        while not ended:
            ready, _, _ = select.select([news], [], [], PATIENCE)
            piece = news.read(65_536) if ready else b""
            ended = not piece
            *lines, pending = (pending + piece).split(b"\n")
            for line in lines:
                _note(counts, number, *json.loads(line))
                number += 1
        if not ready:
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if status != 0:
        how = "no end" if not ready else f"the process was ended by signal or code {os.waitstatus_to_exitcode(status)}"
        _note(counts, number, "failed", how)
        number += 1
    return number


def _work(kind: str, seed: int, number: int, until: float, last: int | None, root: str, writer: int) -> None:
    """The forked process: a line for each case."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        torch.set_num_threads = lambda count: None  # OpenMP's threads do not survive a fork
        while time.monotonic() < until and (last is None or number < last):
            os.write(writer, json.dumps(one_case(kind, seed, number, root)).encode() + b"\n")
            number += 1
        code = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _note(counts: Counts, number: int, result: str, text: str) -> None:
    counts.cases += 1
    counts.accepted += result == "accepted"
    if result == "failed":
        again = f"python tests/fuzz.py --only {counts.kind} --seed {counts.seed} --case {number}"
        counts.failures.append(f"{text}\nagain: {again}")


def main(argv: list[str] | None = None) -> int:
    """Run all kinds, or one case again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0, help="for all kinds together (default: 20)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=tuple(KINDS), help="one kind of cases")
    parser.add_argument("--case", type=int, help="one case again, in this process")
    args = parser.parse_args(argv)
    import torch

    torch.set_num_threads(1)
    if args.case is not None:
        if args.only is None:
            parser.error("--case needs --only")
        result, text = one_case(args.only, args.seed, args.case)
        print(f"{result}: {text}")
        return int(result == "failed")
    kinds = [args.only] if args.only else list(KINDS)
    every = [fuzz(kind, args.seed, 60 * args.minutes / len(kinds)) for kind in kinds]
    for counts in every:
        for failure in counts.failures:
            print(f"--- {counts.kind}\n{failure}")
    print(f"seed {args.seed}: " + "; ".join(map(str, every)))
    return int(any(counts.failures for counts in every))


if __name__ == "__main__":
    sys.exit(main())

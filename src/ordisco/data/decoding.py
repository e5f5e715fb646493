"""Many image files to one file of uint8 pixels, by all cores, a few images in memory at a time.

Each core has a process of its own, this module run as a program: it is told on standard input which images to decode,
writes their pixels to their places in the file, and answers with a line. (Threads share Python's lock, which small
images hold most of the time; `multiprocessing` would run a user's script again.)
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ordisco.data.picture import Undecodable, decode
from ordisco.errors import OrdiscoError
from ordisco.files import told_in_one_line
from ordisco.machine.cores import cores

CHUNK = 256  # images of a request
ALONE = 1_500  # up to so many images are decoded here: to start processes would take longer


@dataclass
class Outcome:
    """What became of the images, by their numbers."""

    broken: dict[int, str] = field(default_factory=dict)  # why they could not be decoded; their places are left empty
    coloured: int | None = None  # the first that is not grey

    def add(self, answer: dict[str, Any]) -> None:
        """Take over what became of a request."""
        self.broken |= {int(number): why for number, why in answer["broken"]}
        if answer["coloured"] is not None:
            self.coloured = min(answer["coloured"], math.inf if self.coloured is None else self.coloured)


def decode_into(
    file: Path,
    paths: Sequence[str | Path],
    side: int,
    channels: int,
    progress: Callable[[int], None],
    processes: int = 0,
) -> Outcome:
    """Decode images into a new file, one after the other, and say how far it is now and then.

    `processes`: so many; 0: as many as there are cores, where there are enough images.
    """
    size = channels * side * side
    with told_in_one_line("write", file), file.open("xb") as new:
        if paths and hasattr(os, "posix_fallocate"):  # a disk that is too small is told at once
            os.posix_fallocate(new.fileno(), 0, size * len(paths))
        else:
            new.truncate(size * len(paths))
    outcome, done = Outcome(), 0
    count = processes or (1 if len(paths) <= ALONE else cores())
    answers = _here(file, paths, side, channels) if count == 1 else _elsewhere(file, paths, side, channels, count)
    for answer in answers:
        if "error" in answer:
            raise OrdiscoError(f"cannot write {file}: {answer['error']}")
        outcome.add(answer)
        progress(done := done + answer["count"])
    if done < len(paths):
        raise OrdiscoError("a process that decodes images has ended before its work was done: try again")
    return outcome


def _requests(paths: Sequence[str | Path]) -> Iterator[dict[str, Any]]:
    for start in range(0, len(paths), CHUNK):
        yield {"start": start, "paths": [str(path) for path in paths[start : start + CHUNK]]}


def answer(request: dict[str, Any], file: Path, side: int, channels: int) -> dict[str, Any]:
    """Decode the images of a request into their places in the file."""
    start, paths = request["start"], request["paths"]
    pixels = np.zeros((len(paths), channels, side, side), dtype=np.uint8)
    broken, coloured = [], None
    for index, path in enumerate(paths):
        try:
            image, grey = decode(Path(path), side)
        except Undecodable as error:
            broken.append((start + index, str(error)))
            continue
        pixels[index] = image[:channels]
        if not grey and coloured is None:
            coloured = start + index
    try:
        with file.open("r+b") as stream:
            stream.seek(start * pixels[0].nbytes)
            stream.write(pixels.data)
    except OSError as error:
        return {"error": error.strerror or str(error)}
    return {"count": len(paths), "broken": broken, "coloured": coloured}


def _here(file: Path, paths: Sequence[str | Path], side: int, channels: int) -> Iterator[dict[str, Any]]:
    return (answer(request, file, side, channels) for request in _requests(paths))


def _elsewhere(
    file: Path, paths: Sequence[str | Path], side: int, channels: int, count: int
) -> Iterator[dict[str, Any]]:
    """The answers of so many processes, which share the requests."""
    requests, lock = _requests(paths), threading.Lock()
    answers: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def serve(process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        assert process.stdout
        with contextlib.suppress(OSError, ValueError):
            while True:
                with lock:
                    request = next(requests, None)
                if request is None:
                    break
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                line = process.stdout.readline()
                if not line:
                    break
                answers.put(json.loads(line))
        answers.put(None)

    command = [sys.executable, "-m", "ordisco.data.decoding", os.path.realpath(file), str(side), str(channels)]
    workers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for process in workers:
            threading.Thread(target=serve, args=(process,), daemon=True).start()
        busy = count
        while busy:
            found = answers.get()
            if found is None:
                busy -= 1
            else:
                yield found
    finally:
        for process in workers:
            process.kill()
            process.communicate()


def main() -> None:
    """Answer requests until standard input ends; Ctrl-C is for the parent."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    file, side, channels = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), file, side, channels)), flush=True)


if __name__ == "__main__":
    main()

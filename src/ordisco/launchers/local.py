"""Runs in processes on this machine: so many at once, each process with torch loaded for its next run."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

from ordisco.files import told_in_one_line
from ordisco.launchers.base import Command, Ends, Job
from ordisco.launchers.relay import show
from ordisco.launchers.worker import LOOK_SECONDS, End, Maker
from ordisco.report.board import Board
from ordisco.runs.signals import StopRequest


class Local:
    """Processes of this machine."""

    shared = False

    def run(self, jobs: Sequence[Job], at_once: int | None, board: Board) -> Ends:
        """A thread for each process, which takes the next job until there are no more."""
        waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            waiting.put(job)
        news: queue.Queue[tuple[Job, str, list[Any]] | Maker] = queue.Queue()
        makers = [Maker() for _ in range(min(at_once or 1, len(jobs)))]
        ends, running = Ends(), len(makers)
        with StopRequest() as stop:

            def tell(job: Job, call: str, arguments: list[Any]) -> None:
                news.put((job, call, arguments))

            def serve(maker: Maker) -> None:
                try:
                    while stop.reason is None:
                        job = waiting.get_nowait()
                        end = maker.surely(job, partial(tell, job), lambda: bool(stop.reason))
                        news.put((job, "ended", [end]))
                except queue.Empty:
                    pass
                finally:
                    maker.close()
                    news.put(maker)

            threads = [threading.Thread(target=serve, args=(maker,), daemon=True) for maker in makers]
            for thread in threads:
                thread.start()
            try:
                while running:
                    try:
                        what = news.get(timeout=LOOK_SECONDS)  # not forever, so that a signal is seen
                    except queue.Empty:
                        continue
                    if isinstance(what, Maker):
                        running -= 1
                        continue
                    job, call, arguments = what
                    if call != "ended":
                        show(board.row(job.name), call, arguments)
                        continue
                    note(ends, board, job, arguments[0])
            except BaseException:
                stop.reason = stop.reason or "an error"
                for maker in makers:
                    maker.kill()
                raise
            finally:
                for thread in threads:
                    thread.join()
            ends.stopped_by = stop.reason
        return ends

    def leave(self, jobs: Sequence[Job], at_once: int | None, command: Command) -> str:
        """A process of its own session makes them."""
        with told_in_one_line("write", command.log):
            command.log.parent.mkdir(parents=True, exist_ok=True)
            with command.log.open("ab") as log:
                child = subprocess.Popen(
                    [sys.executable, "-m", "ordisco", *command.with_jobs(at_once)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        child.returncode = 0  # it is nobody's child any more: no warning that it still runs
        return f"made by process {child.pid}, which writes to {command.log}; stop it with: kill {child.pid}"


def note(ends: Ends, board: Board, job: Job, end: End) -> None:
    """A job has ended."""
    board.remove(job.name)
    if end.kind == "failed":
        ends.failures[job.name] = end.reason
        board.row(job.name).message(f"failed: {end.reason}")

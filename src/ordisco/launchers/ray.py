"""Runs as tasks of a Ray cluster: each with its CPUs, GPUs and memory, on whichever node has room.

A task that is lost with its node is started again elsewhere by Ray, and goes on from the run's last checkpoint. The
nodes need the same installation and the run directories under the same paths.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

from ordisco.errors import OrdiscoError, UsageError
from ordisco.launchers.base import ATTEMPTS, Command, Ends, Job, Needs
from ordisco.launchers.local import note
from ordisco.launchers.ray_here import cluster_here
from ordisco.launchers.relay import show
from ordisco.launchers.worker import LOOK_SECONDS, End, Maker
from ordisco.report.board import Board
from ordisco.runs.signals import StopRequest
from ordisco.words import size

LEASE = 120.0  # seconds for which the lock of a lost machine may last; NFS: 90
ASK_SECONDS = 1.0  # between two questions of a task whether to stop
KEPT: dict[str, Maker] = {}  # in a Ray worker: the process that made its last run, by the GPUs that it sees


class Ray:
    """A cluster at an address, or one that is started here and lasts as long as the command."""

    shared = True

    def __init__(self, address: str | None = None) -> None:
        self.address = address

    def run(self, jobs: Sequence[Job], at_once: int | None, board: Board) -> Ends:
        """A task a run."""
        with StopRequest() as stop, connected(self.address) as ray:
            check_room(ray, jobs)
            switchboard = beside(ray, Switchboard).remote()
            task = ray.remote(make_on_node)
            waiting, ends = list(jobs), Ends()
            running: dict[Any, Job] = {}
            try:
                while running or (waiting and stop.reason is None):
                    while waiting and stop.reason is None and len(running) < (at_once or len(jobs)):
                        job = waiting.pop(0)
                        running[task.options(**options(job)).remote(job, switchboard)] = job
                    if not running:  # stopped before the first
                        break
                    if stop.reason is not None:
                        ray.get(switchboard.stop.remote())
                    done, _ = ray.wait(list(running), num_returns=len(running), timeout=LOOK_SECONDS)
                    for name, call, arguments in ray.get(switchboard.take.remote()):
                        show(board.row(name), call, arguments)
                    for reference in done:
                        note(ends, board, running.pop(reference), outcome(ray, reference))
            except KeyboardInterrupt:
                for reference in running:
                    ray.cancel(reference, force=True)
                raise
            ends.stopped_by = stop.reason
            return ends

    def leave(self, jobs: Sequence[Job], at_once: int | None, command: Command) -> str:
        """An actor of the cluster gives the command, on this node."""
        if self.address is None:
            raise UsageError("detach is not allowed with a cluster that ends with the command: give --ray-address")
        with connected(self.address) as ray:
            check_room(ray, jobs)
            address = ray.get_runtime_context().gcs_address
            words = (*command.with_jobs(at_once), *alike(jobs), "--launcher", "ray", "--ray-address", address)
            name = f"ordisco {command.log.parent.resolve()}"
            try:
                actor = beside(ray, Giver, name=name, lifetime="detached", namespace="ordisco").remote()
                ray.get(actor.give.remote(words, str(command.log.resolve())))
            except ValueError:
                raise OrdiscoError(f"{command.log.parent} is being made on this cluster already: wait") from None
        return f"made on the cluster, which writes to {command.log}; stop it with: touch {stop_file(command.log)}"


def alike(jobs: Sequence[Job]) -> tuple[str, ...]:
    """What all runs take alike, as options: whoever asks for something asks for all. The rest follows from settings."""
    values = {
        "--run-cpus": {str(job.needs.cpus) for job in jobs},
        "--run-gpus": {str(job.needs.gpus) for job in jobs},
        "--run-memory": {str(job.needs.memory / 2**30) for job in jobs},
    }
    return tuple(word for option, same in values.items() if len(same) == 1 for word in (option, *same))


def stop_file(log: Path) -> Path:
    """Whose appearance stops what was left."""
    return log.with_suffix(".stop")


def options(job: Job) -> dict[str, Any]:
    """What Ray is told of a task."""
    return {
        "name": job.name,
        "num_cpus": job.needs.cpus,
        "num_gpus": job.needs.gpus,
        "memory": job.needs.memory,
        "max_retries": ATTEMPTS - 1,
        "scheduling_strategy": "SPREAD",
    }


# ---------------------------------------------------------------------- on the nodes


def make_on_node(job: Job, switchboard: Any) -> End:
    """The task: have a process on this node make the run, and pass on what it tells."""
    import ray

    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    maker = KEPT.setdefault(gpus, Maker(LEASE))
    os.environ.pop("OMP_NUM_THREADS", None)  # which Ray sets; the run's settings say how many threads it takes
    asked, at = False, 0.0
    answer: Any = None

    def stopping() -> bool:  # without ray.get: a task that waits for Ray has its CPUs given to another
        nonlocal asked, at, answer
        if answer is None and time.monotonic() - at > ASK_SECONDS:
            at, answer = time.monotonic(), switchboard.stopping.remote().future()
        if answer is not None and answer.done():
            try:
                asked, answer = asked or answer.result(), None
            except ray.exceptions.RayError:  # the command has ended
                asked, answer = True, None
        return asked

    return maker.surely(job, lambda call, arguments: switchboard.tell.remote(job.name, call, arguments), stopping)


class Switchboard:
    """An actor beside the command: what the runs have told, and whether they should stop."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, list[Any]]] = []
        self.asked = False

    def tell(self, name: str, call: str, arguments: list[Any]) -> None:
        """A run tells something."""
        self.told.append((name, call, arguments))

    def take(self) -> list[tuple[str, str, list[Any]]]:
        """What has been told since the last time."""
        told, self.told = self.told, []
        return told

    def stop(self) -> None:
        """Have all stop."""
        self.asked = True

    def stopping(self) -> bool:
        """Should a run stop?"""
        return self.asked


class Giver:
    """An actor that outlives the command which has made it, and gives another."""

    def give(self, words: tuple[str, ...], log: str) -> None:
        """Start the command; the actor ends with it."""
        import ray

        stop_file(Path(log)).unlink(missing_ok=True)
        with open(log, "ab") as out:
            # without what Ray tells its own workers: the command is another of its users, who may need its token
            own = {
                name: value
                for name, value in os.environ.items()
                if name.startswith("RAY_AUTH") or not name.startswith(("RAY_", "OMP_NUM_THREADS"))
            }
            child = subprocess.Popen(
                [sys.executable, "-m", "ordisco", *words], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=own
            )

        def wait() -> None:
            until_done(child, stop_file(Path(log)))
            ray.kill(ray.get_runtime_context().current_actor)

        threading.Thread(target=wait, daemon=True).start()


def until_done(child: subprocess.Popen[bytes], stop: Path) -> None:
    """Wait for a command; ask it to stop when the file appears."""
    asked = False
    while child.poll() is None:
        if stop.exists() and not asked:  # a second signal would have it stop without saving
            asked = True
            child.terminate()
        time.sleep(ASK_SECONDS)
    stop.unlink(missing_ok=True)


# ---------------------------------------------------------------------- the cluster


@contextmanager
def connected(address: str | None) -> Iterator[ModuleType]:
    """Ray, connected to a cluster; one that is started here ends with the block."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if importlib.util.find_spec("ray") is None:
        raise OrdiscoError("ray is not installed: pip install 'ordisco[ray]'")
    with cluster_here() if address is None else nullcontext(address) as place:
        import ray  # which looks at the environment once

        kept = signal.getsignal(signal.SIGTERM)  # which Ray takes
        try:
            ray.init(address=place, namespace="ordisco", log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            first = (str(error).splitlines() or [repr(error)])[0]
            raise OrdiscoError(f"no Ray cluster at {address or 'this machine'}: {first}") from error
        finally:
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(signal.SIGTERM, kept)
        try:
            yield ray
        finally:
            with contextlib.suppress(Exception):
                ray.shutdown()


def beside(ray: ModuleType, actor: type, **more: str) -> Any:
    """An actor on the node of this command: it is not lost with another."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(actor).options(num_cpus=0, scheduling_strategy=here, **more)


def check_room(ray: ModuleType, jobs: Sequence[Job]) -> None:
    """Refuse a run that no node has room for: Ray would wait for one to come."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for needs in dict.fromkeys(job.needs for job in jobs):
        if not any(fits(needs, node) for node in nodes):
            raise UsageError(
                f"a run of {needs.cpus} CPUs, {needs.gpus:g} GPUs and {size(needs.memory)} is not allowed: "
                f"none of the cluster's {len(nodes)} nodes has them (--run-cpus, --run-gpus, --run-memory)"
            )


def fits(needs: Needs, node: dict[str, float]) -> bool:
    """Has a node, when it is idle, what a run needs?"""
    asked = {"CPU": needs.cpus, "GPU": needs.gpus, "memory": needs.memory}
    return all(node.get(name, 0.0) >= amount for name, amount in asked.items())


def outcome(ray: ModuleType, reference: Any) -> End:
    """What became of a task."""
    try:
        end: End = ray.get(reference)
    except ray.exceptions.RayError as error:
        first = (str(error).splitlines() or [repr(error)])[0]
        return End("failed", f"lost {ATTEMPTS} times ({first})")
    return end

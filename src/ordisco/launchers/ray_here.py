"""A Ray cluster of this machine alone, for the time of one command.

A process of its own session keeps it. A terminal's Ctrl-C and a signal to the command's process group so reach the
command alone, and its runs are saved before the cluster ends. When the command dies, its end of a pipe is closed, and
the cluster ends too.

Ray listens on the machine's address, whatever it is asked. A token that nobody else has keeps others out.
"""

from __future__ import annotations

import logging
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from ordisco.errors import OrdiscoError, readable
from ordisco.machine.cores import cores

PATIENCE = 30.0  # seconds for the cluster to end


@contextmanager
def cluster_here() -> Iterator[str]:
    """The address of a cluster that ends with the block."""
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(
            [sys.executable, "-m", "ordisco.launchers.ray_here"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            start_new_session=True,
        ) as keeper,
    ):
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        try:
            address = keeper.stdout.readline().decode().strip()
            if not address:
                complaints.seek(0)
                lines = complaints.read().decode(errors="replace").split("\n")
                said = [line for line in lines if line.strip()] or ["its process has ended"]
                raise OrdiscoError(f"no Ray cluster could be started here: {readable(said[-1])}")
            yield address
        finally:
            keeper.stdin.close()
            try:
                keeper.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                keeper.kill()  # Ray's processes end with the one that has started them


def keep() -> None:
    """Start a cluster, tell its address, end it when the command is done or gone."""
    import ray

    ray.init(
        address="local",
        num_cpus=cores(),
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    print(ray.get_runtime_context().gcs_address, flush=True)
    sys.stdin.read()
    ray.shutdown()


if __name__ == "__main__":
    keep()

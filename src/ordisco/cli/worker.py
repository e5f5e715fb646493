"""`ordisco worker`: a process that a launcher gives runs to, one after the other (not for users)."""

from __future__ import annotations

import argparse
import gc
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from ordisco.errors import OrdiscoError
from ordisco.runs.signals import leave_interrupts_to_parent


def add_parser(subparsers: argparse._SubParsersAction[Any], top: Callable[[], argparse.ArgumentParser]) -> None:
    """Declare the command, without a line in the list of commands; `top` is the whole command line."""
    parser = subparsers.add_parser("worker")
    parser.set_defaults(command=lambda args: run(top))


def run(top: Callable[[], argparse.ArgumentParser]) -> int:
    """Make each job that the parent gives, and tell how it ended."""
    leave_interrupts_to_parent()
    import torch  # loaded once, before the first job comes

    from ordisco.cli import is_out_of_memory
    from ordisco.launchers.relay import END, Parent, Relay

    parent, relay, threads = Parent(), Relay(sys.stdout), torch.get_num_threads()
    for words in parent.jobs():
        code, line = 0, ""
        torch.set_num_threads(threads)
        with warnings.catch_warnings():  # said once a job, not once a process
            try:
                args = top().parse_args(words)
                args.parent = parent
                args.command(args)
            except OrdiscoError as error:
                code, line = error.exit_code, str(error)
            except BaseException as error:
                if isinstance(error, MemoryError | RuntimeError) and is_out_of_memory(error):
                    relay.tell(END, 1, "not enough memory: lower the widths or the batch sizes")
                    return 1
                traceback.print_exc()
                relay.tell(END, 1, f"{type(error).__name__}: {error}".splitlines()[0])
                return 1  # what is left in this process is not to be trusted
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        relay.tell(END, code, line)
    return 0

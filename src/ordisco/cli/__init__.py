"""The command `ordisco`. Each sub-command is a module; torch is imported only when one runs."""

from __future__ import annotations

import sys
import warnings

from ordisco.cli import (
    ask,
    bench,
    data,
    export,
    judge,
    label,
    learn,
    methods,
    nets,
    paper,
    predict,
    report,
    resume,
    run,
    sample,
    show,
    stream,
    study,
    test,
    undo,
    worker,
)
from ordisco.cli.options import Parser, check_arguments
from ordisco.errors import OrdiscoError, readable
from ordisco.report.output import guarded_streams

USE = (learn, predict, test, ask, label, sample, export, show, undo)  # a model in use; the others are for research


def parser() -> Parser:
    """The whole command line."""
    top = Parser(
        prog="ordisco",
        description="Semi-supervised continual learning with online generative replay (ORDisCo, CVPR 2021).",
        epilog="Start with `ordisco run`: ORDisCo and a label buffer on the embedded digits, side by side.",
    )
    top.add_argument("--version", action="store_true", help="print the version and exit")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for module in (*USE, run, resume, study, paper, report, judge, stream, data, methods, nets, bench):
        module.add_parser(commands)
    worker.add_parser(commands, parser)
    return top


def show_warning(message: Warning | str, category: type[Warning], *place: object) -> None:
    """One plain line, like an error."""
    print(f"ordisco: warning: {readable(message)}", file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    """Run a command; a user's mistake is one line on standard error, without a traceback.

    A run ends well though its output could not be printed; for other commands the output is all there is.
    """
    with guarded_streams() as output:
        code = run_command(argv)
        output.flush()
        failure = output.failure
        if failure is None or isinstance(failure, BrokenPipeError):  # its reader, such as `head`, has had enough
            return code
        lasting = is_lasting(sys.argv[1:] if argv is None else argv)
        kind = "warning" if lasting else "error"
        print(f"ordisco: {kind}: cannot write to standard output: {failure.strerror or failure}", file=sys.stderr)
        return code if lasting else code or 1


def is_lasting(argv: list[str]) -> bool:
    """Does the command leave more than what it prints?"""
    printed = {"--list", "--table", "--check", "--show", "--json"}
    if argv[:1] in (["study"], ["paper"]):
        return len(argv) > 1 and not argv[1].startswith("-") and not printed & set(argv)
    made = ["run", "resume", "judge", "report", "learn", "label", "sample", "export", "undo"]
    return argv[:1] in [[name] for name in made]


def run_command(argv: list[str] | None) -> int:
    """Run a command and give its exit code."""
    warnings.showwarning = show_warning  # type: ignore[assignment]
    try:
        top = parser()
        check_arguments(sys.argv[1:] if argv is None else argv)
        args = top.parse_args(argv)
        if args.version:
            from ordisco import __version__

            print(__version__)
            return 0
        if not hasattr(args, "command"):
            top.print_help()
            return 0
        return int(args.command(args) or 0)
    except OrdiscoError as error:
        stopped = error.exit_code == 130  # as asked, which is no error
        print(f"ordisco: {'' if stopped else 'error: '}{error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("ordisco: interrupted", file=sys.stderr)
        return 130
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        print("ordisco: error: not enough memory: lower the widths or the batch sizes", file=sys.stderr)
        return 1


def is_out_of_memory(error: MemoryError | RuntimeError) -> bool:
    """Torch has a class of its own for GPUs, and only words for the CPU."""
    words = ("can't allocate memory", "Storage size calculation overflowed")
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or any(part in str(error) for part in words)
    )

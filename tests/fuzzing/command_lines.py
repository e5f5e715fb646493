"""Command lines: a sub-command, options out of its own parser, and values out of a pool of nasty ones."""

import argparse
import os
import random
from pathlib import Path

import torch

from fuzzing.oracle import Answer, ask
from ordisco.cli import parser
from ordisco.settings.methods import METHODS
from tiny import BATCHES, NETS, STREAM

NUMBERS = ("-1", "0", "1", "2", "3", "1.5", "-0", "+1", "1_0", "0x10", "1e3", "1e-3", "0.5", "nan", "inf", "-inf")
NUMBERS += ("1e99", str(10**12), str(2**63), str(10**30), "9" * 5_000, "1e400", "１", "1,000", "1 ", "0b1", "--1", "1e")
TEXTS = ("", " ", "x", "all", "None", "true", "nan", "-", "--", ".", "..", "/", "~", "~nobody/x", "/dev/null/x")
TEXTS += ("/dev/null", "/proc/self/mem", "0,1", "0,1,2,3", "a,,b", ",", "-1", "digits", "digits-1", "svhn")
TEXTS += ("a\0b", "a\nb", "\x1b[2J", "\udcff", "é😀", "[/y]", "%s", "{}", "\\", "'", '"', "$(x)", "*")
TEXTS += ("n" * 300, "n" * 5_000, "n," * 5_000, "/" * 5_000, "a/" * 2_000)
TINY_DATA = ("--increments", "1", "--classes", "0,1,2,3", "--max-images", "80")
BASE = (*TINY_DATA, *NETS, *BATCHES, "--threads", "1", "--accelerator", "cpu", "--precision", "32-true", "--jobs", "1")
BASE += ("--steps", "1")
COMMANDS = {"run": 12, "resume": 2, "stream": 5, "data": 3, "methods": 1, "nets": 2, "bench": 1, "nothing": 1}
NEVER = {"--help", "--tensorboard"}  # ends at once; takes long
JUNK_ONLY = {"--precision", "--job"}  # bf16 may be an instruction that the processor lacks
DRY = {"--devices", "--seeds"}  # would start processes


def options_of(command: str) -> list[argparse.Action]:
    """The options that the command has."""
    [commands] = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    actions = commands.choices[command]._actions
    return [action for action in actions if action.option_strings and not NEVER & set(action.option_strings)]


def value_for(action: argparse.Action, rng: random.Random) -> str:
    """Something to give an option, right now and then."""
    right = [str(choice) for choice in action.choices or ()]
    if action.dest == "method":
        right += [*METHODS, "all"]
    if right and action.option_strings[0] not in JUNK_ONLY and rng.random() < 0.6:
        return rng.choice(right)
    return rng.choice(NUMBERS if rng.random() < 0.6 else TEXTS)


def words_of(command: str, rng: random.Random, count: int) -> list[tuple[str, ...]]:
    """So many options, each with a value if it takes one; now and then written with = or twice."""
    given: list[tuple[str, ...]] = []
    for action in rng.sample(options_of(command), count):
        flag = rng.choice(action.option_strings)
        takes = action.nargs != 0
        value = value_for(action, rng) if takes else ""
        words = ((f"{flag}={value}",) if rng.random() < 0.2 else (flag, value)) if takes else (flag,)
        given += [words] * (2 if rng.random() < 0.05 else 1)
    return given


def flags_in(given: list[tuple[str, ...]]) -> set[str]:
    """The names of the options."""
    return {words[0].partition("=")[0] for words in given}


def command_line(rng: random.Random) -> list[str]:
    """A command line that ends quickly if it is taken."""
    [command] = rng.choices(list(COMMANDS), list(COMMANDS.values()))
    if command == "nothing":
        return [rng.choice(TEXTS) for _ in range(rng.randrange(3))]
    available = len(options_of(command))
    given = words_of(command, rng, min(available, rng.choice((0, 1, 1, 1, 2, 2, 3, 4))))
    argv = [command]
    if command == "run":
        argv += [STREAM if rng.random() < 0.8 else rng.choice(TEXTS)]
        usual = [pair for pair in zip(BASE[::2], BASE[1::2], strict=True) if pair[0] not in flags_in(given)]
        if DRY & flags_in(given) or any("all" in words for words in given):
            usual += [("--dry-run",)] if "--dry-run" not in flags_in(given) else []
        elif "--max-steps" not in flags_in(given):
            usual += [("--max-steps", "1")]
        if "--method" not in flags_in(given) and rng.random() < 0.8:
            usual += [("--method", rng.choice(("st", "smb", "ordisco", "ewc-sl", "smb+umb+uc")))]
        given = usual + given
    elif command == "resume":
        argv += [rng.choice(TEXTS)]
    elif command == "stream":
        argv += [rng.choice(("digits", "digits-1", STREAM)) if rng.random() < 0.8 else rng.choice(TEXTS)]
    elif command == "data":
        name = rng.choice((*TEXTS, "digits", "digits"))
        argv += rng.choice(([], ["list"], ["list", name], ["check", name], ["check", name], ["fetch", name]))
    elif command == "bench":
        argv += ["--frobnicate"]  # a whole measurement would take minutes
    rng.shuffle(given)
    return argv + [word for words in given for word in words]


def one_case(rng: random.Random, folder: Path) -> Answer:
    """Make a command line, run it in an empty folder."""
    argv = command_line(rng)
    os.chdir(folder)
    (folder / "case.txt").write_text(repr(argv), encoding="utf-8")
    try:
        return ask(argv)
    finally:
        torch.set_num_threads(1)

"""Do two checkouts compute the same numbers? Bit for bit, on this machine.

    python tools/same_numbers.py CHECKOUT OTHER [--methods M ...] [--streams S ...] [--steps N]

Each method learns two increments of each stream in both checkouts. Compared are the tensors of the last checkpoint
by their content, so names may change, the increments' metrics but for times and memory, and the sample grids.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

METHODS = ("ordisco", "smb", "jt", "smb+umb+uc", "ewc-sl+ul", "offline-last")
STREAMS = ("digits-1", "digits-1-new-class")
VARYING = ("seconds", "total_seconds", "total_cpu_seconds", "cpu_seconds", "peak_memory_bytes")


def run(checkout: Path, out: Path, stream: str, method: str, steps: int, more: list[str]) -> None:
    """Two increments; offline replay makes as many steps again in the second."""
    total = steps * (3 if method.startswith("offline") else 2)
    command = [sys.executable, "-m", "ordisco", "run", stream, "--method", method, "--steps", str(steps)]
    command += ["--max-steps", str(total), "--out", str(out), "--threads", "1", "--accelerator", "cpu"]
    command += ["--precision", "32-true", *more]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=out.parent)
    if done.returncode:
        raise SystemExit(f"{checkout}: {method} on {stream} failed: {done.stderr.strip()}")


def numbers(out: Path) -> dict[str, Any]:
    """What must not differ."""
    from safetensors.torch import load_file

    last = max((out / "checkpoints").iterdir())
    tensors = load_file(last / "tensors.safetensors").values()
    digests = Counter(
        hashlib.sha256(f"{t.dtype} {tuple(t.shape)}".encode() + t.contiguous().numpy().tobytes()).hexdigest()
        for t in tensors
        if t.numel() > 1  # single numbers, such as counters, may move into the state
    )
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    metrics = [{key: line[key] for key in line if key not in VARYING} for line in lines]
    grids = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (out / "samples").glob("*.png")}
    return {"tensors": digests, "metrics": metrics, "grids": grids}


def difference(mine: dict[str, Any], its: dict[str, Any]) -> str:
    """`the same`, or where the two differ first."""
    if mine["tensors"] != its["tensors"]:
        changed = sum((mine["tensors"] - its["tensors"]).values())
        return f"{changed} of {sum(mine['tensors'].values())} tensors differ"
    for a, b in zip(mine["metrics"], its["metrics"], strict=False):
        for key in a.keys() & b.keys():
            if a[key] != b[key]:
                return f"metrics differ: {key} of increment {a['increment']}"
    if len(mine["metrics"]) != len(its["metrics"]):
        return "metrics differ: another number of lines"
    return "the same" if mine["grids"] == its["grids"] else "sample grids differ"


def main() -> int:
    """Compare; the exit code is 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--methods", nargs="+", default=METHODS, metavar="M")
    parser.add_argument("--streams", nargs="+", default=STREAMS, metavar="S")
    parser.add_argument("--steps", type=int, default=60, help="steps an increment (default: 60)")
    parser.add_argument("--keep", type=Path, help="keep and reuse the runs below this directory")
    parser.add_argument("options", nargs="*", help="after --: more options of `ordisco run`")
    args = parser.parse_args()
    different = 0
    with tempfile.TemporaryDirectory() as temporary:
        root = (args.keep or Path(temporary)).resolve()
        print("| stream | method | tensors | metrics lines | outcome |\n| --- | --- | ---: | ---: | --- |")
        for stream in args.streams:
            for method in args.methods:
                found = []
                for checkout in (args.checkout.resolve(), args.other.resolve()):
                    place = hashlib.sha256(f"{checkout} {args.steps} {args.options}".encode()).hexdigest()[:8]
                    out = root / place / f"{stream}-{method}"
                    if not out.exists():
                        out.parent.mkdir(parents=True, exist_ok=True)
                        run(checkout, out, stream, method, args.steps, args.options)
                    found.append(numbers(out))
                outcome = difference(*found)
                different += outcome != "the same"
                counts = sum(found[0]["tensors"].values()), len(found[0]["metrics"])
                print(f"| {stream} | {method} | {counts[0]} | {counts[1]} | {outcome} |", flush=True)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

"""A delivery of many images: how fast they are decoded, and the most memory that learning them holds.

    python benchmarks/big_delivery.py --images 1000000 --folder big/

Writes so many 32×32 colour JPEG files (unless the folder has them), of which 1,000 are labelled, learns them for 100
steps in a process of its own, and prints what was measured. The memory is that of the process and of those that decode
for it, from /proc, so that this needs Linux. A model of an earlier measurement in the same folder is replaced.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES, LABELED, SIDE, A_FOLDER = 10, 1_000, 32, 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    delivery, model = args.folder / f"delivery-{args.images}", args.folder / "model"
    write_images(delivery, args.images)
    shutil.rmtree(model, ignore_errors=True)
    print(json.dumps({"images": args.images, **measure(delivery, model, args.steps)}, indent=1))


def write_images(folder: Path, count: int) -> None:
    """JPEG files of coloured patches; a class is a main colour."""
    if (folder / "done").exists():
        return
    rng = np.random.RandomState(0)
    started = time.monotonic()
    for number in range(count):
        label = number % CLASSES
        small = rng.randint(0, 256, (4, 4, 3), dtype=np.uint8)
        small[..., label % 3] //= 1 + label // 3
        image = Image.fromarray(small).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        place = Path(str(label)) if number < LABELED else Path("unlabeled", f"{number // A_FOLDER:04d}")
        (folder / place).mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=90)
        (folder / place / f"{number:07d}.jpg").write_bytes(buffer.getvalue())
        if number % 50_000 == 49_999:
            print(
                f"{number + 1:,} files written, {(number + 1) / (time.monotonic() - started):,.0f} a second", flush=True
            )
    (folder / "done").touch()


def measure(delivery: Path, model: Path, steps: int) -> dict[str, float | int | str]:
    """Learn in a process of its own, and look at its memory ten times a second."""
    command = [sys.executable, "-u", "-m", "ordisco", "learn", str(model), str(delivery), "--steps", str(steps)]
    command += ["--threads", "1"]
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = {"process": 0, "together": 0}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            own, others = resident(process.pid), sum(resident(child) for child in children(process.pid))
            peak["process"], peak["together"] = max(peak["process"], own), max(peak["together"], own + others)

    watcher = threading.Thread(target=watch)
    watcher.start()
    decoded: float | None = None
    assert process.stdout
    for line in process.stdout:
        print(line, end="", flush=True)
        if "labelled and" in line:  # decoding, and what is measured before learning, are over
            decoded = time.monotonic() - started
    done.set()
    watcher.join()
    if process.wait() or decoded is None:
        raise SystemExit(f"ordisco learn failed with {process.returncode}")
    count = sum(json.loads(line)["images"] for line in (model / "history.jsonl").read_text().splitlines())
    return {
        "seconds_until_learning": round(decoded, 1),
        "images_a_second": round(count / decoded),
        "seconds_in_all": round(time.monotonic() - started, 1),
        "peak_resident_MB": round(peak["process"] / 1e6),
        "peak_resident_with_decoders_MB": round(peak["together"] / 1e6),
    }


def resident(pid: int) -> int:
    """Bytes of a process in memory; those that it shares with others count in full."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except (OSError, IndexError):
        return 0


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


if __name__ == "__main__":
    main()

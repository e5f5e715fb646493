"""Two reports side by side, made up; and the files that keep them."""

import json
from pathlib import Path

import pytest

from ordisco.bench import here
from ordisco.bench.against import Change, changes, compared
from ordisco.bench.tables import tables
from ordisco.bench.values import Report, Value, error_of, read_report
from ordisco.errors import OrdiscoError

MACHINE = {
    "processor": "AMD EPYC",
    "instructions": ["AVX-512-bf16", "AVX-512", "AVX2"],
    "cores": 2,
    "gpu": None,
    "precision": "32-true",
    "torch": "2.13",
    "commit": "0123456789",
    "dirty": True,
}
STEP = "step: small, 1 thread"


def report(step: float, plain: float = 2.0, error: float = 0.002, **machine: object) -> Report:
    rows = {"step / products": Value(step, "×", error), "plain / step": Value(plain, "×", error, "more")}
    return Report(MACHINE | machine, {STEP: rows, "memory: a process": {"a run": Value(300.0, "MB")}})


def verdicts(now: Report, then: Report) -> list[str]:
    return [change.verdict for change in changes(now, then)]


def test_a_slower_commit_is_seen_and_noise_is_not():
    assert verdicts(report(1.30), report(1.20)) == ["worse", "", ""]
    assert verdicts(report(1.10), report(1.20)) == ["better", "", ""]
    assert verdicts(report(1.20, plain=1.8), report(1.20)) == ["", "worse", ""]  # more is better there
    assert verdicts(report(1.23), report(1.20)) == ["", "", ""]  # below 3 %
    assert verdicts(report(1.30, error=0.03), report(1.20)) == ["", "", ""]  # below three errors of 3 %


def test_what_is_neither_good_nor_bad_is_never_marked():
    value = Value(1.0, "×", 0.0, "neither")
    assert Change("a", "b", value, Value(5.0, "×", 0.0, "neither")).verdict == ""
    assert Change("a", "b", Value(0.0, "B"), Value(0.0, "B")).verdict == ""
    assert Change("a", "b", Value(0.0, "B"), Value(8.0, "B")).verdict == "worse"


def test_the_comparison_in_words():
    now, then = report(1.5), report(1.2, processor="Other")
    del then.sections["memory: a process"]
    text = compared(now, then)
    assert f"| {STEP}: step / products | 1.20 × | 1.50 × | 1.250 | ± 0.030 | worse |" in " ".join(text.split())
    assert "different processors" in text
    assert "Only in one of both: memory: a process: a run." in text
    assert text.endswith(f"Worse by more than the noise: {STEP}: step / products.")
    assert compared(now, now).endswith("nothing.")
    assert "different processors" not in compared(now, now)
    assert "or one was held back" in compared(now, report(1.5, limits={"ONEDNN_MAX_CPU_ISA": "AVX2"}))


def test_a_report_is_read_back_as_it_was(tmp_path: Path):
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report(1.2).to_dict()))
    assert read_report(file) == report(1.2)
    for damaged in ("[]", "{", '{"format": 1}', '{"format": 1, "machine": {}, "sections": {"a": {"b": {"value": 1}}}}'):
        file.write_text(damaged)
        with pytest.raises(OrdiscoError, match=r"report\.json was not saved by `ordisco bench --json`"):
            read_report(file)


def test_tables_stand_side_by_side_and_name_the_machine():
    found = report(1.2)
    found.sections["step: demo, 1 thread"] = {"step / products": Value(1.5, "×")}
    text = " ".join(tables(found).split())
    assert "| step | small, 1 thread | demo, 1 thread |" in text
    assert "| step / products | 1.20 × | 1.50 × |" in text
    assert "| plain / step | 2.00 × | — |" in text
    assert text.endswith(
        "AMD EPYC, AVX-512-bf16 AVX-512 AVX2, 2 cores, 32-true, torch 2.13, commit 0123456 with changes"
    )


def test_the_error_of_a_median_is_not_moved_by_one_bad_turn():
    calm = [1.0 + 0.01 * (turn % 5) for turn in range(15)]
    # quartiles 1.01 and 1.03: 1.2533 · 0.02 / 1.349 / √15
    assert error_of(calm) == pytest.approx(0.0048, abs=1e-5)
    assert error_of([*calm[:-1], 50.0]) < 0.02
    assert error_of([1.0, 1.2]) == pytest.approx(0.1)


def test_a_machine_has_a_file_of_its_own(tmp_path: Path):
    info = tmp_path / "cpuinfo"
    info.write_text("model name\t: AMD EPYC\nflags\t\t: fpu avx2 avx512f avx512_bf16\n")
    assert here.instructions(info) == ["AVX-512-bf16", "AVX-512", "AVX2"]
    assert here.instructions(tmp_path / "none") == []
    assert here.file_of(MACHINE) == "amd-epyc-avx-512-bf16.json"
    old = MACHINE | {"instructions": ["AVX2"], "precision": "bf16-mixed"}
    assert here.file_of(old) == "amd-epyc-avx2-bf16-mixed.json"
    xeon = MACHINE | {"processor": "Intel(R) Xeon(R) CPU @ 2.80GHz", "instructions": []}
    assert here.file_of(xeon) == "intel-xeon-cpu-2.80ghz.json"
    assert here.file_of(MACHINE | {"gpu": "NVIDIA H100"}) == "nvidia-h100.json"


def test_a_processor_that_is_held_back_is_named_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    limits = here.machine("cpu", "32-true")["limits"]
    held = MACHINE | {"limits": limits}
    assert here.file_of(held) == "amd-epyc-avx-512-bf16-held-to-avx2.json"  # not the file of the processor at its best
    assert "held back by ATEN_CPU_CAPABILITY=avx2, held back by ONEDNN_MAX_CPU_ISA=AVX2" in here.words(held)

"""`--precision auto`: decided once, by the processor's instructions or by a measurement, and written down."""

import tomllib

import pytest
import torch

from conftest import TINY as SETTINGS
from ordisco import precision
from ordisco.config import MachineSettings
from ordisco.launch import read_config
from ordisco.precision import cpu_has_bf16, decide, measured
from ordisco.processes import make_fabric
from tiny import TINY, arguments, call

SHAPE = (1, 8, 8)
CPU = MachineSettings(accelerator="cpu")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx2 avx512_bf16\n", True),
        ("flags : amx_tile amx_bf16", True),
        ("Features\t: fp asimd bf16", True),
        ("flags\t\t: fpu avx2 avx512f\nbugs : bf16\n", False),
        ("", False),
    ],
)
def test_the_processor_says_whether_it_has_bf16(tmp_path, text, expected):
    (tmp_path / "cpuinfo").write_text(text)
    assert cpu_has_bf16(tmp_path / "cpuinfo") is expected


def test_a_system_that_does_not_say_has_none(tmp_path):
    assert not cpu_has_bf16(tmp_path / "nothing")


@pytest.mark.parametrize(("fp32", "bf16", "chosen"), [(0.001, 0.002, "32-true"), (0.002, 0.001, "bf16-mixed")])
def test_the_faster_format_is_taken_and_told(monkeypatch, fp32, bf16, chosen):
    monkeypatch.setattr(precision, "cpu_has_bf16", lambda: True)
    took = {"32-true": fp32, "bf16-mixed": bf16}
    monkeypatch.setattr(precision, "one_pass", lambda s, shape, fabric: took[precision_of(fabric)])
    said: list[str] = []
    assert decide(CPU, SETTINGS, SHAPE, said.append).precision == chosen
    assert said == [
        f"precision {chosen}, as measured on C: 32-true {1000 * fp32:.1f} ms, bf16-mixed {1000 * bf16:.1f} ms"
    ]


def precision_of(fabric) -> str:
    with fabric.autocast():
        return "bf16-mixed" if torch.is_autocast_enabled("cpu") else "32-true"


def test_nothing_is_measured_without_the_instructions_or_with_several_processes_or_a_given_format(monkeypatch):
    def never(*args):
        raise AssertionError

    monkeypatch.setattr(precision, "measured", never)
    monkeypatch.setattr(precision, "cpu_has_bf16", lambda: False)
    assert decide(CPU, SETTINGS, SHAPE, never).precision == "32-true"
    monkeypatch.setattr(precision, "cpu_has_bf16", lambda: True)
    assert decide(MachineSettings(accelerator="cpu", devices=2), SETTINGS, SHAPE, never).precision == "32-true"
    for given in ("32-true", "bf16-mixed"):
        assert decide(MachineSettings(precision=given), SETTINGS, SHAPE, never).precision == given


def test_measuring_takes_both_formats_and_leaves_the_random_numbers_alone():
    before = torch.get_rng_state()
    seconds = measured(CPU, SETTINGS, SHAPE)
    assert list(seconds) == ["32-true", "bf16-mixed"]
    assert 0 < min(seconds.values()) <= max(seconds.values()) < 2
    assert torch.equal(before, torch.get_rng_state())


def test_what_nobody_decided_is_32_bits():
    assert CPU.precision == "auto"
    assert precision_of(make_fabric(CPU)) == "32-true"


@pytest.mark.parametrize("faster", ["32-true", "bf16-mixed"])
def test_a_run_writes_down_what_was_chosen(tmp_path, capsys, monkeypatch, faster):
    monkeypatch.setattr(precision, "cpu_has_bf16", lambda: True)
    monkeypatch.setattr(
        precision, "measured", lambda *args: {name: 0.1 if name == faster else 0.2 for name in precision.FORMATS}
    )
    run = tmp_path / "run"
    code, out, _ = call(capsys, *arguments(run, "--method", "st", "--max-steps", "1"))
    assert code == 0
    assert out.splitlines()[0].startswith(f"precision {faster}, as measured on C: ")
    assert read_config(run).machine.precision == faster
    monkeypatch.setattr(precision, "measured", None)  # resuming needs no measurement
    assert call(capsys, "resume", run, "--max-steps", "2")[0] == 0
    code, out, _ = call(capsys, "run", *TINY, "--method", "st", "--dry-run", "--precision", faster)
    assert tomllib.loads(out)["machine"]["precision"] == faster

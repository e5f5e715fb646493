"""The processor's name."""

from pathlib import Path

from ordisco.machine.cores import processor


def test_processors_that_share_a_name_are_told_apart(tmp_path: Path):
    info = tmp_path / "cpuinfo"
    info.write_text("cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n")
    assert processor(info) == "AMD EPYC, family 26 model 2"
    info.write_text("model name\t: AMD EPYC\nmodel\t\t: 17\ncpu family\t: 25\n")
    assert processor(info) == "AMD EPYC, family 25 model 17"
    info.write_text("model name\t: Cortex\n")
    assert processor(info) == "Cortex"
    assert processor(tmp_path / "none")

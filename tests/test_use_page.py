"""docs/use.md, run as it stands but for the number of steps: on digits, from a folder of photos to an ONNX file."""

import dataclasses
import json
import re
import shlex
import warnings
from pathlib import Path

import pytest

from ordisco.cli import main
from ordisco.model import learning
from ordisco.model.learning import Plan

PAGE = (Path(__file__).parents[1] / "docs" / "use.md").read_text(encoding="utf-8")
MOST_STEPS = 40  # instead of up to 200; what is learned is tested elsewhere
BLOCKS = re.findall(r"^```(python|sh)\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def shortened(plan: Plan) -> Plan:
    return dataclasses.replace(plan, steps=min(plan.steps, MOST_STEPS))


@pytest.mark.slow
def test_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    planned = learning.make_plan
    monkeypatch.setattr(learning, "make_plan", lambda *given: shortened(planned(*given)))
    assert [kind for kind, _ in BLOCKS] == ["python", "sh", "sh", "sh", "sh", "python", "sh", "sh", "python"]
    names: dict[str, object] = {}
    for kind, text in BLOCKS:
        if kind == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)  # the page leaves out what closes files
                exec(compile(text, "use.md", "exec"), names)
        else:
            for line in text.splitlines():
                assert main(shlex.split(line)[1:]) == 0, (line, capsys.readouterr().err)
    said = capsys.readouterr().out
    tested = json.JSONDecoder().raw_decode(said[said.index("{") :])[0]
    assert tested["accuracy"] > 0.3  # chance: 0.1
    assert {"curve.png", "shop-model.html", "remembered.png", "predictions.csv", "shop.onnx"} <= {
        file.name for file in tmp_path.iterdir()
    }
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 301
    session = onnxruntime.InferenceSession(tmp_path / "shop.onnx", providers=["CPUExecutionProvider"])
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == [str(digit) for digit in range(10)]
    assert "shop-model" in said

"""docs/use.md, run as it stands: on digits, from a folder of photos to an ONNX file."""

import json
import re
import shlex
import warnings
from pathlib import Path

import pytest

from ordisco.cli import main

PAGE = (Path(__file__).parents[1] / "docs" / "use.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(python|sh)\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
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
    assert tested["accuracy"] > 0.5
    assert {"curve.png", "shop-model.html", "remembered.png", "predictions.csv", "shop.onnx"} <= {
        file.name for file in tmp_path.iterdir()
    }
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 301
    session = onnxruntime.InferenceSession(tmp_path / "shop.onnx", providers=["CPUExecutionProvider"])
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == [str(digit) for digit in range(10)]
    assert "shop-model" in said

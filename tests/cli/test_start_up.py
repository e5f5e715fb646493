"""What is not loaded before the first step and the first prediction: found by name, on a machine of any speed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deliveries import new_model
from tiny import arguments

# each takes a tenth of a second to two seconds of every command, and none has a part in a step or a prediction
NEEDLESS = (
    "lightning_fabric",
    "torch._dynamo",
    "torch._inductor",
    "sympy",
    "matplotlib",
    "sklearn",
    "scipy",
    "pandas",
    "onnx",
    "onnxruntime",
    "ray",
    "tensorboard",
    "IPython",
)
CODE = """
import json, sys
import ordisco, ordisco.cli
early = [name for name in ("torch", "numpy", "PIL") if name in sys.modules]
needless, *commands = json.loads(sys.argv[1])
for command in commands:
    assert ordisco.cli.main(command) == 0
print(json.dumps([early, [name for name in needless if name in sys.modules]]))
"""


def test_what_a_first_step_and_a_prediction_do_without(tmp_path: Path, two_days: tuple[Path, Path]):
    model = new_model(tmp_path / "model")
    model.learn(two_days[0])
    image = next((two_days[0] / "a").iterdir())
    commands = [arguments(tmp_path / "run", "--max-steps", "1"), ["predict", str(tmp_path / "model"), str(image)]]
    told = json.dumps([NEEDLESS, *commands])
    done = subprocess.run([sys.executable, "-c", CODE, told], capture_output=True, text=True, check=True)
    early, needless = json.loads(done.stdout.splitlines()[-1])
    assert early == []  # `import ordisco` and the command line load none of them
    assert needless == []


@pytest.mark.parametrize("method", ["ordisco", "ewc-sl", "ordisco+", "smb+umb+uc"])
def test_what_a_whole_run_does_without(tmp_path: Path, method: str):
    """Torch's compiler: importances of single images would load it by `torch.func.grad`."""
    compiler = [name for name in NEEDLESS if name.startswith("torch.")]
    told = json.dumps([compiler, arguments(tmp_path / "run", "--method", method)])
    done = subprocess.run([sys.executable, "-c", CODE, told], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [[], []]

"""The wheel and the source archive: nothing but what belongs there, and a clean environment in which it works."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from ordisco import __version__

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
NAME = f"ordisco-{__version__}"
TOP = {"src", "tests", "docs", "examples", "experiments", "benchmarks", "tools", ".ci"}
TOP |= {".gitignore", "Makefile", "constraints.txt", "LICENSE", "PKG-INFO", "pyproject.toml"}
TOP |= {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "README.md"}
SUFFIXES = {".py", ".md", ".json", ".png", ".txt", ".toml", ".typed", ".cff", ".html", ".css", ".js", ""}
DATA = {"paper/numbers.toml", "paper/items.toml", "paper/scales.toml", "paper/costs.toml"}
DATA |= {"report/page.css", "report/page.js", "py.typed"}
DATA |= {f"label/page/{name}" for name in ("index.html", "page.css", "page.js")}

USE = """
import sys, ordisco
from ordisco.cli import main

print(ordisco.__file__)
for name in ordisco.__all__:
    getattr(ordisco, name)
options = ["--steps", "1", "--max-images", "200", "--threads", "1", "--accelerator", "cpu", "--max-steps", "1"]
sys.exit(main(["run", "digits-1-new-class", *options, "--out", sys.argv[1]]))
"""


def run(*command: object) -> str:
    """Standard output of a command that must succeed; this tree's sources are not on its path."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, env=env, cwd="/", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of both archives; the wheel is made from the source archive. Needs no network."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def python(built, tmp_path_factory):
    """The Python of a new environment with the wheel; the dependencies are those of the environment of now."""
    home = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", built / f"{NAME}-py3-none-any.whl")
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    here = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (site / "dependencies.pth").write_text("".join(f"{path}\n" for path in here))  # .pth files there are not read
    return python


def test_the_archives_hold_what_belongs_there(built):
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        files = [Path(member.name).relative_to(NAME) for member in archive.getmembers() if member.isfile()]
    assert {file.parts[0] for file in files} <= TOP
    assert {file.suffix for file in files} <= SUFFIXES
    with zipfile.ZipFile(built / f"{NAME}-py3-none-any.whl") as archive:
        names = set(archive.namelist())
    sources = {file.relative_to(ROOT / "src").as_posix() for file in (ROOT / "src").rglob("*.py")}
    assert {name for name in names if not name.startswith(f"{NAME}.dist-info/")} == {
        *sources,
        *(f"ordisco/{name}" for name in DATA),
    }


def test_the_wheel_works_in_a_clean_environment(python, tmp_path):
    command = python.with_name("ordisco")
    assert run(command, "--version") == f"{__version__}\n"
    assert "ordisco" in run(command, "methods")
    assert "Half-made" in run(command, "paper", "table-3", "--show", "--out", tmp_path / "paper")
    told = run(python, "-c", USE, tmp_path / "run").splitlines()
    assert Path(told[0]).is_relative_to(python.parents[1])  # the wheel's, not that of the source tree
    assert (tmp_path / "run" / "checkpoints" / "step-0000000001").is_dir()
    version = "from importlib.metadata import version; print(version('ordisco'))"
    assert run(python, "-c", version) == f"{__version__}\n"

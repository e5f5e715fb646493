"""Data flow down the list of folders: a folder imports itself and those above it, never one below."""

import ast
from pathlib import Path

import pytest

import ordisco

ROOT = Path(ordisco.__file__).parent
LAYERS = (
    "errors",
    "words",
    "files",
    "tensorfile",
    "settings",
    "machine",
    "data",
    "streams",
    "nets",
    "maths",
    "learner",
    "evaluation",
    "report",
    "runs",
    "launchers",
    "model",
    "label",
    "sklearn",
    "studies",
    "paper",
    "pages",
    "bench",
    "cli",
)
MODULES = [path for path in sorted(ROOT.rglob("*.py")) if path.parent != ROOT or path.stem in LAYERS]


def imported(path: Path) -> set[str]:
    """The folders of ordisco that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "ordisco" else [f"ordisco.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("ordisco.")}
    return found - {"__version__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_folder_imports_only_those_above_it(path: Path):
    mine = LAYERS.index(path.relative_to(ROOT).parts[0].removesuffix(".py"))
    below = {name for name in imported(path) if LAYERS.index(name) > mine}
    assert below == set()


def test_every_folder_has_its_place():
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    modules = {path.stem for path in ROOT.glob("*.py")} - {"__init__", "__main__"}
    assert folders | modules == set(LAYERS)


def test_tests_are_where_the_code_is():
    folders = {path.name for path in Path(__file__).parent.iterdir() if any(path.glob("test_*.py"))}
    assert folders <= set(LAYERS)

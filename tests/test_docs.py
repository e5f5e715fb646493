"""What the documents name is there: files, modules, functions, links."""

import ast
import importlib
import re
from pathlib import Path

import pytest

import ordisco
from test_layers import LAYERS

ROOT = Path(__file__).parents[1]
PACKAGE = Path(ordisco.__file__).parent
DOCUMENTS = [
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "experiments/README.md",
]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def prose(document: Path) -> str:
    """The document without its blocks of code."""
    return re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_file_that_is_named_exists(document: Path):
    named = re.findall(r"`((?:[\w.-]+/)*\w+\.py)`", prose(document))
    missing = [file for file in named if not any((home / file).is_file() for home in (ROOT, PACKAGE))]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_link_leads_somewhere(document: Path):
    links = re.findall(r"\]\(<?([^)>#]+?)>?(?:#[^)]*)?\)", prose(document))
    missing = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_module_and_function_that_is_named_exists(document: Path):
    dotted = re.findall(rf"`(?:ordisco\.)?((?:{'|'.join(LAYERS)})(?:\.\w+)+)(?:\(.*?\))?`", prose(document))
    assert [words for words in dotted if not words.endswith((".py", ".toml", ".md")) and thing(words) is None] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_import_of_an_example_works(document: Path):
    for block in re.findall(r"^```python\n(.*?)^```", document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ordisco"):
                module = importlib.import_module(node.module)
                assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


def thing(words: str) -> object:
    """The module of ordisco, or the thing in one, that has this dotted name; None if there is none."""
    parts = words.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(["ordisco", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part, None)
        return found
    return None


def test_every_equation_has_its_function():
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", page, flags=re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 11))
    for number, functions in rows:
        names = re.findall(r"`(.*?)`", functions)
        assert names
        for words in names:
            assert callable(thing(words)), words
            assert re.search(rf"Eq\. {number}\b", thing(words).__doc__ or ""), f"{words} is not Eq. {number}"


def test_the_tree_is_the_tree():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = re.search(r"^```text\nsrc/ordisco/\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert tree
    files, order, folders = set(), [], []
    for line in filter(None, tree[1].splitlines()):
        depth, entry = (len(line) - len(line.lstrip())) // 2, line.split()[0]
        folders[depth - 1 :] = [entry.rstrip("/")]
        if depth == 1:
            order.append(entry.rstrip("/").removesuffix(".py"))
        if entry.endswith(".py"):
            files.add("/".join(folders))
    there = {file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py") if not file.stem.startswith("__")}
    assert files == there
    assert tuple(order) == LAYERS

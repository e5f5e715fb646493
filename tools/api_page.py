"""The API page: the docstrings of every module as HTML, by pdoc.

    python -W error tools/api_page.py build/docs

The public names of `ordisco` are imported when they are first used, and pdoc finds only those that are there; so they
are used first. A package that lists its names would have no menu of its modules; so these are added to the list.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from pathlib import Path

import pdoc
import pdoc.render

import ordisco


def main(folder: Path) -> None:
    """Write the page of `ordisco` and those of all modules below it."""
    for name in ordisco.__all__:
        setattr(ordisco, name, getattr(ordisco, name))
    found = [ordisco.__name__, *(module.name for module in pkgutil.walk_packages(ordisco.__path__, "ordisco."))]
    for package in (importlib.import_module(name) for name in found if not name.endswith("__main__")):
        if hasattr(package, "__all__") and hasattr(package, "__path__"):
            inside = (module.name for module in pkgutil.iter_modules(package.__path__))
            package.__all__ = [*package.__all__, *(name for name in inside if name != "__main__")]
    # a type that only a type checker can evaluate, such as argparse's, is shown as it is written
    warnings.filterwarnings("ignore", "Error parsing type annotation")
    pdoc.render.configure(docformat="markdown", footer_text=f"ordisco {ordisco.__version__}")
    pdoc.pdoc("ordisco", output_directory=folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

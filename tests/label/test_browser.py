"""The page in a real Chromium: keys, clicks, a new class, undo, the end."""

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ordisco.label.answers import read_answers

playwright = pytest.importorskip("playwright.sync_api")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
FLAGS += ("--disable-component-update", "--disable-sync")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")]

SERVER = """
import sys
from pathlib import Path
from ordisco.label.answers import AnswerFile
from ordisco.label.serve import serve
from ordisco.label.session import Guess, Session
folder = Path(sys.argv[1])
paths = sorted(path.name for path in folder.glob("*.png"))
file = AnswerFile(folder / "labels.csv")
session = Session(paths, range(len(paths)), ["boot", "shoe"], {0: Guess("shoe", 0.61)}, file)
serve(session, folder, 0, lambda link: print(link, flush=True))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for index in range(6):
        pixels = np.random.RandomState(index).randint(0, 256, (16, 16, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{index}.png")
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", SERVER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        yield process
        process.kill()


@pytest.fixture
def page() -> Iterator[Any]:
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS, chromium_sandbox=False)
        yield browser.new_page()
        browser.close()


def test_a_person_labels_images(server: subprocess.Popen[str], page: Any, folder: Path):
    assert server.stdout is not None
    link = server.stdout.readline().strip()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(link)

    def shows(number: int) -> None:
        """Its image is on the screen, and every answer before it on the disk."""
        page.wait_for_selector(f'#image[data-number="{number}"]:not(.waiting)')
        assert len(read_answers(folder / "labels.csv")) == number

    shows(0)
    assert "#" not in page.url
    assert "The model says shoe, 61 %" in page.inner_text("#guess")
    assert page.evaluate("document.getElementById('image').naturalWidth") == 16
    page.keyboard.press("2")
    shows(1)
    page.keyboard.press("Space")
    shows(2)
    page.click("li >> text=boot")
    shows(3)
    page.keyboard.type("Clog & <b>co</b>")
    page.keyboard.press("Enter")
    shows(4)
    assert page.inner_text("#last") == "Last: Clog & <b>co</b>"
    page.keyboard.press("9")  # no such class
    page.keyboard.press("z")
    shows(3)
    page.reload()
    shows(3)
    page.keyboard.press("1")
    shows(4)
    page.keyboard.press("1")
    shows(5)
    page.keyboard.press("1")
    page.wait_for_selector("text=That was the last one")
    page.click("#undo-last")
    shows(5)
    page.click("#close")
    page.wait_for_selector("text=You can close this tab")
    assert server.wait(timeout=20) == 0
    assert said == []
    rows = (folder / "labels.csv").read_text().splitlines()
    assert [row.split(",")[1:] for row in rows[1:]] == [
        ["shoe", "given"],
        ["", "skipped"],
        ["boot", "given"],
        ["boot", "given"],
        ["boot", "given"],
        ["", "none"],
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_clean_end(number: signal.Signals, server: subprocess.Popen[str], folder: Path):
    assert server.stdout is not None
    address, token = server.stdout.readline().strip().split("#")
    request = urllib.request.Request(f"{address}state", headers={"x-ordisco-token": token})
    with urllib.request.urlopen(request) as answer:
        assert json.load(answer)["total"] == 6
    server.send_signal(number)
    assert server.wait(timeout=20) == 0
    assert len((folder / "labels.csv").read_text().splitlines()) == 7

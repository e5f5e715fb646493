"""The server answers its own page and nobody else."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("starlette")
pytest.importorskip("httpx")

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

from ordisco.label.answers import AnswerFile, read_answers
from ordisco.label.serve import serve
from ordisco.label.server import HEADERS, make_app
from ordisco.label.session import Session

TOKEN = "a-token"
KEY = {"x-ordisco-token": TOKEN}
PATHS = ["sub folder/a.png", "b.jpg", "broken.png"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub folder").mkdir()
    Image.new("RGB", (40, 30), "red").save(tmp_path / PATHS[0])
    Image.fromarray(np.zeros((2000, 1000), np.uint8)).save(tmp_path / PATHS[1], comment=b"secret")
    (tmp_path / PATHS[2]).write_text("<svg/>")
    return tmp_path


@pytest.fixture
def closed() -> list[bool]:
    return []


@pytest.fixture
def client(folder: Path, closed: list[bool]) -> Any:
    session = Session(PATHS, range(3), ["boot"], {}, AnswerFile(folder / "labels.csv"))
    app = make_app(session, folder, TOKEN, 8123, lambda: closed.append(True))
    return TestClient(app, base_url="http://127.0.0.1:8123")


def test_answers_are_saved_before_the_next_image_is_named(client: Any, folder: Path):
    assert client.get("/state", headers=KEY).json()["image"] == 0
    state = client.post("/answer", headers=KEY, json={"image": 0, "label": "Boot"}).json()
    assert (state["image"], state["done"]) == (1, 1)
    assert [answer.label for answer in read_answers(folder / "labels.csv")] == ["boot"]
    late = client.post("/answer", headers=KEY, json={"image": 0, "label": "boot"})
    assert (late.status_code, late.json()["state"]) == (409, state)
    assert client.post("/undo", headers=KEY).json()["image"] == 0
    assert client.post("/undo", headers=KEY).status_code == 409
    assert read_answers(folder / "labels.csv") == []


def test_images_come_by_number_as_fresh_png(client: Any, folder: Path):
    answer = client.get("/image/0", headers=KEY)
    assert answer.headers["content-type"] == "image/png"
    large = client.get("/image/1", headers=KEY).content
    assert b"secret" in (folder / "b.jpg").read_bytes()
    assert b"secret" not in large
    (folder / "shown.png").write_bytes(large)
    with Image.open(folder / "shown.png") as shown:
        assert shown.size == (512, 1024)
    assert client.get("/image/2", headers=KEY).status_code == 415
    assert [
        client.get(f"/image/{name}", headers=KEY).status_code for name in ("3", "-1", "a", "..%2fb.jpg", "b.jpg")
    ] == [404] * 5


def test_no_path_is_ever_told(client: Any):
    texts = [client.get(path, headers=KEY).text for path in ("/", "/page.js", "/state", "/image/2", "/image/9")]
    assert not any("broken" in text.replace('id="broken"', "").replace('$("broken")', "") for text in texts[2:])
    assert not any("sub folder" in text for text in texts)


@pytest.mark.parametrize("path", ["/state", "/image/0", "/answer", "/undo", "/close", "/nothing"])
@pytest.mark.parametrize("headers", [{}, {"x-ordisco-token": "another"}, {"x-ordisco-token": ""}])
def test_without_the_token_nothing_is_told_or_done(client: Any, closed: list[bool], path: str, headers: dict[str, str]):
    for answer in (
        client.get(path, headers=headers),
        client.post(path, headers=headers, json={"image": 0, "label": "x"}),
    ):
        assert answer.status_code == 403
    assert closed == []


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8123", "127.0.0.1:80", "127.0.0.1", ""])
def test_another_host_s_name_is_refused_even_with_the_token(client: Any, host: str):
    assert client.get("/state", headers={**KEY, "host": host}).status_code == 421
    assert client.get("/", headers={"host": host}).status_code == 421


def test_another_page_is_refused_even_with_the_token(client: Any):
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8123"):
        assert client.post("/undo", headers={**KEY, "origin": origin}).status_code == 403
    assert client.get("/state", headers={**KEY, "origin": "http://127.0.0.1:8123"}).status_code == 200


def test_every_answer_has_the_headers(client: Any):
    for path, headers in (
        ("/", {}),
        ("/page.js", {}),
        ("/page.css", {}),
        ("/state", KEY),
        ("/state", {}),
        ("/image/0", KEY),
    ):
        got = client.get(path, headers=headers).headers
        assert {name: got[name] for name in HEADERS} == HEADERS
        assert "access-control-allow-origin" not in got


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b'{"image": "0"}', b'{"image": true}', b'{"image": 0, "label": 5}', b"x" * 5000, b"\xff"],
)
def test_what_is_no_answer_is_refused(client: Any, content: bytes):
    assert client.post("/answer", headers=KEY, content=content).status_code == 400
    assert client.get("/state", headers=KEY).json()["done"] == 0


def test_the_button_closes_the_server(client: Any, closed: list[bool]):
    assert client.get("/close", headers=KEY).status_code == 405
    assert client.post("/close", headers=KEY).status_code == 200
    assert closed == [True]


def test_each_page_has_a_link_of_its_own_on_the_loopback_address(folder: Path, monkeypatch: pytest.MonkeyPatch):
    uvicorn = pytest.importorskip("uvicorn")
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    links: list[str] = []
    for number in range(2):
        session = Session(PATHS, range(3), ["boot"], {}, AnswerFile(folder / f"{number}.csv"))
        serve(session, folder, 0, links.append)
    assert all(link.startswith("http://127.0.0.1:") for link in links)
    tokens = [link.partition("/#")[2] for link in links]
    assert min(len(token) for token in tokens) >= 32
    assert tokens[0] != tokens[1]

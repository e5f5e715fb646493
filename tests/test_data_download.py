"""Downloads against a server on this machine: success, a wrong checksum, an error page, nobody there."""

import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from ordisco import data
from ordisco.data import sources
from ordisco.data.sources import Source, data_directory, fetch, obtain
from ordisco.errors import OrdiscoError, OrdiscoWarning

CONTENT = bytes(range(256)) * 4000


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[:1000] if self.path == "/cut" else CONTENT)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    thread.join()
    httpd.server_close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def test_download_is_checked_and_put_in_place(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Source("file.bin", f"{server}/file", md5(CONTENT))
    monkeypatch.setitem(sources.SOURCES, "svhn", (source,))
    root = tmp_path / "new" / "folder"
    assert obtain("svhn", root) == [root / "file.bin"]
    assert (root / "file.bin").read_bytes() == CONTENT
    assert f"downloading {server}/file" in capsys.readouterr().err
    assert [path.name for path in root.iterdir()] == ["file.bin"]
    obtain("svhn", root)
    assert capsys.readouterr().err == ""


def test_wrong_checksum_is_an_error_and_leaves_nothing(tmp_path: Path, server: str) -> None:
    with pytest.raises(OrdiscoError, match="does not match its checksum and was removed") as caught:
        fetch(Source("file.bin", f"{server}/file", md5(b"other")), tmp_path)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_failed_download_says_where_to_put_the_file(tmp_path: Path, server: str) -> None:
    with pytest.raises(OrdiscoError, match=r"cannot download .*HTTP 404.* put it at .*file\.bin"):
        fetch(Source("file.bin", f"{server}/missing", md5(CONTENT)), tmp_path)
    with pytest.raises(OrdiscoError, match=r"/cut.* put .* at .*file\.bin"):
        fetch(Source("file.bin", f"{server}/cut", md5(CONTENT)), tmp_path)
    assert not list(tmp_path.iterdir())


def test_offline_gives_one_line(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(OrdiscoError, match=r"ConnectionError\): get it elsewhere and put it at .*x\.bin") as caught:
        fetch(Source("x.bin", f"http://127.0.0.1:{port}/x.bin", md5(b"")), tmp_path)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_without_download_the_command_is_named(tmp_path: Path) -> None:
    with pytest.raises(OrdiscoError, match=r"put http.*train_32x32\.mat at .* or run: ordisco data fetch svhn"):
        data.load("svhn", tmp_path, download=False)


def test_a_users_own_file_is_used_with_a_warning(tmp_path: Path) -> None:
    from test_data_published import write_svhn

    write_svhn(tmp_path)
    for _ in range(2):  # decoded, then from the cache
        with pytest.warns(OrdiscoWarning, match=r"not the publisher's file .*: train_32x32\.mat, test_32x32\.mat$"):
            assert len(data.load("svhn", tmp_path).train) == 20


def test_the_publishers_own_file_is_used_without_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from test_data_published import write_svhn

    write_svhn(tmp_path)
    right = tuple(
        Source(source.filename, source.url, md5((tmp_path / source.filename).read_bytes()))
        for source in sources.SOURCES["svhn"]
    )
    monkeypatch.setitem(sources.SOURCES, "svhn", right)
    assert len(data.load("svhn", tmp_path).train) == 20


def test_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDISCO_DATA", str(tmp_path / "env"))
    assert data_directory(tmp_path / "given") == tmp_path / "given"
    assert data_directory() == tmp_path / "env"
    monkeypatch.delenv("ORDISCO_DATA")
    assert data_directory().name == "ordisco"

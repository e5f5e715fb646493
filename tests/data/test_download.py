"""Downloads against a server on this machine: success, a wrong checksum, an error page, nobody there."""

import dataclasses
import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from ordisco.data import sources
from ordisco.data.catalogue import CATALOGUE
from ordisco.data.load import load
from ordisco.data.sources import Source, data_directory, fetch, obtain
from ordisco.errors import OrdiscoError, OrdiscoWarning

CONTENT = bytes(range(256)) * 4000


class Handler(BaseHTTPRequestHandler):
    sent = 0

    def do_GET(self) -> None:
        if self.path == "/missing":
            self.send_error(404)
            return
        if self.path.startswith("/moved"):
            self.send_response(int(self.path[-3:]))
            self.send_header("Location", "/file" if self.path.startswith("/moved-here") else "https://other.example/x")
            self.end_headers()
            return
        self.send_response(200)
        if self.path != "/endless":
            self.send_header("Content-Length", str(len(CONTENT) + (self.path == "/longer") - (self.path == "/shorter")))
        if self.path == "/gzip":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        with suppress(OSError):  # the other side has had enough
            self.wfile.write(CONTENT[:1000] if self.path in ("/cut", "/early") else CONTENT)
            for _ in range(1000 if self.path == "/endless" else 0):
                self.wfile.write(CONTENT)
                type(self).sent += len(CONTENT)

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


def file_at(url: str, md5_of: bytes = CONTENT, sha256: str | None = None) -> Source:
    return Source("file.bin", url, len(CONTENT), md5(md5_of), sha256)


def test_download_is_checked_and_put_in_place(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = file_at(f"{server}/file")
    monkeypatch.setitem(CATALOGUE, "svhn", dataclasses.replace(CATALOGUE["svhn"], sources=(source,)))
    root = tmp_path / "new" / "folder"
    assert obtain("svhn", root) == [root / "file.bin"]
    assert (root / "file.bin").read_bytes() == CONTENT
    assert f"downloading {server}/file" in capsys.readouterr().err
    assert [path.name for path in root.iterdir()] == ["file.bin"]
    obtain("svhn", root)
    assert capsys.readouterr().err == ""


def test_wrong_checksum_is_an_error_and_leaves_nothing(tmp_path: Path, server: str) -> None:
    with pytest.raises(OrdiscoError, match="does not match its checksum and was removed") as caught:
        fetch(file_at(f"{server}/file", b"other"), tmp_path)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_failed_download_says_where_to_put_the_file(tmp_path: Path, server: str) -> None:
    with pytest.raises(OrdiscoError, match=r"cannot download .*HTTP 404.* put it at .*file\.bin"):
        fetch(file_at(f"{server}/missing"), tmp_path)
    with pytest.raises(OrdiscoError, match=r"/cut.* put .* at .*file\.bin"):
        fetch(file_at(f"{server}/cut"), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(("path", "target"), [("moved", "https://other.example/x"), ("moved-here", "/file")])
def test_a_redirect_is_refused_by_its_name(tmp_path: Path, server: str, status: int, path: str, target: str) -> None:
    with pytest.raises(
        OrdiscoError, match=f"redirected to {target}, which is not followed; get it elsewhere"
    ) as caught:
        fetch(file_at(f"{server}/{path}-{status}"), tmp_path)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("longer", "the server offers 1024001 bytes, not 1024000"),
        ("shorter", "the server offers 1023999 bytes, not 1024000"),
        ("endless", "the server sends more than 1024000 bytes"),
    ],
)
def test_a_download_of_another_size_is_broken_off(tmp_path: Path, server: str, path: str, message: str) -> None:
    with pytest.raises(OrdiscoError, match=f"{message}; get it elsewhere and put it at .*file.bin"):
        fetch(file_at(f"{server}/{path}"), tmp_path)
    assert not list(tmp_path.iterdir())
    assert Handler.sent < 100 * len(CONTENT)


def test_the_bytes_are_taken_as_they_are(tmp_path: Path, server: str) -> None:
    """A server that calls an archive "gzip-encoded" is not obeyed."""
    assert fetch(file_at(f"{server}/gzip"), tmp_path).read_bytes() == CONTENT


def test_a_known_sha256_is_checked_beside_the_md5(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = file_at(f"{server}/file", sha256=hashlib.sha256(CONTENT).hexdigest())
    wrong = dataclasses.replace(right, sha256="0" * 64)
    with pytest.raises(OrdiscoError, match="does not match its checksum and was removed"):
        fetch(wrong, tmp_path)
    assert not list(tmp_path.iterdir())
    fetch(right, tmp_path)
    monkeypatch.setitem(CATALOGUE, "svhn", dataclasses.replace(CATALOGUE["svhn"], sources=(right,)))
    assert sources.differences("svhn", tmp_path) == ()
    monkeypatch.setitem(CATALOGUE, "svhn", dataclasses.replace(CATALOGUE["svhn"], sources=(wrong,)))
    assert len(sources.differences("svhn", tmp_path)) == 1


def test_a_disk_that_is_full_is_told_and_nothing_stays(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def partly(source: Source) -> Iterator[bytes]:
        yield b"a part"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sources, "received", partly)
    with pytest.raises(OrdiscoError, match=r"cannot write .*file\.bin: No space left on device"):
        fetch(file_at(f"{server}/file"), tmp_path)
    assert not list(tmp_path.iterdir())


def test_every_source_has_its_size_and_https_where_there_is_one() -> None:
    for source in (source for entry in CATALOGUE.values() for source in entry.sources):
        assert 1e5 < source.size < 1e9
        assert source.url.startswith("https://") or source.url.startswith("http://ufldl.stanford.edu/")


def test_offline_gives_one_line(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(OrdiscoError, match=r"ConnectionError\): get it elsewhere and put it at .*file\.bin") as caught:
        fetch(file_at(f"http://127.0.0.1:{port}/x.bin"), tmp_path)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_without_download_the_command_is_named(tmp_path: Path) -> None:
    with pytest.raises(OrdiscoError, match=r"put http.*train_32x32\.mat at .* or run: ordisco data fetch svhn"):
        load("svhn", tmp_path, download=False)


def test_a_users_own_file_is_used_with_a_warning(tmp_path: Path) -> None:
    from test_published import write_svhn

    write_svhn(tmp_path)
    for _ in range(2):  # decoded, then from the cache
        with pytest.warns(OrdiscoWarning, match=r"not the publisher's file .*: train_32x32\.mat, test_32x32\.mat$"):
            assert len(load("svhn", tmp_path).train) == 20


def test_the_publishers_own_file_is_used_without_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from test_published import write_svhn

    write_svhn(tmp_path)
    right = tuple(
        dataclasses.replace(source, md5=md5((tmp_path / source.filename).read_bytes()))
        for source in CATALOGUE["svhn"].sources
    )
    monkeypatch.setitem(CATALOGUE, "svhn", dataclasses.replace(CATALOGUE["svhn"], sources=right))
    assert len(load("svhn", tmp_path).train) == 20


def test_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDISCO_DATA", str(tmp_path / "env"))
    assert data_directory(tmp_path / "given") == tmp_path / "given"
    assert data_directory() == tmp_path / "env"
    monkeypatch.delenv("ORDISCO_DATA")
    assert data_directory().name == "ordisco"

"""`ordisco watch`: on loopback alone, read-only, and quick with a thousand runs."""

import http.client
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordisco.pages import glance as glances
from ordisco.pages.glance import Glances, find_runs, glance
from ordisco.pages.watch import HOST, Server, Watch, address
from run_files import write_run
from tiny import call, one_line


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    write_run(tmp_path / "runs" / "smb-0")
    write_run(tmp_path / "runs" / "ordisco-0", "ordisco", done=1, finished=False)
    with Server(Watch([tmp_path / "runs"]), 0) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield made
        finally:
            made.shutdown()
            thread.join()


def ask(server: Server, path: str = "/", how: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=10)
    connection.request(how, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, {key.lower(): value for key, value in answer.getheaders()}, body


def test_the_list_and_the_page_of_a_run_are_served_and_follow_the_files(server: Server, tmp_path: Path):
    status, headers, body = ask(server)
    assert status == 200
    assert body.count("<tr data-words") == 2
    assert "increment 1/3, step 10/200" in body
    assert "60.0 %" in body
    assert 'data-refresh="5"' in body
    assert ask(server, **{"If-None-Match": headers["etag"]})[0] == 304
    write_run(tmp_path / "runs" / "zzz", seed=1, done=2, finished=False)
    again = ask(server)[2]
    assert again.count("<tr data-words") == 3
    path = tmp_path / "runs" / "zzz"
    assert address(path) in again
    status, _, body = ask(server, address(path))
    assert status == 200
    assert "SMB on digits-1, seed 1" in body
    assert "not finished: increment 2/3" in body


def test_it_is_bound_to_loopback_and_answers_to_no_other_name(server: Server):
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert ask(server, Host="evil.example")[0] == 403
    assert ask(server, Host=f"evil.example:{server.server_port}")[0] == 403
    assert ask(server, Host=f"localhost:{server.server_port}")[0] == 200


def test_nothing_but_its_runs_is_served_and_nothing_is_changed(server: Server, tmp_path: Path):
    (tmp_path / "secret").mkdir()
    write_run(tmp_path / "elsewhere")
    for path in ("/etc/passwd", "/run/%2Fetc%2Fpasswd", "/run/..%2F..", address(tmp_path / "elsewhere"), "/run/", "/x"):
        assert ask(server, path)[0] == 404, path
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "runs").rglob("*")}
    for how in ("POST", "PUT", "DELETE"):
        assert ask(server, "/", how)[0] == 501
    ask(server)
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "runs").rglob("*")} == before


def test_only_what_has_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for number in range(1000):
        path = tmp_path / f"run-{number:04d}"
        if number == 0:
            first = write_run(path)
        else:
            path.mkdir()
            for name in ("settings.toml", "metrics.jsonl", "summary.json"):
                os.link(first / name, path / name)
    watch = Watch([tmp_path])
    page = watch.answer("/")
    assert page is not None
    assert page.count(b"<tr data-words") == 1000
    read: list[Path] = []
    monkeypatch.setattr(glances, "glance", lambda path, sign: read.append(path) or glance(path, sign))
    assert watch.answer("/") == page
    assert read == []
    changed = tmp_path / "run-0007"
    (changed / "summary.json").unlink()
    assert watch.answer("/") != page
    assert read == [changed]


def test_what_is_damaged_is_shown_as_such(tmp_path: Path):
    run = write_run(tmp_path / "a")
    (run / "metrics.jsonl").write_text('{"kind": "increment", "accuracy": "much"}\n')
    assert "cannot be read" in glance(run).fault
    (run / "settings.toml").write_text("method = [")
    assert "cannot be read" in glance(run).fault
    page = Watch([tmp_path]).answer("/")
    assert page is not None
    assert b"state damaged" in page


def test_runs_are_found_below_folders_and_links_are_not_followed(tmp_path: Path):
    write_run(tmp_path / "study" / "runs" / "a")
    write_run(tmp_path / "b")
    (tmp_path / "link").symlink_to(tmp_path / "study")
    (tmp_path / ".hidden").mkdir()
    assert list(find_runs([tmp_path])) == [tmp_path / "b", tmp_path / "study" / "runs" / "a"]
    assert list(find_runs([tmp_path / "b"])) == [tmp_path / "b"]
    assert Glances([tmp_path / "nothing"]).now() == []


def test_a_port_that_is_taken_and_a_missing_folder_are_one_line(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    code, _, error = call(capsys, "watch", tmp_path, "--port", server.server_port)
    assert code == 1
    assert "choose another --port" in one_line(error)
    code, _, error = call(capsys, "watch", tmp_path / "nowhere")
    assert code == 1
    assert "no directory at" in one_line(error)
    code, _, error = call(capsys, "watch", tmp_path, "--port", "70000")
    assert code == 2
    assert "port = 70000 is not allowed" in one_line(error)


def test_watching_loads_no_torch():
    loaded = "import sys, ordisco.pages.watch; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True).stdout == "False\n"

"""Runs watched while they go on: the page served on loopback, read again from their directories; it writes nothing."""

from __future__ import annotations

import hashlib
import socket
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import quote, unquote, urlsplit

from ordisco.errors import OrdiscoError
from ordisco.pages.glance import Glance, Glances, Sign
from ordisco.pages.runs import report
from ordisco.report.html import Html, join, tag
from ordisco.report.page import Section, page, scrolling
from ordisco.settings.methods import METHODS
from ordisco.words import percent

HOST, REFRESH = "127.0.0.1", 5
HEADER = ("run", "state", "how far", "accuracy", "", "method", "stream", "seed", "last written")
WORDS = ("state", "how far", "method", "stream")  # columns to the left


class Watch:
    """What is served: a list of all runs, and a page of each."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.glances, self.lock = Glances(roots), Lock()
        self.rows: dict[Path, tuple[Sign, Html]] = {}

    def answer(self, path: str) -> bytes | None:
        """The page at a path of the address, None where there is none."""
        with self.lock:
            runs = self.glances.now()
            if path == "/":
                return self.listed(runs)
            for run in runs:
                if path == address(run.path):
                    return report([run.path], run.path.name, REFRESH)
        return None

    def listed(self, runs: Sequence[Glance]) -> bytes:
        """The list of runs, those under way and the latest first; a row is made anew only if its run has changed."""
        runs = sorted(runs, key=lambda run: (run.finished, -run.changed))
        for run in runs:
            known = self.rows.get(run.path)
            if known is None or known[0] != run.sign:
                self.rows[run.path] = (run.sign, row_of(run))
        head = tag(
            "thead", tag("tr", join(tag("th", name, class_="words" if name in WORDS else None) for name in HEADER))
        )
        body = tag("tbody", join(self.rows[run.path][1] for run in runs))
        search = tag("input", id="filter", type="search", placeholder="filter: words of a row", aria_label="filter")
        done = sum(run.finished for run in runs)
        lead = f"{len(runs)} runs, {done} finished. Read only; refreshed every {REFRESH} s."
        content = join([search, scrolling(tag("table", head, body))]) if runs else tag("p", "No run yet.")
        return page("Runs", lead, [Section("runs", "All runs", content)], REFRESH)


def address(path: Path) -> str:
    """Where the page of a run is."""
    return f"/run/{quote(str(path), safe='')}"


def row_of(run: Glance) -> Html:
    """A run in the list."""
    settings = run.settings
    method = str(settings.get("method", ""))
    state = "damaged" if run.fault else "finished" if run.finished else "going"
    words = {"damaged": run.fault, "finished": "finished", "going": "not finished"}[state]
    written = time.strftime("%m-%d %H:%M:%S", time.localtime(run.changed)) if run.changed else "—"
    cells = [
        tag("th", tag("a", run.path.name, href=address(run.path)), scope="row"),
        tag("td", words, class_=f"words state {state}"),
        tag("td", run.place, class_="words"),
        tag("td", percent(run.accuracies[-1]) if run.accuracies else "—"),
        tag("td", spark(run.accuracies)),
        tag("td", METHODS[method].title if method in METHODS else method, class_="words"),
        tag("td", settings.get("stream_name", ""), class_="words"),
        tag("td", settings.get("seed", "")),
        tag("td", written),
    ]
    key = f"{run.path.name} {method} {settings.get('stream_name', '')} seed{settings.get('seed', '')} {words}".lower()
    return tag("tr", join(cells), data_words=key)


def spark(accuracies: Sequence[float]) -> Html | None:
    """The curve as a line of 90 × 22 pixels."""
    if len(accuracies) < 2:
        return None
    last = len(accuracies) - 1
    points = " ".join(f"{2 + 86 * place / last:.1f},{20 - 18 * share:.1f}" for place, share in enumerate(accuracies))
    line = tag("polyline", points=points, fill="none", stroke="currentColor", stroke_width=1.5)
    return tag("svg", line, viewBox="0 0 90 22", class_="spark", aria_hidden="true")


class Server(ThreadingHTTPServer):
    """The server, on loopback alone."""

    daemon_threads = True

    def __init__(self, watch: Watch, port: int) -> None:
        self.watch = watch
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            raise OrdiscoError(
                f"cannot serve at port {port}: {error.strerror or error}; choose another --port"
            ) from error

    @property
    def url(self) -> str:
        """Where it is served."""
        return f"http://{HOST}:{self.server_port}/"

    def server_bind(self) -> None:
        """Without asking a name server for our own name, which may take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = HOST, self.server_address[1]


class Handler(BaseHTTPRequestHandler):
    """GET and HEAD of pages; nothing else."""

    server: Server
    server_version, sys_version = "ordisco", ""
    timeout = 30

    def do_GET(self) -> None:
        """Answer with a page."""
        self.reply(body=True)

    def do_HEAD(self) -> None:
        """Answer without the page."""
        self.reply(body=False)

    def reply(self, body: bool) -> None:
        """The page that was asked for, or why not; a page of another host's name is refused (DNS rebinding)."""
        port = self.server.server_port
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            self.finish_with(403, b"ordisco watch answers on loopback only\n", "text/plain", body)
            return
        path = urlsplit(self.path).path
        data = self.server.watch.answer(path if path == "/" else f"/run/{quote(unquote(path[5:]), safe='')}")
        if data is None:
            self.finish_with(404, b"no such run\n", "text/plain", body)
            return
        self.finish_with(200, data, "text/html; charset=utf-8", body)

    def finish_with(self, status: int, data: bytes, kind: str, body: bool) -> None:
        """Send it; a browser that has the same page already gets 304."""
        tag_of = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        if status == 200 and self.headers.get("If-None-Match") == tag_of:
            status, data = 304, b""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", tag_of)
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the page is looked at every few seconds."""

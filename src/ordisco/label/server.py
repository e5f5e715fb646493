"""The page over HTTP, for one person at this machine.

It answers on the loopback address only. The page itself holds no data; every other request needs the token, which is
in the link's fragment and so in no request line, log or referrer. A request for another host's name, as a page of
that name would send after rebinding it to this address, is refused.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ordisco.errors import OrdiscoError
from ordisco.label.pictures import picture
from ordisco.label.session import NotNow, Session

ADDRESS = "127.0.0.1"
TOKEN = "x-ordisco-token"
MOST_BODY = 4096  # bytes of a request
PAGE = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def make_app(session: Session, folder: Path, token: str, port: int, close: Callable[[], None]) -> ASGIApp:
    """The application: `folder` is what the paths of the session are relative to; `close` ends the server."""

    async def page(request: Request) -> Response:
        name, kind = PAGE[request.url.path]
        return Response(resources("ordisco.label").joinpath("page", name).read_bytes(), media_type=kind)

    async def state(request: Request) -> Response:
        return JSONResponse(session.state())

    async def image(request: Request) -> Response:
        number = request.path_params["number"]
        if number >= len(session.paths):
            return refusal(404, "there is no such image")
        content = await run_in_threadpool(picture, folder / session.paths[number])
        return Response(content, media_type="image/png") if content else refusal(415, "the image cannot be read")

    async def answer(request: Request) -> Response:
        said = await body(request)
        number, label = said.get("image"), said.get("label")
        if type(number) is not int or not isinstance(label, str | None):
            return refusal(400, "give an image's number, and a label or null")
        session.say(number, label)
        return JSONResponse(session.state())

    async def undo(request: Request) -> Response:
        session.undo()
        return JSONResponse(session.state())

    async def end(request: Request) -> Response:
        close()
        return JSONResponse({})

    async def refused(request: Request, error: Exception) -> Response:
        return refusal(409 if isinstance(error, NotNow) else 400, str(error), session.state())

    routes = [
        *(Route(path, page) for path in PAGE),
        Route("/state", state),
        Route("/image/{number:int}", image),
        Route("/answer", answer, methods=["POST"]),
        Route("/undo", undo, methods=["POST"]),
        Route("/close", end, methods=["POST"]),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={OrdiscoError: refused}), token, port)


class Guard:
    """What every request must pass, and the headers that every answer has."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.token = app, token.encode()
        self.hosts = {f"{name}:{port}".encode() for name in (ADDRESS, "localhost")}
        self.origins = {b"http://" + host for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = self._refusal(scope) or self.app
        await answer(scope, receive, with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        given: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name, []).append(value)
        if len(given.get(b"host", [])) != 1 or given[b"host"][0] not in self.hosts:
            return refusal(421, "this server has another name")
        if any(origin not in self.origins for origin in given.get(b"origin", [])):
            return refusal(403, "a request of another page")
        if scope["path"] in PAGE:
            return None
        tokens = given.get(TOKEN.encode(), [])
        if len(tokens) != 1 or not secrets.compare_digest(tokens[0], self.token):
            return refusal(403, "the token is missing or wrong: use the link that `ordisco label` printed")
        return None


def with_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    """Send with `HEADERS`."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            mine = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *mine]}
        await send(message)

    return sent


async def body(request: Request) -> dict[str, Any]:
    """The JSON object of a request, if it is a small one."""
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > MOST_BODY:
            raise OrdiscoError("the request is too long")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise OrdiscoError("the request is no JSON object")
    return value


def refusal(code: int, reason: str, state: dict[str, Any] | None = None) -> Response:
    """An answer that says what was wrong, and what the page should show instead."""
    return JSONResponse({"error": reason, "state": state}, status_code=code)

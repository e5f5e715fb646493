"""The server from its start to its end."""

from __future__ import annotations

import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ordisco.errors import OrdiscoError
from ordisco.label.session import Session

CLOSING_SECONDS = 2


def check_installed() -> None:
    """Say how to install what is missing."""
    try:
        import starlette
        import uvicorn  # noqa: F401
    except ImportError as error:
        missing = error.name or "starlette"
        raise OrdiscoError(
            f"the page needs the package {missing}: install it with pip install 'ordisco[label]'"
        ) from error
    del starlette


def listen(port: int) -> socket.socket:
    """A socket on the loopback address; port 0 is any free one."""
    from ordisco.label.server import ADDRESS

    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((ADDRESS, port))
        listening.listen()  # so that the link works as soon as it is told
    except OSError as error:
        listening.close()
        raise OrdiscoError(
            f"cannot listen on {ADDRESS}:{port}: {error.strerror or error}; give another --port"
        ) from error
    return listening


def serve(session: Session, folder: Path, port: int, ready: Callable[[str], None]) -> None:
    """Answer until the page is closed by its button or the process by Ctrl-C; `ready` is told the link."""
    import uvicorn

    from ordisco.label.server import ADDRESS, make_app

    token = secrets.token_urlsafe(24)
    with listen(port) as listening:
        real = listening.getsockname()[1]

        def close() -> None:
            server.should_exit = True

        app = make_app(session, folder, token, real, close)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="critical",
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=CLOSING_SECONDS,
            )
        )
        with ends_by_signals():
            try:
                ready(f"http://{ADDRESS}:{real}/#{token}")
                server.run(sockets=[listening])
            except KeyboardInterrupt:  # as good an end as the button
                pass
            finally:
                session.close()


@contextmanager
def ends_by_signals() -> Iterator[None]:
    """SIGTERM as Ctrl-C, and Ctrl-C also where a shell had it ignored; uvicorn raises again what it was stopped by."""
    before = {each: signal.signal(each, signal.default_int_handler) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)

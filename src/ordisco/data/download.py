"""A published file over the network: exactly the bytes that are expected, from exactly the address that was asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ordisco.data.catalogue import Source

CHUNK = 1 << 18
PATIENCE = 30  # seconds without a byte


class Refused(Exception):
    """What the server offers is not what was asked for; the message says what it is."""


def received(source: Source) -> Iterator[bytes]:
    """The file's bytes as they come, with a bar on a terminal.

    No redirect is followed, and no more is read than the publisher's file has.
    """
    import requests
    from tqdm import tqdm

    as_it_is = {"Accept-Encoding": "identity"}
    with requests.get(source.url, stream=True, allow_redirects=False, timeout=PATIENCE, headers=as_it_is) as response:
        if 300 <= response.status_code < 400:
            raise Refused(f"redirected to {response.headers.get('Location', 'nowhere')}, which is not followed")
        response.raise_for_status()
        declared = response.headers.get("Content-Length", str(source.size))
        if declared != str(source.size):
            raise Refused(f"the server offers {declared} bytes, not {source.size}")
        count = 0
        with tqdm(total=source.size, unit="B", unit_scale=True, ncols=79, disable=not sys.stderr.isatty()) as bar:
            for chunk in response.raw.stream(CHUNK, decode_content=False):
                count += len(chunk)
                if count > source.size:
                    raise Refused(f"the server sends more than {source.size} bytes")
                bar.update(len(chunk))
                yield chunk
        if count < source.size:
            raise Refused(f"it ended after {count} of {source.size} bytes")

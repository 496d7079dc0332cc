"""Who connects: Python's sockets, by an audit hook; libraries in C are seen by the proxy only."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from typing import Final

_EVENTS: Final = frozenset({"socket.connect", "socket.getaddrinfo", "socket.sendto"})
_watching: list[list[str]] = []


@contextlib.contextmanager
def connecting() -> Iterator[list[str]]:
    """Collect what this process connects to, or looks up, during a block."""
    _install()
    seen: list[str] = []
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.remove(seen)


@functools.cache
def _install() -> None:
    sys.addaudithook(_note)  # for ever: there is no way to take a hook back


def _note(event: str, _: object) -> None:
    if _watching and event in _EVENTS:
        for seen in _watching:
            seen.append(event)

"""Sees who connects: Python's sockets, by an audit hook; only the proxy sees libraries in C."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Iterator
from typing import Final

_EVENTS: Final = frozenset({"socket.connect", "socket.getaddrinfo", "socket.sendto"})
_watching: dict[int, list[str]] = {}  # by thread: others, such as a proxy's, may connect


@contextlib.contextmanager
def connecting() -> Iterator[list[str]]:
    """Collect what this thread connects to, or looks up, during a block."""
    _install()
    seen = _watching[threading.get_ident()] = []
    try:
        yield seen
    finally:
        del _watching[threading.get_ident()]


@functools.cache
def _install() -> None:
    sys.addaudithook(_note)  # for ever: there is no way to take a hook back


def _note(event: str, _: object) -> None:
    if _watching and event in _EVENTS:
        seen = _watching.get(threading.get_ident())
        if seen is not None:
            seen.append(event)

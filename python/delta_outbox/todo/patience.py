"""How long a request waits, over all that it waits for."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass
class _Patience:
    """What a request has left."""

    seconds: float


_OF_REQUEST: ContextVar[_Patience | None] = ContextVar("patience", default=None)


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Let all that is awaited in a block (`within`) take so long together.

    Args:
        seconds: at most.
    """
    before = _OF_REQUEST.set(_Patience(seconds))
    try:
        yield
    finally:
        _OF_REQUEST.reset(before)


async def within(seconds: float, awaited: Awaitable[T]) -> T:
    """Await something.

    Args:
        seconds: at most; or what is left of the time of a request, if that is less.
        awaited: what is cancelled if it takes longer.

    Raises:
        TimeoutError: it does.
    """
    patience = _OF_REQUEST.get() or _Patience(seconds)
    began = time.monotonic()
    try:
        return await asyncio.wait_for(awaited, min(seconds, patience.seconds))
    finally:
        patience.seconds -= time.monotonic() - began

"""Bounds what a request may bring: its size, its depth, and the time that it takes to arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from pydantic_core import from_json

from delta_outbox.core.errors import OutboxError
from delta_outbox.railway.nesting import MOST_LEVELS, levels_of

MOST_BODY: Final = 1024**2  # bytes
MOST_HEADERS: Final = 16 * 1024  # bytes of the headers together
BODY_SECONDS: Final = 10.0  # until all of a body is there


class TooLarge(OutboxError):
    """The body has more bytes than a request may have."""

    code = "TOO_LARGE"
    remedy = f"Send at most {MOST_BODY} bytes."


class HeadersTooLarge(OutboxError):
    """The headers have more bytes than those of a request may have."""

    code = "HEADERS_TOO_LARGE"
    remedy = f"Send at most {MOST_HEADERS} bytes of headers."


class TooSlow(OutboxError):
    """The body has not arrived in time."""

    code = "TOO_SLOW"
    remedy = f"Send all of the body within {BODY_SECONDS:g} seconds."


class NoJson(OutboxError):
    """The body is no object of JSON that could be an answer."""

    code = "NOT_JSON"
    remedy = "Send an object of JSON, in UTF-8, without NaN and Infinity."


class NotJsonType(OutboxError):
    """The body says that it is something else than JSON."""

    code = "NOT_JSON_TYPE"
    remedy = "Send `Content-Type: application/json`."


class Incoming(Protocol):
    """What is asked of a request."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Return its headers; case does not matter."""

    def stream(self) -> Any:
        """Yield its body in pieces."""


def check_headers(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Demand that headers are small. The server reads larger ones, if they arrive at once.

    Args:
        headers: names and values.

    Raises:
        HeadersTooLarge: they have more than `MOST_HEADERS` bytes.
    """
    if sum(len(name) + len(value) for name, value in headers) > MOST_HEADERS:
        raise HeadersTooLarge("The headers are too large.")


async def object_of(request: Incoming) -> dict[str, Any]:
    """Return the object of JSON that a request brings.

    Args:
        request: whose body nobody has read.

    Raises:
        NotJsonType: it says that it is something else.
        TooLarge: it has more than `MOST_BODY` bytes.
        TooSlow: it has not arrived within `BODY_SECONDS`.
        NoJson: it is no object of JSON, or nested too deep.
    """
    check_json_type(request.headers)
    return read_object(await body_of(request))


def check_json_type(headers: Mapping[str, str]) -> None:
    """Demand that a body says that it is JSON.

    Args:
        headers: of its request; case does not matter.

    Raises:
        NotJsonType: it says that it is something else.
    """
    kind = headers.get("content-type", "").split(";", 1)[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise NotJsonType("The body must be JSON.")


async def body_of(request: Incoming) -> bytes:
    """Return the body of a request.

    Args:
        request: whose body nobody has read.

    Raises:
        TooLarge: it has more than `MOST_BODY` bytes.
        TooSlow: it has not arrived within `BODY_SECONDS`.
    """
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told[:20]) > MOST_BODY:
        raise TooLarge(f"The body must have at most {MOST_BODY} bytes.")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > MOST_BODY:
                    raise TooLarge(f"The body must have at most {MOST_BODY} bytes.")
    except TimeoutError:
        raise TooSlow("The body has not arrived in time.") from None
    return bytes(body)


def read_object(body: bytes) -> dict[str, Any]:
    """Return the object of a JSON text.

    Args:
        body: UTF-8.

    Raises:
        NoJson: it is none, or nested deeper than 64 levels.
    """
    try:
        text = body.decode()
        if levels_of(text) > MOST_LEVELS:
            raise NoJson(f"The body must be nested at most {MOST_LEVELS} levels deep.")
        value = from_json(text, allow_inf_nan=False)
    except ValueError:
        raise NoJson("The body must be an object of JSON; it cannot be read.") from None
    if not isinstance(value, dict):
        raise NoJson("The body must be an object of JSON.")
    return value

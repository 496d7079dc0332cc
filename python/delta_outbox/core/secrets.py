"""Finds the secrets in the settings of a destination, and the texts that must not show them."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote, unquote

from delta_outbox.core.settings import FromEnvironment, dotted

HIDDEN: Final = "***"
SHORTEST: Final = 4  # characters; hiding shorter ones would blank ordinary text
_SHORTEST_LINE: Final = 16  # characters of a line of a secret that has several, such as a key

_SECRET_NAME: Final = re.compile(
    r"(?i)pass(?:word|wd|phrase|code)|pwd|secret|token|credential|authorization|sasl[._-]?username"
    r"|(?:api|access|account|private|shared)[._-]?key|(?:key|certificate)[._-]?pem"
    r"|connection[._-]?string|(?:^|[._-])(?:pass|dsn)$"
)
# What such a setting says of a place, a kind or a name is no secret: ssl.key.location, token_url.
_PLAIN_WORDS: Final = frozenset(
    """
    algorithm database endpoint file group host hostname hosts id location mechanism mechanisms
    method name path port protocol queue region scope server servers subject topic topics type
    """.split()  # noqa: SIM905 - easier to check than thirty quotes
)
_PLACE_WORDS: Final = frozenset({"url", "uri"})  # from the environment they may hold a secret
_PLAIN_VALUE: Final = re.compile(r"(?i)true|false|[-+0-9.,]*")
_PARTS: Final = re.compile(r"\s+|\\+|.", re.DOTALL)
_URL_USER: Final = re.compile(r"://([^/@\s]+)@")

_in_force: list[tuple[str, ...]] = []
_lock: Final = threading.Lock()
_pattern_in_force: re.Pattern[str] | None = None


def secrets_of(settings: Mapping[str, object]) -> tuple[str, ...]:
    """Return the values of settings that must never be shown.

    Secret is what has a name that says so, what comes from an environment variable (unless its
    name says that it is a place or a kind), and the user in a URL.

    Args:
        settings: of a destination.
    """
    found: dict[str, None] = {}
    for name, value in _texts(settings):
        plain = _plain(name, value)
        if not plain:
            found[value] = None
        for user in _URL_USER.findall(value):
            found |= dict.fromkeys((user, *map(unquote, user.split(":", 1)[1:])))
    return tuple(found)


def literal_secrets(settings: Mapping[str, object]) -> list[str]:
    """Return the names of settings whose secret stands in the file itself.

    Args:
        settings: of a destination.
    """
    return [
        name
        for name, value in _texts(settings)
        if not isinstance(value, FromEnvironment)
        and value
        and (not _plain(name, value) or _URL_USER.search(value))
    ]


def without_secrets(text: str, secrets: Collection[str] = ()) -> str:
    """Return a text in which secrets are hidden: those given, and those in force (`hiding`).

    Args:
        text: any text.
        secrets: values that must not be shown.
    """
    for pattern in (_pattern(frozenset(secrets)) if secrets else None, _pattern_in_force):
        if pattern is not None:
            text = pattern.sub(HIDDEN, text)
    return text


@contextlib.contextmanager
def hiding(secrets: Iterable[str]) -> Iterator[None]:
    """Hide secrets in every text that this process scrubs during a block, in every thread.

    Args:
        secrets: values that must not be shown.
    """
    group = tuple(secrets)
    _enforce(_in_force.append, group)
    try:
        yield
    finally:
        _enforce(_in_force.remove, group)


def _enforce(change: Callable[[tuple[str, ...]], None], group: tuple[str, ...]) -> None:
    # Every receipt is searched, so the pattern of all that is in force is made only here.
    global _pattern_in_force
    with _lock:
        change(group)
        _pattern_in_force = _pattern(frozenset(one for group in _in_force for one in group))


def cause_to_show(error: Exception, secrets: Collection[str]) -> Exception | None:
    """Return an error that may be the cause of ours, None if its trace would show a secret.

    Args:
        error: of anybody's code.
        secrets: values that must not be shown.
    """
    trace = "".join(traceback.format_exception(error))
    return error if without_secrets(trace, secrets) == trace else None


def _texts(settings: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield every text of settings below its dotted name."""
    for name, value in dotted(settings).items():
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, list | tuple):
            for entry in value:
                nested = entry if isinstance(entry, Mapping) else {"": entry}
                for inner, text in dotted(nested).items():
                    if isinstance(text, str):
                        yield f"{name}.{inner}".rstrip("."), text


def _plain(name: str, value: str) -> bool:
    """Say whether a value may be shown."""
    last = re.split(r"[._-]", name.lower())[-1]
    if _SECRET_NAME.search(name):
        return last in _PLAIN_WORDS | _PLACE_WORDS
    if isinstance(value, FromEnvironment):
        return last in _PLAIN_WORDS or _PLAIN_VALUE.fullmatch(value) is not None
    return True


@functools.lru_cache(maxsize=64)
def _pattern(secrets: frozenset[str]) -> re.Pattern[str] | None:
    """Return what finds secrets in a text, the longest first; None without any."""
    parts = {
        part.strip()
        for secret in secrets
        for part in (secret, *(one for one in secret.split("\n") if len(one) >= _SHORTEST_LINE))
    }
    kept = sorted((part for part in parts if len(part) >= SHORTEST), key=len, reverse=True)
    forms = [
        form
        for part in kept
        for form in (_as_written(part), re.escape(quote(part, safe="", errors="replace")))
    ]
    return re.compile("|".join(dict.fromkeys(forms))) if forms else None


def _as_written(secret: str) -> str:
    """Return a pattern for a secret as it is, as code and JSON write it (quoted, even several
    times), and as our own single line does.
    """
    return "".join(map(_part_as_written, _PARTS.findall(secret)))


def _part_as_written(part: str) -> str:
    if part.isspace():
        return r"(?:\s|\\+[nrtvfx]\w{0,2})+"
    if part[0] == "\\":
        return r"\\+"
    if part in "'\"":
        return rf"\\*{part}"
    if part.isascii() and part.isprintable():
        return re.escape(part)
    code = ord(part)
    escapes = {f"x{code:02x}", f"u{code:04x}", f"U{code:08x}", json.dumps(part)[2:-1]}
    escaped = "|".join(re.escape(one) for one in sorted(escapes, key=len))
    return rf"(?:{re.escape(part)}|\s|\\+(?:{escaped}))"

"""Text of errors that may be stored and shown: printable, short, without secrets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

MAX_ERROR_LENGTH: Final = 500  # characters
_HIDDEN: Final = "***"
_SHORTEST_SECRET: Final = 4  # characters; hiding shorter ones would blank ordinary text

# Control, format (bidirectional overrides), surrogate, private use, line and paragraph separators:
# none of them may reach a terminal or a log line raw.
_UNPRINTABLE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})

_URL_USER: Final = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_NAMED_SECRET: Final = re.compile(
    r"(?i)(pass(?:word|wd|phrase)?|secret|token|api[_-]?key|authorization)"
    r"([\"']?\s*[=:]\s*)((?:bearer|basic)\s+\S+|\"[^\"]*\"|'[^']*'|[^\s,;]+)"
)


def scrub(text: object, *, secrets: Iterable[str] = ()) -> str:
    """Return one printable line of at most 500 characters in which secrets are hidden.

    Args:
        text: what is reported; anything but a string is shown by `str`.
        secrets: values (of settings) that must never be shown.
    """
    line = str(text)[: 8 * MAX_ERROR_LENGTH]
    for secret in sorted((s for s in secrets if len(s) >= _SHORTEST_SECRET), key=len, reverse=True):
        line = line.replace(secret, _HIDDEN)
    line = _NAMED_SECRET.sub(rf"\1\2{_HIDDEN}", _URL_USER.sub(_HIDDEN, line))
    if not (line.isascii() and line.isprintable()):
        line = "".join(
            " " if unicodedata.category(c) in _UNPRINTABLE_CATEGORIES else c for c in line
        )
    line = " ".join(line.split())
    if len(line) > MAX_ERROR_LENGTH:
        line = line[: MAX_ERROR_LENGTH - 1] + "…"
    return line


def describe(error: BaseException, *, secrets: Iterable[str] = ()) -> str:
    """Return the class of an exception and its scrubbed text.

    Args:
        error: what was raised.
        secrets: values that must never be shown.
    """
    return scrub(f"{type(error).__name__}: {error}", secrets=secrets)

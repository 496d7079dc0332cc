"""Makes texts of errors printable, short, and free of secrets."""

from __future__ import annotations

import re
import traceback
import unicodedata
from collections.abc import Iterable
from typing import Final

from delta_outbox.core.secrets import HIDDEN, without_secrets

MAX_ERROR_LENGTH: Final = 500  # characters

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
        secrets: values (of settings) that must never be shown, beside those in force (`hiding`).
    """
    # Before anything is cut: half a secret would not be found any more.
    line = without_named_secrets(without_secrets(str(text), tuple(secrets))[: 8 * MAX_ERROR_LENGTH])
    if not (line.isascii() and line.isprintable()):
        line = "".join(
            " " if unicodedata.category(c) in _UNPRINTABLE_CATEGORIES else c for c in line
        )
    line = " ".join(line.split())
    if len(line) > MAX_ERROR_LENGTH:
        line = line[: MAX_ERROR_LENGTH - 1] + "…"
    return line


def without_named_secrets(text: str) -> str:
    """Return a text in which whatever is called a password, a token and so on is hidden.

    Args:
        text: any text.
    """
    return _NAMED_SECRET.sub(rf"\1\2{HIDDEN}", _URL_USER.sub(HIDDEN, text))


def describe(error: BaseException, *, secrets: Iterable[str] = ()) -> str:
    """Return the class of an exception and its scrubbed text.

    Args:
        error: what was raised.
        secrets: values that must never be shown.
    """
    return scrub(f"{type(error).__name__}: {error}", secrets=secrets)


def without_text(error: BaseException) -> str:
    """Return the class of an exception and where it was raised. Its text may hold data.

    Args:
        error: what was raised.
    """
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return scrub(f"{type(error).__name__}{where}")

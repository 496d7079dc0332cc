"""The rules of an operator's arguments. `dbt run-operation` keeps the same ones (macros/requests).

Each rule takes what came and returns what is meant; what is wrong goes to a list, in words that
are the same on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from delta_outbox.core.globs import glob_to_regex

MAX_TEXT: Final = 500  # characters of a reason, an event type, a part of an error
MAX_ACTOR: Final = 200  # characters
MAX_ID: Final = 1000  # characters
MAX_IDS: Final = 10_000  # ids in one request

_SHOWN: Final = 80  # characters of what came
_OTHER_SPACES: Final = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
INSTANT_RULE: Final = "must be an instant with an offset, such as 2026-11-01T12:00:00Z"


def shown(value: object) -> str:
    """Quote what came: escaped, and cut.

    Args:
        value: any value.
    """
    text = value if isinstance(value, str) else str(value)
    return f"{text[:_SHOWN]!r}" + ("..." if len(text) > _SHOWN else "")


# twin: macros/requests/check_choice.sql::check_choice
class Arguments:
    """Checks the arguments of one operation and keeps everything that is wrong."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def refuse(self, name: str, rule: str, value: object) -> None:
        """Keep a problem.

        Args:
            name: of the argument.
            rule: what it must be.
            value: what came instead.
        """
        came = "nothing" if value is None else shown(value)
        self.problems.append(f"`{name}` {rule}. Got: {came}")

    def choice(self, name: str, value: object, choices: tuple[str, ...]) -> str:
        """Return one of a few words; capitals do not matter.

        Args:
            name: of the argument.
            value: what came.
            choices: the words, in capitals.
        """
        if isinstance(value, str) and value.upper() in choices:
            return value.upper()
        self.refuse(name, f"must be {' or '.join(choices)}", value)
        return choices[0]

    def line(self, name: str, value: object, most: int) -> str:
        """Return one printable line, without the spaces around it; it must be given.

        Args:
            name: of the argument.
            value: what came.
            most: characters.
        """
        if isinstance(value, str):
            line = value.strip()
            if 0 < len(line) <= most and _OTHER_SPACES.sub(" ", line).isprintable():
                return line
        self.refuse(name, f"must be one printable line of 1 to {most} characters", value)
        return ""

    def part(self, name: str, value: object) -> str | None:
        """Return a text that is looked for, as it is; None if it is not given.

        Args:
            name: of the argument.
            value: what came.
        """
        if value is None or _is_text(value, MAX_TEXT):
            return value if isinstance(value, str) else None
        self.refuse(name, f"must be text of 1 to {MAX_TEXT} characters", value)
        return None

    def glob(self, name: str, value: object) -> str | None:
        """Return the regular expression that a shell glob means; None if it is not given.

        Args:
            name: of the argument.
            value: what came.
        """
        rule = "must be an event type or a shell glob"
        if value is None:
            return None
        if not isinstance(value, str) or not _is_text(value, MAX_TEXT):
            self.refuse(name, f"{rule} of 1 to {MAX_TEXT} characters", value)
            return None
        try:
            return glob_to_regex(value)
        except ValueError as error:
            self.refuse(name, f"{rule}: {error}", value)
            return None

    def instant(self, name: str, value: object) -> datetime | None:
        """Return an instant with its offset; None if it is not given.

        Args:
            name: of the argument.
            value: what came, a datetime.
        """
        if value is None or (isinstance(value, datetime) and value.utcoffset() is not None):
            return value
        self.refuse(name, INSTANT_RULE, value)
        return None

    def whole(self, name: str, value: object, least: int, most: int) -> int | None:
        """Return a whole number; None if it is not given.

        Args:
            name: of the argument.
            value: what came.
            least: the smallest that is accepted.
            most: the largest.
        """
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.refuse(name, f"must be a whole number from {least} to {most}", value)
        return None

    def ids(self, name: str, value: object, *, required: bool = False) -> tuple[str, ...] | None:
        """Return ids, each once; None if they are not given.

        An empty list is refused: whoever computed it did not mean "all of them".

        Args:
            name: of the argument.
            value: what came, a sequence of texts.
            required: they must be given.
        """
        if value is None and not required:
            return None
        rule = f"must be a list of 1 to {MAX_IDS} ids"
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            self.refuse(name, rule, value)
            return None
        if not 0 < len(value) <= MAX_IDS:
            self.refuse(name, rule, f"{len(value)} ids")
            return None
        for one in value:
            if not _is_text(one, MAX_ID):
                self.refuse(name, f"{rule}, each text of 1 to {MAX_ID} characters", one)
                return None
        return tuple(dict.fromkeys(value))

    def flag(self, name: str, value: object) -> bool:
        """Return true or false; a text that says so is neither.

        Args:
            name: of the argument.
            value: what came.
        """
        if isinstance(value, bool):
            return value
        self.refuse(name, "must be true or false", value)
        return False


def _is_text(value: object, most: int) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value) <= most
        # What is no Unicode text cannot be stored, so nothing can be equal to it.
        and _SURROGATES.search(value) is None
    )

"""Read one line of JSON and give back a part of it as compact text, nothing changed.

Python reads `1e5`, `1.10` and `-0` as numbers and would write them otherwise; a consumer that
checks a signature, or counts digits, needs them as the producer wrote them.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

_LONG_NUMBER: Final = 600  # digits; Python refuses to read or write whole numbers far beyond
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class JsonTextError(Exception):
    """A line is not JSON, or is JSON that two readers would understand differently."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule, self.message = rule, message


class _Number:
    """A number as it was written."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class JsonReader:
    """Reads lines one after the other; keeps the last one for `text_of`."""

    def __init__(self) -> None:
        """Prepare the two ways of reading: fast, and with numbers as they were written."""
        self._line = ""
        self._document: Any = None
        self._is_rewritten = False  # whether a number would be written otherwise than it came
        self._fast = json.JSONDecoder(
            object_pairs_hook=_object,
            parse_int=self._whole,
            parse_float=self._decimal,
            parse_constant=_refuse_constant,
        )
        self._literal = json.JSONDecoder(
            object_pairs_hook=_object,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_refuse_constant,
        )
        self._encode = json.JSONEncoder(
            ensure_ascii=False, separators=(",", ":"), check_circular=False
        ).encode

    def read(self, line: bytes) -> Any:
        """Return the value that the line holds.

        Raises:
            JsonTextError: with a message that holds nothing of the line.
        """
        self._is_rewritten = False
        try:
            self._line = line.decode("utf-8").strip(" \t\r\n")
            self._document = self._fast.decode(self._line)
            self._refuse_half_pairs()
        except UnicodeDecodeError as error:
            raise JsonTextError("utf8", f"not UTF-8 at byte {error.start + 1}.") from None
        except json.JSONDecodeError as error:
            raise JsonTextError("json", f"not JSON: {error.msg} at column {error.colno}.") from None
        except RecursionError:
            raise JsonTextError("json", "nested too deeply.") from None
        return self._document

    def text_of(self, name: str) -> str:
        """Return the value of a field of the last line as compact JSON.

        Raises:
            JsonTextError: it is nested too deeply.
        """
        try:
            if self._is_rewritten:
                return _compact(self._literal.decode(self._line)[name], self._encode)
            return self._encode(self._document[name])
        except RecursionError:
            raise JsonTextError("json", "nested too deeply.") from None

    def _refuse_half_pairs(self) -> None:
        # Half of a surrogate pair can only come from an escape; no text in UTF-8 can hold it.
        if "\\u" in self._line and _SURROGATE.search(self._encode(self._document)):
            raise JsonTextError("utf8", "an escape is half of a surrogate pair.")

    def _whole(self, text: str) -> float:
        if len(text) > _LONG_NUMBER:
            self._is_rewritten = True
            return math.nan  # stands for it; no column takes a number as long as that
        value = int(text)
        if text == "-0":
            self._is_rewritten = True
        return value

    def _decimal(self, text: str) -> float:
        value = float(text)
        if repr(value) != text:
            self._is_rewritten = True
        return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise JsonTextError("unique_names", "an object has the same name twice.")
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise JsonTextError("json", f"{text} is not a JSON value.")


def _compact(value: Any, encode: Any) -> str:
    if isinstance(value, _Number):
        return value.text
    if isinstance(value, dict):
        inner = (f"{encode(name)}:{_compact(held, encode)}" for name, held in value.items())
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_compact(held, encode) for held in value) + "]"
    text: str = encode(value)
    return text

"""The fields of a form: what a person fills in, and by which rule."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

FEW_CHOICES: Final = 6  # that are shown beside each other; more are a list to choose from
SHORT_TEXT: Final = 120  # characters; a text that may be longer has several lines

# What the browser's own control for a format of a string is called.
INPUTS: Final = {
    "date": "date",
    "date-time": "datetime-local",
    "time": "time",
    "email": "email",
    "uri": "url",
}
_FORMATS: Final = {
    "date": "a date, such as 2026-11-28",
    "date-time": "a date and a time in UTC, such as 2026-11-28T14:30",
    "time": "a time, such as 14:30",
    "email": "an e-mail address",
    "uri": "a web address that begins with https://",
}


class Kind(StrEnum):
    """How a field is filled in."""

    TEXT = "text"
    DATE_TIME = "date_time"
    INTEGER = "integer"
    NUMBER = "number"
    CHOICE = "choice"  # one of several values
    CHOICES = "choices"  # any of several values: an array
    LINES = "lines"  # an array, one item a line
    GROUP = "group"  # an object with fields of its own
    FIXED = "fixed"  # the only value that the contract allows; nobody is asked for it
    JSON = "json"  # whatever else


class _Missing:
    """Stands for a value that is not there."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A value that can be chosen.

    Args:
        value: of JSON.
        label: what a person reads.
    """

    value: Any
    label: str

    @property
    def text(self) -> str:
        """Return what the browser sends for it: the value as JSON."""
        return json_text(self.value)


@dataclass(frozen=True, kw_only=True)
class Field:
    """A place of the answer that a person fills in.

    Args:
        pointer: JSON Pointer of its place (RFC 6901).
        key: of the object that holds it.
        title: its label.
        kind: how it is filled in.
        description: by the author of the contract.
        required: the object must have the key.
        nullable: null is a value of it; a field that is left empty means null then.
        default: what counts where the key is left out; MISSING if nothing does.
        input: the control of the browser, for a text.
        lowest: number, or length of a text, or items of an array; None: no limit.
        highest: as `lowest`.
        is_open_below: `lowest` itself is too low.
        is_open_above: `highest` itself is too high.
        choices: for CHOICE and CHOICES, and the only one of FIXED.
        fields: of a GROUP.
        item: of LINES; it has the pointer of the array.
    """

    pointer: str
    key: str
    title: str
    kind: Kind
    description: str = ""
    required: bool = True
    nullable: bool = False
    default: Any = MISSING
    input: str = "text"
    lowest: float | None = None
    highest: float | None = None
    is_open_below: bool = False
    is_open_above: bool = False
    choices: Sequence[Choice] = ()
    fields: Sequence[Field] = field(default=())
    item: Field | None = None

    @property
    def may_be_empty(self) -> bool:
        """Say whether it may be left empty."""
        return self.nullable or not self.required

    @property
    def has_several_lines(self) -> bool:
        """Say whether its text may need more than a line."""
        if self.kind in (Kind.LINES, Kind.JSON):
            return True
        is_plain = self.kind is Kind.TEXT and self.input == "text"
        return is_plain and (self.highest is None or self.highest > SHORT_TEXT)

    @property
    def is_list(self) -> bool:
        """Say whether its choices are too many to stand beside each other."""
        return self.kind is Kind.CHOICE and len(self.choices) > FEW_CHOICES

    @property
    def rule(self) -> str:
        """Return what may be filled in, as the end of a sentence that begins with "Give"; empty if
        anything may.
        """
        return _RULES[self.kind](self)

    def below(self) -> Iterator[Field]:
        """Yield it and the fields below it."""
        yield self
        for one in self.fields:
            yield from one.below()


def json_text(value: Any) -> str:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def human(name: str) -> str:
    """Return the name of a thing in a program as a person reads it.

    Args:
        name: `agreed_to_cancel`.
    """
    words = name.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def _plain(number: float) -> str:
    return json_text(int(number) if float(number).is_integer() else number)


def _span(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" {_plain(low)}" if low == high else f" {_plain(low)} to {_plain(high)}"
    if high is not None:
        return f" at most {_plain(high)}"
    return f" at least {_plain(low)}" if low else ""


def _text_rule(one: Field) -> str:
    if one.input in INPUTS.values():
        return _FORMATS[next(form for form, name in INPUTS.items() if name == one.input)]
    span = _span(one.lowest or None, one.highest)
    return f"{span.strip()} character{'' if span.strip().endswith(' 1') else 's'}" if span else ""


def _number_rule(one: Field, what: str) -> str:
    low, high = one.lowest, one.highest
    if low is not None and high is not None and not (one.is_open_below or one.is_open_above):
        return f"{what} from {_plain(low)} to {_plain(high)}"
    parts = []
    if low is not None:
        parts.append(f"{'above' if one.is_open_below else 'of at least'} {_plain(low)}")
    if high is not None:
        parts.append(f"{'below' if one.is_open_above else 'of at most'} {_plain(high)}")
    return " ".join((what, " and ".join(parts))).rstrip()


def _lines_rule(one: Field) -> str:
    items = _span(one.lowest or None, one.highest)
    each = f", each {one.item.rule}" if one.item is not None and one.item.rule else ""
    return f"one a line{',' + items + ' lines' if items else ''}{each}"


_RULES: Final[Mapping[Kind, Callable[[Field], str]]] = {
    Kind.TEXT: _text_rule,
    Kind.DATE_TIME: _text_rule,
    Kind.INTEGER: lambda one: _number_rule(one, "a whole number"),
    Kind.NUMBER: lambda one: _number_rule(one, "a number"),
    Kind.CHOICE: lambda _: "one of these",
    Kind.CHOICES: lambda one: f"{_span(one.lowest or None, one.highest).strip() or 'any'} of these",
    Kind.LINES: _lines_rule,
    Kind.GROUP: lambda _: "",
    Kind.FIXED: lambda _: "",
    Kind.JSON: lambda _: "JSON",
}

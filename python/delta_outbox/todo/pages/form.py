"""What a browser sends for the fields of a form, and the answer that it stands for."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from delta_outbox.todo.pages.contract_reader import fields_of_schema
from delta_outbox.todo.pages.fields import MISSING, Field, Kind, json_text

PREFIX: Final = "data"  # of the names of fields in the browser; their pointers follow
MOST_DIGITS: Final = 400  # of a number

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")

Texts = Mapping[str, Sequence[str]]  # what was filled in, by name in the browser


@dataclass(frozen=True, kw_only=True)
class Filled:
    """What was made of a form that somebody has filled in.

    Args:
        data: the answer, as far as it could be read.
        problems: by pointer of a field, what is to be done about it.
    """

    data: dict[str, Any]
    problems: Mapping[str, str]


class _NotThis(Exception):
    """A text is not what its field asks for."""


class Form:
    """A contract as a form.

    Args:
        schema: the JSON Schema of the contract.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.fields = fields_of_schema(schema)

    def all_fields(self) -> Iterator[Field]:
        """Yield the fields, each before those below it."""
        for one in self.fields:
            yield from one.below()

    def field_at(self, pointer: str) -> Field | None:
        """Return the field that shows a place: the nearest at or above it.

        Args:
            pointer: JSON Pointer of the place.
        """
        holders = [
            one
            for one in self.all_fields()
            if pointer == one.pointer or pointer.startswith(f"{one.pointer}/")
        ]
        return max(holders, key=lambda one: len(one.pointer), default=None)

    def known(self, read_model: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a read model says of an answer: the values whose names and types are those
        of fields. A contract must say which item an answer is about, and so does the read model.

        Args:
            read_model: of the item.
        """
        found: dict[str, Any] = {}
        for one in self.fields:
            value = read_model.get(one.key, MISSING)
            if value is MISSING or value is None or one.kind in (Kind.GROUP, Kind.JSON, Kind.FIXED):
                continue
            problems: dict[str, str] = {}
            read = _value(one, {name_of(one): _texts(one, value)}, problems)
            if not problems and json_text(read) == json_text(value):
                found[one.key] = value
        return found

    def texts(self, data: Mapping[str, Any]) -> dict[str, Sequence[str]]:
        """Return what the fields hold that stand for an answer.

        Args:
            data: the answer; defaults stand for what it lacks.
        """
        return dict(_texts_of_object(self.fields, data))

    def read(self, texts: Texts) -> Filled:
        """Return the answer that was filled in. The contract is asked afterwards: what a field
        says of itself is checked here, for a sentence that says what to do.

        Args:
            texts: by name in the browser.
        """
        problems: dict[str, str] = {}
        data = _object(self.fields, texts, problems)
        if not isinstance(data, dict):
            problems.setdefault("", "Give an object of JSON.")
            data = {}
        return Filled(data=data, problems=problems)


def is_filled_in_by(one: Field, known: Mapping[str, Any]) -> bool:
    """Say whether a field is most likely as it should be: the contract demands it, and the read
    model knows it.

    Args:
        one: a field of the answer itself.
        known: of the read model.
    """
    is_plain = one.kind in (Kind.TEXT, Kind.INTEGER)
    return is_plain and one.key in known and one.required and one.default is MISSING


def name_of(one: Field) -> str:
    """Return the name of a field in the browser."""
    return PREFIX + one.pointer


def sentence(one: Field) -> str:
    """Return what to do about a field that is not filled in as it asks for."""
    return f"Give {one.rule}." if one.rule else "Fill this in."


def _texts_of_object(
    fields: Sequence[Field], data: Any, *, with_defaults: bool = True
) -> Iterator[tuple[str, Sequence[str]]]:
    for one in fields:
        if one.pointer == "":
            yield name_of(one), [json.dumps(data, ensure_ascii=False, indent=2)] if data else []
            continue
        value = data.get(one.key, MISSING) if isinstance(data, Mapping) else MISSING
        if value is MISSING and with_defaults:
            value = one.default
        if one.kind is Kind.GROUP:
            # A default in an object that may be left out would make it be there.
            fills = with_defaults and one.required and not one.nullable
            yield from _texts_of_object(one.fields, value, with_defaults=fills)
        elif value is not MISSING and value is not None:
            yield name_of(one), _texts(one, value)


def _texts(one: Field, value: Any) -> Sequence[str]:
    match one.kind:
        case Kind.CHOICE:
            return [json_text(value)]
        case Kind.CHOICES:
            return [json_text(item) for item in value] if isinstance(value, list) else []
        case Kind.LINES:
            assert one.item is not None
            each = value if isinstance(value, list) else []
            return ["\n".join(text for item in each for text in _texts(one.item, item))]
        case Kind.DATE_TIME:
            return [_local(value)] if isinstance(value, str) else []
        case Kind.JSON:
            return [json.dumps(value, ensure_ascii=False, indent=2)]
        case Kind.TEXT:
            return [value] if isinstance(value, str) else [json_text(value)]
    return [json_text(value)]


def _object(fields: Sequence[Field], texts: Texts, problems: dict[str, str]) -> Any:
    found: dict[str, Any] = {}
    for one in fields:
        value = _value(one, texts, problems)
        if one.pointer == "":
            return value
        if value is not MISSING:
            found[one.key] = value
    return found


def _value(one: Field, texts: Texts, problems: dict[str, str]) -> Any:
    """Return the value of a field, MISSING if its key is to be left out."""
    if one.kind is Kind.FIXED:
        return one.choices[0].value
    if one.kind is Kind.GROUP:
        if (one.nullable or not one.required) and _is_empty(one, texts):
            return None if one.nullable else MISSING
        return _object(one.fields, texts, problems)
    given = [text.replace("\r\n", "\n") for text in texts.get(name_of(one), ())]
    if one.kind is Kind.CHOICES:
        return _chosen(one, given, problems)
    text = given[0] if given else ""
    if not text.strip() and (value := _left_empty(one, text)) is not None:
        return value[0]
    try:
        return _lines(one, text) if one.kind is Kind.LINES else _scalar(one, text)
    except _NotThis:
        problems[one.pointer] = sentence(one) if text.strip() else _asked_for(one)
        return MISSING


def _left_empty(one: Field, text: str) -> tuple[Any] | None:
    """Return what a field means that was left empty; None if it must not be."""
    is_plain = one.kind is Kind.TEXT and one.input == "text"
    if is_plain and text:  # spaces are a text
        return None
    if one.kind is Kind.LINES and not one.nullable and (one.required or one.default is not MISSING):
        return None if one.lowest else ([],)
    if one.nullable:
        return (None,)
    if is_plain and (one.required or one.default is not MISSING):
        return None if one.lowest else ("",)
    return None if one.required else (MISSING,)


def _asked_for(one: Field) -> str:
    if one.kind is Kind.CHOICE:
        return "Choose one of these."
    return sentence(one)


def _is_empty(one: Field, texts: Texts) -> bool:
    return not any(text.strip() for field in one.below() for text in texts.get(name_of(field), ()))


def _chosen(one: Field, given: Sequence[str], problems: dict[str, str]) -> Any:
    values = [choice.value for choice in one.choices if choice.text in given]
    if not values and one.nullable:
        return None
    if not values and not one.required and one.default is MISSING:
        return MISSING
    if not _within(one, len(values)) or {*given} - {choice.text for choice in one.choices}:
        problems[one.pointer] = f"Choose {one.rule}."
    return values


def _lines(one: Field, text: str) -> list[Any]:
    assert one.item is not None
    found = [_scalar(one.item, line) for line in text.split("\n") if line.strip()]
    if not _within(one, len(found)):
        raise _NotThis
    return found


def _scalar(one: Field, text: str) -> Any:
    """Return the value of a text.

    Raises:
        _NotThis: it is none of the field.
    """
    match one.kind:
        case Kind.INTEGER:
            return _number(one, text.strip(), _INTEGER)
        case Kind.NUMBER:
            return _number(one, text.strip(), _NUMBER)
        case Kind.CHOICE:
            return _choice(one, text)
        case Kind.DATE_TIME:
            return _instant(text.strip())
        case Kind.JSON:
            return _json(text)
    value = text if one.input == "text" else text.strip()
    if not _within(one, len(value)) or (one.input != "text" and not value):
        raise _NotThis
    return value


def _choice(one: Field, text: str) -> Any:
    for choice in one.choices:
        if choice.text == text:
            return choice.value
    raise _NotThis


def _number(one: Field, text: str, form: re.Pattern[str]) -> int | float:
    if form.fullmatch(text) is None or len(text) > MOST_DIGITS:
        raise _NotThis
    value = int(text) if _INTEGER.fullmatch(text) else float(text)
    if not math.isfinite(value) or not _within(one, value):
        raise _NotThis
    return value


def _json(text: str) -> Any:
    def refuse(_: str) -> Any:
        raise _NotThis

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise _NotThis from None


def _instant(text: str) -> str:
    """Return an instant with its offset; the browser sends none, and the form says UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise _NotThis from None
    return text if at.tzinfo is not None else f"{at.isoformat()}Z"


def _local(text: str) -> str:
    """Return an instant as the browser takes it: in UTC, without an offset."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return (at.astimezone(UTC) if at.tzinfo else at).replace(tzinfo=None).isoformat()


def _within(one: Field, size: float) -> bool:
    low, high = one.lowest, one.highest
    if low is not None and (size < low or (one.is_open_below and size == low)):
        return False
    return high is None or size < high or (size == high and not one.is_open_above)

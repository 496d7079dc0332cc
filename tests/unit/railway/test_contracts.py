"""Payloads are judged by the JSON Schema of their workflow, in linear time."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, TypeAdapter, create_model

from delta_outbox.railway import contracts
from delta_outbox.railway.contracts import Contract, DoesNotFit


class And(BaseModel):
    """A rule of which two alternatives have rules of their own."""

    of: And | Or | Is
    kind: Literal["and"]


class Or(BaseModel):
    """Another one."""

    of: And | Or | Is
    kind: Literal["or"]


class Is(BaseModel):
    """A rule that has none."""

    kind: Literal["is"]


def contract(**schema: Any) -> Contract:
    """Return a contract of objects."""
    return Contract(json.dumps({"type": "object", **schema}))


def test_no_pattern_holds_up_whoever_judges() -> None:
    """A pattern over which Python's engine takes for ever is judged at once, so that no payload
    stops a relay: it fits or it does not.
    """
    mail = contract(properties={"mail": {"type": "string", "pattern": r"^(\w+\.?)+@x$"}})
    letters = "a" * 10_000
    assert {"mail": f"{letters}@x"} == mail.read(json.dumps({"mail": f"{letters}@x"}).encode())
    with pytest.raises(DoesNotFit, match="it breaks properties/mail/pattern"):
        mail.read(json.dumps({"mail": letters}).encode())
    with pytest.raises(DoesNotFit, match="properties/mail/type"):
        mail.read(b'{"mail": 1}')


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "(?=a)b"}}},
        {"$defs": {"A": {"items": [{"pattern": "(a)\\1"}]}}},
        {"patternProperties": {"(a+)+b": {}}},
        {"$dynamicRef": "#a"},
        {"unevaluatedItems": False},
        {"unevaluatedProperties": False},
    ],
)
def test_what_cannot_be_judged_in_linear_time_is_no_contract(schema: dict[str, Any]) -> None:
    """Patterns that look around or back, and those for names, are refused before any payload; so
    are rules about what other rules leave over, and references that depend on how one got there.
    """
    assert not contract(**schema).is_readable


def test_a_field_may_have_the_name_of_a_rule() -> None:
    """Only rules are looked at, and not the names of fields."""
    named = contract(properties={"pattern": {"type": "string"}, "patternProperties": {}})
    assert {"pattern": "("} == named.read(b'{"pattern": "("}')


@pytest.mark.parametrize("kind", [Decimal, datetime, UUID, dict[str, int], int | None])
def test_the_usual_types_can_be_judged(kind: Any) -> None:
    """What pydantic makes of them has no pattern that is refused."""
    schema = TypeAdapter(create_model("Start", field=(kind, ...))).json_schema()
    assert Contract(json.dumps(schema)).is_readable


def nested(levels: int, kind: str) -> bytes:
    """Return a payload whose rule has so many others within it."""
    return b'{"rule":%s{"kind":"%s"}%s}' % (
        b'{"kind":"or","of":' * levels,
        kind.encode(),
        b"}" * levels,
    )


def test_a_union_is_judged_once_at_each_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alternatives that have the same alternatives within them judge each value once, not twice as
    often with each level: a payload of a few hundred bytes stops no relay.
    """
    schema = TypeAdapter(create_model("Asked", rule=(And | Or | Is, ...))).json_schema()
    rules = Contract(json.dumps(schema))
    asked: list[object] = []
    refers = contracts._REFERRED

    def counted(validator: Any, to: Any, value: Any, where: Any) -> Any:
        asked.append(value)
        return refers(validator, to, value, where)

    monkeypatch.setattr(contracts, "_REFERRED", counted)
    rules.read(nested(12, "is"))
    assert len(asked) <= 13 * 2 * 3  # by the alternatives of each of the two
    monkeypatch.undo()
    assert json.loads(nested(40, "is")) == rules.read(nested(40, "is"))
    with pytest.raises(DoesNotFit, match="it breaks properties/rule/anyOf"):
        rules.read(nested(40, "no"))
    with pytest.raises(DoesNotFit):
        rules.read(nested(10_000, "is"))


def test_a_contract_names_no_rules_of_its_own() -> None:
    """What refers to the whole contract is judged once too, whatever dialect that says it is of."""
    kinds = [
        {"properties": {"kind": {"const": kind}, "of": {"$ref": "#"}}, "required": ["kind"]}
        for kind in ("and", "or", "is")
    ]
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    value: dict[str, Any] = {"kind": "is"}
    for _ in range(40):
        value = {"kind": "or", "of": value}
    text = json.dumps(value).encode()
    assert value == Contract(json.dumps({**dialect, "anyOf": kinds})).read(text)
    below = {"properties": {"of": {**dialect, "type": "object"}}}
    assert not Contract(json.dumps(below)).is_readable


@pytest.mark.parametrize("kind", ["anyOf", "oneOf"])
def test_an_alternative_is_left_at_its_first_error(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of values that fit no alternative makes no error of each: they would not fit into
    memory.
    """
    asked: list[str] = []
    pattern = contracts._pattern

    def counted(text: str) -> Any:
        asked.append(text)
        return pattern(text)

    monkeypatch.setattr(contracts, "_pattern", counted)
    alternatives = [{"items": {"pattern": text}} for text in ("^a", "^b")]
    lists = contract(properties={"x": {kind: alternatives}})
    asked.clear()
    with pytest.raises(DoesNotFit, match=f"it breaks properties/x/{kind}"):
        lists.read(json.dumps({"x": ["c"] * 1000}).encode())
    assert ["^a", "^b"] == asked
    assert {"x": ["a", "ab"]} == lists.read(b'{"x":["a","ab"]}')


def test_one_alternative_fits_and_not_several() -> None:
    """What JSON Schema says of `oneOf` and `anyOf`."""
    alternatives = [{"type": "integer"}, {"minimum": 5}]
    either = contract(properties={"x": {"anyOf": alternatives}})
    one = contract(properties={"x": {"oneOf": alternatives}})
    for number in (4, 5.5, 6):
        assert {"x": number} == either.read(json.dumps({"x": number}).encode())
    for number in (4, 5.5):
        assert {"x": number} == one.read(json.dumps({"x": number}).encode())
    for judge, number in ((either, 4.5), (one, 4.5), (one, 6)):
        with pytest.raises(DoesNotFit):
            judge.read(json.dumps({"x": number}).encode())


def test_a_value_is_judged_anew_in_the_next_payload() -> None:
    """What was found of one payload does not count for another one."""
    numbers = contract(properties={"a": {"$ref": "#/$defs/n"}}, **{"$defs": {"n": {"minimum": 5}}})
    for number in (9, 1, 9, 1):
        body = json.dumps({"a": number}).encode()
        if number == 9:
            assert {"a": 9} == numbers.read(body)
        else:
            with pytest.raises(DoesNotFit, match="minimum"):
                numbers.read(body)


@pytest.mark.parametrize(
    ("items", "is_unique"),
    [
        ([1, True, "1", [1], {"a": 1}, None, 0, False], True),
        ([[True], [1]], True),
        ([1, 1.0], False),
        ([{"a": 1, "b": [2.0]}, {"b": [2], "a": 1.0}], False),
        (["é", "\u00e9"], False),
        ([n if n % 2 else {"n": n} for n in range(100_000)], True),
    ],
)
def test_what_is_unique_is_told_without_comparing_all_with_all(
    items: list[Any], is_unique: bool
) -> None:
    """Elements that nobody can sort are told apart all the same, by what JSON Schema calls equal;
    how many there are does not stop a relay.
    """
    listed = contract(properties={"items": {"uniqueItems": True}})
    body = json.dumps({"items": items}).encode()
    if is_unique:
        assert {"items": items} == listed.read(body)
    else:
        with pytest.raises(DoesNotFit, match="it breaks properties/items/uniqueItems"):
            listed.read(body)

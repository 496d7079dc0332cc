"""Payloads are judged by the JSON Schema of their workflow, in linear time."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pydantic import TypeAdapter, create_model

from delta_outbox.railway.contracts import Contract, DoesNotFit


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
    ],
)
def test_what_cannot_be_judged_in_linear_time_is_no_contract(schema: dict[str, Any]) -> None:
    """Patterns that look around or back, and those for names, are refused before any payload."""
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

"""Payloads in JSON lines: what is stored is what was written."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.producer.event_lines import broken, line_of, read


def payload_of(text: str) -> bytes:
    """Return what is stored for a payload that is written like this."""
    found = read(f'{{"event_id":"a","event_type":"t","payload":{text}}}')
    assert () == found.rejections
    payload = found.events["payload"][0].as_py()
    assert isinstance(payload, bytes)
    return payload


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ('"plain"', "plain"),
        ('""', ""),
        ('"{\\"a\\": 1}"', '{"a": 1}'),
        ('"\\u00e9\\ud83d\\ude00\\n"', "é😀\n"),
        ("null", "null"),
        ("true", "true"),
        ("[ ]", "[]"),
        ('{ "b" : 1 , "a" : [ 1, "x y" ] }', '{"b":1,"a":[1,"x y"]}'),
        ('{"é":"\\u00e9"}', '{"é":"é"}'),
        ('{"a":"\\u0000\\u2028"}', '{"a":"\\u0000\u2028"}'),
    ],
)
def test_payload_is_text_or_compact_json(text: str, stored: str) -> None:
    """A text is stored as its bytes, anything else as compact JSON, names in their order."""
    assert stored.encode() == payload_of(text)


@pytest.mark.parametrize(
    "number",
    [
        "0",
        "-0",
        "-0.0",
        "1.0",
        "1.10",
        "1e5",
        "1E+5",
        "1e999",
        "-1e-999",
        "0.1",
        "123456789012345678901234567890",
        "3.141592653589793238462643383279",
        "9" * 5000,
    ],
)
def test_numbers_stand_as_they_were_written(number: str) -> None:
    """No number changes by being read: not its digits, not its form."""
    assert number.encode() == payload_of(number)
    assert f'{{"n":[{number},"é"],"m":1}}'.encode() == payload_of(
        f'{{ "n": [{number}, "\\u00e9"], "m": 1 }}'
    )


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON_VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_any_payload_comes_back(value: Any, ascii_only: bool, indent: int | None) -> None:
    """Whatever the value and however it is spaced and escaped, its compact form is stored."""
    written = json.dumps(value, ensure_ascii=ascii_only, indent=indent).replace("\n", " ")
    expected = (
        value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    )
    assert expected.encode() == payload_of(written)


@given(st.binary(max_size=50))
def test_base64_payload_comes_back(payload: bytes) -> None:
    """Bytes come through payload_base64 as they are."""
    line = line_of(payload=..., payload_base64=base64.b64encode(payload).decode())
    assert [payload] == read(line).events["payload"].to_pylist()


@pytest.mark.parametrize("text", ["A", "A===", "AA=A", "AA==\n", "-_-_", "é", " AAAA"])
def test_bad_base64_is_rejected(text: str) -> None:
    """Only the standard alphabet with padding is base64; nothing is skipped."""
    assert [(1, "payload_base64", "base64")] == broken(line_of(payload=..., payload_base64=text))


def test_exactly_one_payload_is_given() -> None:
    """Both forms at once, and neither, are rejected."""
    assert [(1, "payload", "one_payload"), (2, "payload", "one_payload")] == broken(
        line_of(payload_base64="AA=="), line_of(payload=...)
    )

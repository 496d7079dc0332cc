"""Commands that somebody has written by hand: what they say is read, or passed over."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from delta_outbox.store.command_arguments import arguments_of, instant_in

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("text", [None, "", "[]", "1", "{", '{"a": "\\ud8"}', "[" * 100_000])
def test_what_is_no_object_says_nothing(text: str | None) -> None:
    """What is no JSON object, or nested deeper than Python reads, are no arguments."""
    assert {} == arguments_of(text)


def test_an_object_is_read() -> None:
    """Of an object everything is said, also what is deep but can be read."""
    assert {"to": "ann", "more": [[[1]]]} == arguments_of('{"to": "ann", "more": [[[1]]]}')


@pytest.mark.parametrize(
    "until", [None, 7, "", "soon", "2026-11-01T12:00:00", {}, "0001-01-01T00:00:00+14:00"]
)
def test_what_is_no_instant_moves_no_deadline(until: object) -> None:
    """Only an instant with an offset counts."""
    assert instant_in({"until": until}, "until") is None
    assert instant_in({}, "until") is None
    assert NOON == instant_in({"until": "2026-11-01T14:00:00.000000+02:00"}, "until")

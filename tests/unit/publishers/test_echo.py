"""What a destination repeats of an event does not reach the error columns."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_outbox.lifecycle.results import Failed
from delta_outbox.publishers.echo import RUN, without_echo
from delta_outbox.publishers.protocol import Event

CARD = "4111-1111-1111-1111"
PAYLOAD = json.dumps({"customer": "c-7", "card": CARD}, indent=4).encode()


def event(**given: Any) -> Event:
    """Return an event with a payload and headers that nobody may see."""
    facts = {
        "event_id": "order-000000000000000001",
        "event_type": "order.created.version-2",
        "payload": PAYLOAD,
        "headers": {"authorization": "Bearer 9876543", "empty": "", "none": None, "a": "b"},
        "created_at": datetime(2026, 1, 1, tzinfo=UTC),
        "route": "orders.of.the.eastern.region",
        **given,
    }
    return Event(**facts)


@pytest.mark.parametrize(
    "said",
    [
        PAYLOAD.decode(),
        f"400 Bad Request: {PAYLOAD.decode()!r}",
        f"400 Bad Request: {PAYLOAD!r} is not what I want",
        f'unexpected value in "card": "{CARD}" at 7',
        "header Bearer 9876543 refused",
        "x" * 400 + PAYLOAD.decode(),
    ],
)
def test_payload_and_headers_are_taken_out(said: str) -> None:
    """Neither the whole content nor a long run of it stays in the words of a destination."""
    shown = without_echo(Failed(error=said).error, event())
    assert "***" in shown
    assert CARD not in shown
    assert "9876543" not in shown


@pytest.mark.parametrize(
    "said",
    [
        "Kafka did not answer before the deadline",
        "the topic 'orders.of.the.eastern.region' does not exist",
        "order-000000000000000001 of type order.created.version-2 is too large",
        "customer unknown",
        "",
    ],
)
def test_ordinary_words_stay(said: str) -> None:
    """Words of the destination's own stay, and so does what is on record beside them."""
    known = b'{"route": "orders.of.the.eastern.region", "id": "order-000000000000000001"}'
    assert said == without_echo(said, event())
    assert said == without_echo(said, event(payload=known, headers=None))
    assert said == without_echo(said, event(payload=b"", headers={}))


@settings(deadline=None)
@given(st.text("abcdefgh", min_size=RUN, max_size=60), st.data())
def test_no_run_of_sixteen_characters_stays(content: str, data: st.DataObject) -> None:
    """Wherever a run of the payload stands in the words, it is taken out."""
    start = data.draw(st.integers(0, len(content) - RUN))
    run = content[start : data.draw(st.integers(start + RUN, len(content)))]
    before, after = data.draw(st.text("XYZ ", max_size=40)), data.draw(st.text("XYZ ", max_size=40))
    shown = without_echo(f"{before}{run}{after}", event(payload=content.encode(), headers=None))
    assert f"{before}***{after}" == shown

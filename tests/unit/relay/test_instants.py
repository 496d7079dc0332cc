"""What is sent, and what is found, of events with instants at the ends of what an outbox knows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from tests.unit.core.test_instants import BEYOND, FIRST, INSTANT, LAST
from tests.unit.relay.test_slice import INPUT, codes, rows, run

from delta_outbox.core.instants import FIRST_INSTANT, LAST_INSTANT, micros
from delta_outbox.relay.publish.event_places import _between
from delta_outbox.relay.publish.rows import INSTANTS, rows_of


@pytest.mark.parametrize("name", INSTANTS)
@pytest.mark.parametrize("number", BEYOND)
def test_an_instant_beyond_is_rejected_by_itself(name: str, number: int) -> None:
    """An event with an instant that nobody can write is rejected; its neighbours are delivered."""
    batch = rows({"scope": "a"}, {"scope": "b"}, {"scope": "c"})
    place = INPUT.get_field_index(name)
    column = pa.array([0, number, micros(LAST)], INSTANT)
    answers = run(batch.set_column(place, name, column))
    assert "DRD" == codes(answers)
    assert f"its {name} is not between the years 1 and 9999 (UTC)" in answers[1]["error"]


def test_the_first_and_the_last_instant_are_delivered() -> None:
    """The years 1 and 9999 are as good as any, and reach the publisher as they are."""
    batch = rows({"created_at": FIRST, "available_at": FIRST}, {"created_at": LAST})
    read = rows_of(batch, claim_id="c")
    assert [FIRST, LAST] == [event.created_at for event in read.events]
    assert {} == read.unfit
    assert "DD" == codes(run(batch))


def test_rows_at_the_ends_are_looked_up_beyond_them() -> None:
    """A row of a log of format 1 that lies beyond what its delivery says is found all the same."""
    now = micros(datetime(2026, 1, 1, tzinfo=UTC))
    assert "true" == _between(FIRST_INSTANT, LAST_INSTANT)
    assert _between(now, LAST_INSTANT).count("created_at") == 1
    assert _between(FIRST_INSTANT, now).count("created_at") == 1
    assert _between(now, now + timedelta(days=1) // timedelta(microseconds=1)).count(">=") == 2

"""The conformance kit on a PostgreSQL table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import psycopg
import pytest
from tests.conformance.postgres_store import PostgresStores

from delta_outbox.testing.conformance.adapter import Capability, NewEvent
from delta_outbox.testing.conformance.run import Result, Verdict, run


@pytest.fixture(scope="module")
def stores() -> Iterator[PostgresStores]:
    """Start one server for all tests."""
    opened = PostgresStores()
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture(scope="module")
def results(stores: PostgresStores) -> Mapping[str, Result]:
    """Run the kit once."""
    return run(stores)


def test_a_table_in_postgresql_keeps_the_rules(results: Mapping[str, Result]):
    """A table with other words for its states passes every check that it is asked."""
    assert {} == {name: result for name, result in results.items() if not result.good}


def test_only_what_is_no_log_is_not_asked(results: Mapping[str, Result]):
    """The table claims everything but append-only logs, and the report says so."""
    said = {one.message for one in results.values() if one.verdict is Verdict.NOT_CLAIMED}
    assert {str(Capability.LOGS)} == said


def test_the_table_refuses_what_must_not_be(stores: PostgresStores):
    """An illegal transition and another payload are refused by the table itself."""
    stores.fresh().append([NewEvent(event_id="one")])
    for change in ("status = 'DEAD'", "payload = 'other'"):
        with stores.server.connect() as db, pytest.raises(psycopg.errors.RaiseException):
            db.execute(f"update outbox.events set {change}")

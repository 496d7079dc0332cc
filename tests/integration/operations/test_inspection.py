"""Looking into an outbox: what `status`, `list` and `show` are made of."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.integration.outboxes import open_store

from delta_outbox.api import Outbox
from delta_outbox.core.errors import UnknownEvent
from delta_outbox.lifecycle.results import Delivered, Failed, Rejected
from delta_outbox.lifecycle.states import State
from delta_outbox.operations import event_life, inspection
from delta_outbox.operations.inspection_filter import Filter, Sort
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.settings_file import load_settings
from delta_outbox.store.presence import Presence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest

SCHEMA = "t_inspection"
START = datetime(2025, 3, 1, 12, tzinfo=UTC)
LATER = datetime.now(UTC).replace(microsecond=0) + timedelta(days=365)
HOSTILE = "x' or '1'='1\"; drop table `y` -- \\ :event_id {} __state__ ü"


def _event(event_id: str, event_type: str, number: int, **given: Any) -> dict[str, Any]:
    return {
        "event_id": event_id,
        "event_type": event_type,
        "created_at": START + timedelta(microseconds=number),
        "payload": b"secret payload",
        **given,
    }


EVENTS = [
    _event("done", "order.created", 0, ordering_key="k1", headers=[("h", "secret header")]),
    _event("failed", "order.paid", 1, ordering_key="k2"),
    _event("dead", "invoice.sent", 2, payload=b"\xff\x00"),
    _event("later", "order.created", 3, ordering_key=HOSTILE, available_at=LATER),
    _event(HOSTILE, "order.created", 4, available_at=LATER),
]
SCHEMA_OF_EVENTS = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_type", pa.string()),
        ("created_at", pa.timestamp("us", tz="UTC")),
        ("payload", pa.binary()),
        ("ordering_key", pa.string()),
        ("headers", pa.map_(pa.string(), pa.string())),
        ("available_at", pa.timestamp("us", tz="UTC")),
    ]
)


@pytest.fixture(scope="module")
def outbox(spark: SparkSession, home: Home) -> Iterator[Outbox]:
    """Return an outbox with an event in each state, refreshed; the tests only read it."""
    with open_store(spark, home, SCHEMA) as store:
        opened = store.open(load_settings(home=home.root))
        opened.append(pa.Table.from_pylist(EVENTS, schema=SCHEMA_OF_EVENTS)).raise_if_rejected()
        claim = opened.claim(10)
        assert claim is not None
        assert ["done", "failed", "dead"] == claim.deliveries["event_id"].to_pylist()
        first, second = Delivered(receipt={"line": 1}), Failed(error="busy")
        opened.end(claim, [first, second, Rejected(error="no")])
        opened.refresh()
        yield opened


def ids(outbox: Outbox, **wanted: Any) -> list[object]:
    """Return the ids that a filter selects, in its order."""
    return [row["event_id"] for row in inspection.list_deliveries(outbox, Filter(**wanted))[0]]


def test_counts_name_every_state(outbox: Outbox) -> None:
    """Each state has its count, also a state without events."""
    expected = {"PENDING": 3, "CLAIMED": 0, "PUBLISHED": 1, "DEAD": 1}
    assert expected == inspection.counts(outbox)


def test_oldest_pending_counts_from_its_creation(outbox: Outbox) -> None:
    """The age of the oldest waiting event is that of its created_at."""
    _, age = inspection.counts_and_age(outbox)
    expected = (outbox.clock.now() - START).total_seconds()
    assert expected == pytest.approx(age, abs=60)


def test_freshness_is_an_iso_instant(outbox: Outbox) -> None:
    """Freshness says since when and up to which versions, as JSON shows it."""
    found = inspection.freshness(outbox)
    assert found is not None
    refreshed = datetime.fromisoformat(str(found["refreshed_at"]))
    assert abs(refreshed - outbox.clock.now()) < timedelta(minutes=30)
    assert str(found["refreshed_at"]).endswith("Z")
    assert isinstance(found["events_version"], int)


def test_relays_alive(outbox: Outbox) -> None:
    """A relay is alive until its last word is old or says that it has stopped; what it takes at
    once is known of one that works from this home.
    """
    now = outbox.clock.now()
    beats = [
        ("steady", "started", 20, [0]),
        ("steady", "alive", 10, [0]),
        ("stopped", "alive", 5, [0]),
        ("stopped", "stopped", 4, [0]),
        ("silent", "alive", 31, [0]),
    ]
    for relay_id, kind, ago, lanes in beats:
        outbox.spark.createDataFrame(
            [(relay_id, kind, lanes, now - timedelta(seconds=ago), "0")],
            "relay_id string, kind string, lanes array<int>, at timestamp, version string",
        ).write.format("delta").mode("append").saveAsTable(outbox.tables.relays)
    outbox_now = _At(outbox, now)
    alive = inspection.relays_alive(outbox_now)
    assert [("steady", [0])] == [(one["relay_id"], one["lanes"]) for one in alive]
    assert (None, None) == (alive[0]["batch_size"], alive[0]["batch_bytes"])
    assert outbox.home is not None
    presence = Presence(outbox.home.relays)
    presence.enter("steady")
    presence.say({"batch_size": 10, "batch_bytes": 20})
    here = inspection.relays_alive(outbox_now)
    presence.leave()
    assert (10, 20) == (here[0]["batch_size"], here[0]["batch_bytes"])
    assert now - timedelta(seconds=10) == datetime.fromisoformat(str(alive[0]["last_beat_at"]))


def _At(outbox: Outbox, now: datetime) -> Any:  # noqa: N802
    """Return the outbox with its clock stopped."""
    from types import SimpleNamespace

    return SimpleNamespace(
        spark=outbox.spark,
        tables=outbox.tables,
        presence=outbox.presence,
        clock=SimpleNamespace(now=lambda: now),
    )


def test_list_is_in_order_of_arrival(outbox: Outbox) -> None:
    """Without a wish the order is that of the log, and nothing of the content is in it."""
    rows, more = inspection.list_deliveries(outbox, Filter())
    assert ["done", "failed", "dead", "later", HOSTILE] == [row["event_id"] for row in rows]
    assert not more
    assert set(inspection.LISTED) == set(rows[0])
    assert "secret" not in str(rows)
    assert "2025-03-01T12:00:00.000000Z" == rows[0]["created_at"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"states": (State.DEAD,)}, ["dead"]),
        ({"states": (State.DEAD, State.PUBLISHED)}, ["done", "dead"]),
        ({"event_type": "order.*"}, ["done", "failed", "later", HOSTILE]),
        ({"event_type": "order.paid"}, ["failed"]),
        ({"event_type": "order?created"}, ["done", "later", HOSTILE]),
        ({"event_type": "paid"}, []),
        ({"ordering_key": "k1"}, ["done"]),
        ({"ordering_key": HOSTILE}, ["later"]),
        ({"min_attempts": 1}, ["done", "failed", "dead"]),
        ({"since": START + timedelta(microseconds=1)}, ["failed", "dead", "later", HOSTILE]),
        ({"until": START + timedelta(microseconds=1)}, ["done"]),
        (
            {
                "since": START + timedelta(microseconds=1),
                "until": START + timedelta(microseconds=3),
            },
            ["failed", "dead"],
        ),
        (
            {"sort": Sort(column="created_at", descending=True)},
            [HOSTILE, "later", "dead", "failed", "done"],
        ),
        ({"sort": Sort(column="published_at"), "limit": 1}, ["done"]),
        ({"sort": Sort(column="published_at", descending=True), "limit": 1}, ["done"]),
    ],
    ids=lambda value: "" if isinstance(value, list) else "-".join(value),
)
def test_list_filters(outbox: Outbox, wanted: dict[str, Any], expected: list[str]) -> None:
    """Each filter selects what it says: globs on whole types, half-open times, exact keys."""
    assert expected == ids(outbox, **wanted)


def test_list_says_that_there_is_more(outbox: Outbox) -> None:
    """A listing is cut at its limit and says so; at exactly the limit there is no more."""
    assert 2 == len(inspection.list_deliveries(outbox, Filter(limit=2))[0])
    assert inspection.list_deliveries(outbox, Filter(limit=4))[1]
    assert not inspection.list_deliveries(outbox, Filter(limit=5))[1]


def test_show_is_the_whole_life_in_order(outbox: Outbox) -> None:
    """An event shows its row and each of its transitions, in order, without its content."""
    shown: Any = event_life.show(outbox, "failed")
    event, transitions = shown["event"], shown["transitions"]
    assert ("PENDING", 1, "busy") == (event["state"], event["attempts"], event["last_error"])
    steps = [(one["from_state"], one["to_state"], one["reason"]) for one in transitions]
    assert [("PENDING", "CLAIMED", "claimed"), ("CLAIMED", "PENDING", "failed")] == steps
    assert "secret" not in str(shown)
    assert 1 == len(event["deliveries"])


def test_show_receipt_and_headers(outbox: Outbox) -> None:
    """Names of headers and the receipt are shown; values only together with the payload."""
    hidden: Any = event_life.show(outbox, "done")
    assert ["h"] == hidden["event"]["header_names"]
    assert '"line"' in hidden["transitions"][1]["receipt"]
    shown: Any = event_life.show(outbox, "done", with_payload=True)
    assert {"h": "secret header"} == shown["event"]["headers"]
    assert "secret payload" == shown["event"]["payload"]


def test_show_bytes_as_base64(outbox: Outbox) -> None:
    """A payload that is no text is shown in the form that `append` takes."""
    shown: Any = event_life.show(outbox, "dead", with_payload=True)
    assert ("/wA=", 2) == (shown["event"]["payload_base64"], shown["event"]["payload_bytes"])


def test_show_takes_any_id(outbox: Outbox) -> None:
    """An id is a value, whatever it looks like."""
    shown: Any = event_life.show(outbox, HOSTILE)
    assert (HOSTILE, []) == (shown["event"]["event_id"], shown["transitions"])
    for unknown in ("", "nobody", "' or true --", "%"):
        with pytest.raises(UnknownEvent):
            event_life.show(outbox, unknown)


def test_show_a_command(outbox: Outbox) -> None:
    """A command is found by its id and waits until the log has its transitions."""
    arrival: Any = event_life.show(outbox, "dead")["event"]
    outbox.spark.sql(
        f"insert into {outbox.tables['outbox_commands']} "
        "(command_id, kind, event_id, arrival, destination, lifecycle, actor, reason) values "
        f"('c-1', 'replay', 'dead', {arrival['arrival']}, 'default', 0, 'ann', 'fixed')"
    )
    shown: Any = event_life.show(outbox, "c-1")["command"]
    assert ("c-1", "replay", "ann", "waiting") == (
        shown["command_id"],
        shown["kind"],
        shown["actor"],
        shown["status"],
    )
    assert "dead" == shown["deliveries"][0]["event_id"]


def test_show_is_of_the_first_copy(outbox: Outbox) -> None:
    """A later row of the same id changes nothing of what is shown."""
    outbox.spark.sql(
        f"insert into {outbox.tables.events} (event_id, event_type, payload, created_at) "
        "values ('done', 'other', cast('later copy' as binary), timestamp'2025-03-01 12:00:00Z')"
    )
    outbox.refresh()
    shown: Any = event_life.show(outbox, "done", with_payload=True)["event"]
    assert ("order.created", "secret payload") == (shown["event_type"], shown["payload"])

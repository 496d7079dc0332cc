"""What the invariants judge: all that is not as plain as almost everything is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from delta_outbox.runtime.dbt import compile_sql
from delta_outbox.runtime.home import Home

NOW: Final = datetime(2026, 1, 2, tzinfo=UTC)
COUNTERS: Final = {"lifecycle": 0, "publish_attempts": 0, "crashes": 0}
NEW: Final = {"event_type": "t", "ordering_key": "k", "arrival": 7}
STEP: Final = {"arrival": 7, "destination": "d", "epoch": 1, "lane": 2, "attempt": 1, **COUNTERS}
CLAIM: Final = {
    **STEP,
    "from_state": "PENDING",
    "to_state": "CLAIMED",
    "reason": "claimed",
    "claim_id": "c",
    "relay_id": "r",
    "lease_expires_at": NOW,
    "sequence": 4,
}
END: Final = {
    **STEP,
    "from_state": "CLAIMED",
    "to_state": "PUBLISHED",
    "reason": "delivered",
    "claim_id": "c",
    "relay_id": "r",
    "lease_expires_at": NOW,
    "sequence": 5,
}
UNTOUCHED: Final = {
    **NEW,
    **COUNTERS,
    "state": "PENDING",
    "destination": "",
    "attempts": 0,
    "epoch": 0,
    "lane": 0,
    "sequence": 0,
    "claimed_at": None,
    "published_at": None,
    "claim_id": None,
    "claimed_by": None,
    "lease_expires_at": None,
    "replayed_at": None,
    "kill_command_id": None,
}
PUBLISHED: Final = {
    **UNTOUCHED,
    "state": "PUBLISHED",
    "destination": "d",
    "attempts": 1,
    "epoch": 1,
    "lane": 2,
    "sequence": 5,
    "published_at": NOW,
}
CLAIMED: Final = {
    **UNTOUCHED,
    "state": "CLAIMED",
    "destination": "d",
    "attempts": 1,
    "claimed_at": NOW,
    "claim_id": "c",
    "claimed_by": "r",
    "lease_expires_at": NOW,
    "epoch": 1,
    "lane": 2,
    "sequence": 4,
}

Rows = dict[str, list[dict[str, Any]]]
LIFE: Final[Mapping[str, list[dict[str, Any]]]] = {
    "new": [NEW],
    "steps": [CLAIM, END],
    "before": [],
    "shown": [PUBLISHED],
}
_NEW: Final = "event_id string, event_type string, ordering_key string, arrival long"
_STEPS: Final = (
    "event_id string, arrival long, destination string, epoch int, lane int, sequence long, "
    "attempt int, lifecycle int, publish_attempts int, crashes int, from_state string, "
    "to_state string, reason string, claim_id string, relay_id string, lease_expires_at timestamp"
)
_SHOWN: Final = (
    f"{_NEW}, state string, destination string, attempts int, lifecycle int, "
    "publish_attempts int, crashes int, epoch int, lane int, sequence long, claimed_at timestamp, "
    "published_at timestamp, claim_id string, claimed_by string, lease_expires_at timestamp, "
    "replayed_at timestamp, kill_command_id string"
)
QUERIES: Final = {
    "new": ("outbox_new_events", _NEW),
    "steps": ("outbox_new_transitions", _STEPS),
    "before": ("outbox_open_before", _SHOWN),
    "shown": ("outbox_touched_deliveries", _SHOWN),
}


def life(**given: list[dict[str, Any]]) -> Rows:
    """Return the rows of a plain event but for what is given."""
    return {**LIFE, **given}


def quiet(*shown: dict[str, Any], before: Iterable[dict[str, Any]] = ()) -> Rows:
    """Return the rows of an event of which nothing is new."""
    return life(new=[], steps=[], before=[*before], shown=[*shown])


PLAIN: Final[Mapping[str, Rows]] = {
    "published": life(),
    "published without a key": life(
        new=[NEW | {"ordering_key": None}], shown=[PUBLISHED | {"ordering_key": None}]
    ),
    "a task": life(steps=[CLAIM, END | {"reason": "completed"}]),
    "new": life(steps=[], shown=[UNTOUCHED]),
    "untouched until now": life(new=[], before=[UNTOUCHED]),
    "untouched": quiet(UNTOUCHED, before=[UNTOUCHED]),
    "waits": quiet(CLAIMED, before=[CLAIMED]),
    "over": quiet(PUBLISHED),
}


def changed(part: str, place: int, **given: Any) -> Rows:
    """Return the rows of a plain event with another value in one of them."""
    rows = [*LIFE[part]]
    rows[place] = rows[place] | given
    return life(**{part: rows})


def each(part: str, place: int, **values: Any) -> dict[str, Rows]:
    """Return plain events with one other value each."""
    return {
        f"{part} {place}: {name} {value}": changed(part, place, **{name: value})
        for name, value in values.items()
    }


_OTHERS: Final = {"arrival": 8, "lifecycle": 1, "publish_attempts": 1, "crashes": 1}
DOUBTFUL: Final[Mapping[str, Rows]] = {
    **each("new", 0, arrival=8, event_type="u", ordering_key="l"),
    **each("steps", 0, **_OTHERS, attempt=2, destination="e", epoch=2, sequence=5),
    **each("steps", 0, from_state="DEAD", to_state="PUBLISHED", reason="replayed"),
    **each("steps", 0, claim_id=None, relay_id=None, lease_expires_at=None),
    **each("steps", 1, **_OTHERS, attempt=2, destination="e", epoch=2, lane=3, sequence=6),
    **each("steps", 1, from_state="PENDING", to_state="DEAD", reason="operator", claim_id="b"),
    **each("shown", 0, **_OTHERS, attempts=2, destination="e", epoch=2, lane=3, sequence=6),
    **each("shown", 0, event_type="u", ordering_key="l", state="DEAD", published_at=None),
    **each("shown", 0, claimed_at=NOW, claim_id="c", claimed_by="r", lease_expires_at=NOW),
    "not shown": life(shown=[]),
    "shown twice": life(shown=[PUBLISHED, PUBLISHED]),
    "shown as another too": life(shown=[PUBLISHED, PUBLISHED | {"destination": "e"}]),
    "a copy": life(new=[NEW, NEW]),
    "no event": life(new=[]),
    "untouched before, and new": life(before=[UNTOUCHED]),
    "claimed before": life(new=[], before=[CLAIMED]),
    "tried before": life(new=[], before=[UNTOUCHED | {"attempts": 1}]),
    "only claimed": life(steps=[CLAIM], shown=[CLAIMED]),
    "claimed twice": life(steps=[CLAIM, CLAIM, END]),
    "ended twice": life(steps=[CLAIM, END, END]),
    "ended first": life(steps=[CLAIM | {"sequence": 6}, END], shown=[PUBLISHED | {"sequence": 6}]),
    "ten copies are no claim": life(new=[NEW] * 11, steps=[END]),
    "new, and shown as published": life(steps=[]),
    "new, and not shown": life(steps=[], shown=[]),
    "new, with a step that nothing shows": life(steps=[CLAIM], shown=[UNTOUCHED]),
    "new, under another key": life(steps=[], shown=[UNTOUCHED | {"ordering_key": "l"}]),
    "wrong, and nothing new": quiet(CLAIMED | {"lease_expires_at": None}, before=[CLAIMED]),
    "twice, and nothing new": quiet(UNTOUCHED, UNTOUCHED),
    "a replayed task": quiet(PUBLISHED | {"event_type": "workflow:w:t", "lifecycle": 1}),
}


def put(spark: SparkSession, lives: Mapping[str, Rows]) -> None:
    """Make the rows of events what the macros read."""
    for part, (view, schema) in QUERIES.items():
        rows = [{**row, "event_id": name} for name, parts in lives.items() for row in parts[part]]
        spark.createDataFrame(rows, schema).createOrReplaceTempView(view)


@pytest.fixture(scope="module")
def doubtful(home: Home) -> str:
    """Return the query of doubtful events."""
    return compile_sql("{{ delta_outbox.doubtful_events() }}", home=home)


def test_whatever_is_not_plain_is_judged(spark: SparkSession, doubtful: str) -> None:
    """A plain event is not judged. With any value changed that a rule looks at, it is."""
    put(spark, {**PLAIN, **DOUBTFUL})
    names = spark.createDataFrame([(name,) for name in (*PLAIN, *DOUBTFUL)], "name string")
    hashes = names.selectExpr("name", "xxhash64(name) as event_hash")
    found = hashes.join(spark.sql(doubtful), "event_hash").collect()
    assert set(DOUBTFUL) == {row["name"] for row in found}


@pytest.fixture(scope="module")
def doubtful_keys(home: Home) -> str:
    """Return the query of doubtful keys."""
    return compile_sql("{{ delta_outbox.doubtful_keys() }}", home=home)


def ordered(*states: str, **given: Any) -> list[dict[str, Any]]:
    """Return deliveries of a key in their order, each of which was published or stands so."""
    rows = []
    for place, state in enumerate(states):
        at, _, name = state.partition(" ")
        epoch, _, sequence = at.partition(".")
        row = {"state": name or "PUBLISHED", "epoch": int(epoch), "sequence": int(sequence)}
        rows.append(PUBLISHED | {"position": place} | row | given)
    return rows


IN_ORDER: Final = {
    "one after the other": ordered("1.5", "1.6", "2.1"),
    "in one append": ordered("1.5", "1.5"),
    "the later one waits": ordered("1.5", "1.4 PENDING"),
    "killed": [*ordered("0.0 PENDING", kill_command_id="x"), *ordered("1.5", position=9)],
    "two that wait": ordered("0.0 PENDING", "1.4 CLAIMED"),
}
OUT_OF_ORDER: Final = {
    "overtaken": ordered("1.6", "1.5"),
    "overtaken by an epoch": ordered("2.1", "1.9"),
    "overtaken by the third": ordered("1.6", "1.7", "1.5"),
    "the earlier one waits": ordered("0.0 PENDING", "1.5"),
    "the earlier one is claimed": ordered("1.4 CLAIMED", "1.5"),
    "the earlier one is dead": ordered("1.4 DEAD", "1.5"),
    "replayed": ordered("1.5", lifecycle=1),
    "to be replayed": ordered("1.5", "1.6", replayed_at=NOW),
}


def test_keys_in_which_nothing_can_be_overtaken_are_not_judged(
    spark: SparkSession, doubtful_keys: str
) -> None:
    """A key whose deliveries were published in their order is not judged; any other is."""
    keys = {**IN_ORDER, **OUT_OF_ORDER}
    rows = [
        {**row, "event_id": f"{key}-{row['position']}", "ordering_key": key}
        for key, deliveries in keys.items()
        for row in deliveries
    ]
    rows.append({**ordered("0.0 PENDING")[0], "event_id": "x", "ordering_key": None})
    rows.append({**ordered("1.5", position=1)[0], "event_id": "y", "ordering_key": None})
    frame = spark.createDataFrame(rows, f"{_SHOWN}, position int")
    frame.createOrReplaceTempView("outbox_touched_deliveries")
    names = spark.createDataFrame([(key,) for key in keys], "name string")
    hashes = names.selectExpr("name", "xxhash64(name) as key_hash")
    found = hashes.join(spark.sql(doubtful_keys), "key_hash").collect()
    assert set(OUT_OF_ORDER) == {row["name"] for row in found}

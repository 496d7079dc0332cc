"""What a claim leaves open is what it was, with what its ending has counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from delta_outbox.delta.files.event_files import FILE, LOCATED, ROW
from delta_outbox.lifecycle.claims import DELIVERIES, joined, left_after, requeued
from delta_outbox.lifecycle.policy import DeliveryPolicy, PolicySet
from delta_outbox.lifecycle.policy_columns import OnDead

NOW = datetime(2026, 11, 24, tzinfo=UTC)
Row = tuple[int, str | None, int | None]  # arrival, scope, seconds until it is due


def table(*rows: Row) -> pa.Table:
    """Return deliveries, whose ordering key stands for their scope."""
    due = [None if row[2] is None else NOW + timedelta(seconds=row[2]) for row in rows]
    columns: dict[str, Any] = {
        "event_id": [str(row[0]) for row in rows],
        "arrival": [row[0] for row in rows],
        "ordering_key": [row[1] for row in rows],
        "available_at": due,
        **{name: [0] * len(rows) for name in ("attempts", "publish_attempts", "crashes")},
        "blocks": [False] * len(rows),
    }
    given = {name: columns.get(name, [None] * len(rows)) for name in DELIVERIES.names}
    return pa.table(given, schema=DELIVERIES)


def test_what_comes_back_has_the_counters_of_its_ending() -> None:
    """Of a claim that has ended those are requeued that are PENDING again, as they are then."""
    endings = pa.table(
        {
            "to_state": ["PUBLISHED", "PENDING", "DEAD"],
            "attempt": pa.array([1, 2, 3], pa.int32()),
            "publish_attempts": pa.array([0, 2, 3], pa.int32()),
            "crashes": pa.array([0, 1, 0], pa.int32()),
            "suspect": pa.array([0, 1, 0], pa.int32()),
            "available_at": pa.array([None, NOW, None], pa.timestamp("us", "UTC")),
        }
    )
    (back,) = requeued(table((1, "a", None), (2, "a", None), (3, "b", None)), endings).to_pylist()
    names = ("arrival", "attempts", "publish_attempts", "crashes", "suspect", "available_at")
    assert (2, 2, 2, 1, 1, NOW) == tuple(back[name] for name in names)
    gone = endings.set_column(0, "to_state", pa.array(["PUBLISHED"] * 3))
    assert not requeued(table((1, "a", None), (2, "a", None), (3, "b", None)), gone).num_rows


def test_where_they_lie_is_kept_where_it_is_known() -> None:
    """Deliveries of which it is known where they lie join others, and stay readable."""
    located = table((1, None, None))
    for name, value in ((FILE, "f.parquet"), (ROW, 7)):
        field = LOCATED.field(name)
        located = located.append_column(field, pa.array([value]).cast(field.type))
    both = joined(located, table((2, None, None)))
    assert [("f.parquet", 7), (None, None)] == [(row[FILE], row[ROW]) for row in both.to_pylist()]


def test_what_is_dead_and_holds_its_key_is_left_to_block() -> None:
    """Of a claim that has ended, what died by itself and holds its key only blocks what comes
    after it; what an operator has killed or asked to kill, or what holds nothing, is gone.
    """
    claim = pa.concat_tables([table((place, "a", None)) for place in range(5)])
    types = pa.array(["held", "held", "free", "held", "held"])
    claim = claim.set_column(DELIVERIES.get_field_index("event_type"), "event_type", types)
    kills = pa.array([None, None, None, None, "command"])
    claim = claim.set_column(
        DELIVERIES.get_field_index("kill_command_id"), "kill_command_id", kills
    )
    endings = pa.table(
        {
            "to_state": ["DEAD", "DEAD", "DEAD", "PENDING", "DEAD"],
            "reason": ["rejected", "operator", "rejected", "failed", "expired"],
            **{
                name: pa.array([1] * 5, pa.int32())
                for name in ("attempt", "publish_attempts", "crashes", "suspect")
            },
            "available_at": pa.array([NOW] * 5, pa.timestamp("us", "UTC")),
        }
    )
    holds = DeliveryPolicy(event_type="held", on_dead=OnDead.HOLD)
    policies = PolicySet(policies=(holds, DeliveryPolicy(event_type="*")))
    left = left_after(claim, endings, policies).to_pylist()
    assert [(3, False), (0, True)] == [(row["arrival"], row["blocks"]) for row in left]
    free = PolicySet(policies=(DeliveryPolicy(event_type="*"),))
    assert [3] == left_after(claim, endings, free)["arrival"].to_pylist()

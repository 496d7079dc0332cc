"""Returns the whole life of one event, and what is left of one that was purged.

As inspection.py: refresh first, values are never text, instants are ready for JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.core.errors import UnknownEvent
from delta_outbox.core.tables import TRANSITIONS
from delta_outbox.lifecycle.states import State
from delta_outbox.operations.command_life import show_command
from delta_outbox.operations.inspection import LISTED, rows_of

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

_PER_DELIVERY: Final = (
    "destination",
    "state",
    "attempts",
    "last_error",
    "available_at",
    "claimed_at",
    "claimed_by",
    "published_at",
    "lifecycle",
    "changed_at",
    "reason",
)
# The first and last day that an outbox knows; a row of a log of format 1 may lie beyond.
_BEYOND: Final = {str(date.min): "<=", str(date.max): ">="}
_ATTENTION: Final = (State.DEAD, State.CLAIMED, State.PENDING, State.PUBLISHED)
_COPIES: Final = "outbox_copies_shown"


def show_event(
    outbox: Store, event_id: str, *, with_payload: bool = False
) -> dict[str, object] | None:
    """Return an event and its transitions in order; None if there is no such event.

    An event with several destinations shows the delivery that needs attention most, and all of
    them below `deliveries`.

    Args:
        outbox: where to look.
        event_id: the id.
        with_payload: with the payload and the values of headers, too.
    """
    from pyspark.sql import functions as F  # noqa: N812

    deliveries = rows_of(
        outbox.spark.table(outbox.tables.state)
        .where(F.col("event_id") == F.lit(event_id))
        .select(*LISTED, F.col("created_at").cast("date").cast("string").alias("created_date"))
        .orderBy("destination")
    )
    if not deliveries:
        return None
    rank = {state.value: place for place, state in enumerate(_ATTENTION)}
    first = min(deliveries, key=lambda row: rank[str(row["state"])])
    event = {name: first[name] for name in LISTED}
    content = _content(outbox, event_id, str(first["created_date"]), first["arrival"])
    event |= content_shown(content, with_payload=with_payload)
    event["deliveries"] = [{name: row[name] for name in _PER_DELIVERY} for row in deliveries]
    return {"event": event, "transitions": _transitions(outbox, event_id, first["arrival"])}


def _content(outbox: Store, event_id: str, created_date: str, arrival: object) -> dict[str, Any]:
    """Return what the log holds of the first copy of an event; reads one day of the log."""
    from pyspark.sql import functions as F  # noqa: N812

    copies = (
        outbox.spark.table(outbox.tables.events)
        .where(f"created_date {_BEYOND.get(created_date, '=')} date'{created_date}'")
        .where(F.col("event_id") == F.lit(event_id))
        .where(F.col("_metadata.row_commit_version") == F.lit(arrival))
    )
    # Delta's parser takes no parameters, and an order of several columns is no expression of the
    # DataFrame API: a view carries the values, the text only dbt's order.
    copies.createOrReplaceTempView(_COPIES)
    order = outbox.statements.fill("order_of_contents", content="c")
    row = outbox.spark.sql(
        f"select payload, headers, metadata from {_COPIES} as c order by {order} limit 1"
    ).first()
    return row.asDict() if row else {"payload": b"", "headers": None, "metadata": None}


def content_shown(content: Mapping[str, Any], *, with_payload: bool) -> dict[str, object]:
    """Return what may be shown of an event's content.

    Args:
        content: payload (bytes), headers, metadata.
        with_payload: with the payload (as in the input of `append`) and the values of headers.
    """
    payload = bytes(content["payload"])
    headers = content["headers"] or {}
    shown: dict[str, object] = {
        "metadata": content["metadata"],
        "header_names": sorted(headers),
        "payload_bytes": len(payload),
    }
    if with_payload:
        shown["headers"] = content["headers"]
        try:
            shown["payload"] = payload.decode("utf-8")
        except UnicodeDecodeError:
            shown["payload_base64"] = base64.b64encode(payload).decode("ascii")
    return shown


def _transitions(outbox: Store, event_id: str, arrival: object) -> list[dict[str, object]]:
    from pyspark.sql import functions as F  # noqa: N812

    return rows_of(
        outbox.spark.table(outbox.tables.transitions)
        # The arrival names the event together with its id, and lets Delta pass over most files.
        .where((F.col("arrival") == F.lit(arrival)) & (F.col("event_id") == F.lit(event_id)))
        .select(*TRANSITIONS.names)
        .orderBy("epoch", "lane", "sequence", "destination")
    )


def show_purged(outbox: Store, event_id: str) -> dict[str, object] | None:
    """Return what is left of an event that was purged; None if none of this id was.

    Args:
        outbox: where to look.
        event_id: the id.
    """
    from pyspark.sql import functions as F  # noqa: N812

    names = ("number", "event_id", "event_type", "created_at", "arrival")
    deliveries = rows_of(
        outbox.spark.table(outbox.tables.purged)
        .where(F.col("event_id") == F.lit(event_id))
        .select(*names, "destination", "state", "ended_at", "command_ids")
        .orderBy(F.col("number").desc(), F.col("arrival").desc(), "destination")
    )
    if not deliveries:
        return None
    first = deliveries[0]
    its = [row for row in deliveries if row["arrival"] == first["arrival"]]
    number = int(str(first["number"]))
    plan = rows_of(
        outbox.spark.sql(
            "select planned_at as purged_at, get_json_object(plan, '$.actor') as purged_by, "
            f"get_json_object(plan, '$.reason') as purged_because from {outbox.tables.progress} "
            f"where writer = 'purge' and number = {number}"
        )
    )
    purged = {name: first[name] for name in names} | (plan[0] if plan else {})
    purged["deliveries"] = [
        {name: row[name] for name in ("destination", "state", "ended_at", "command_ids")}
        for row in its
    ]
    return {"purged": purged}


def show(outbox: Store, id_: str, *, with_payload: bool = False) -> dict[str, object]:
    """Return the life of an event, what is left of a purged one, or what became of a command.

    Args:
        outbox: where to look.
        id_: of an event or of a command.
        with_payload: with the payload and the values of headers, too.

    Raises:
        UnknownEvent: nothing has this id.
    """
    event = show_event(outbox, id_, with_payload=with_payload)
    if event is not None:
        return event
    purged = show_purged(outbox, id_)
    if purged is not None:
        return purged
    command = show_command(outbox, id_)
    if command is not None:
        return {"command": command}
    raise UnknownEvent(event_id=id_)

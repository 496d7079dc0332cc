"""The whole life of one event, and what became of a command.

As inspection.py: refresh first, values are never text, instants are ready for JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.errors import UnknownEvent
from delta_outbox.inspection import LISTED, rows_of
from delta_outbox.lifecycle import State
from delta_outbox.tables import TRANSITIONS

if TYPE_CHECKING:
    from delta_outbox.outbox import Outbox

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
_ATTENTION: Final = (State.DEAD, State.CLAIMED, State.PENDING, State.PUBLISHED)
_COPIES: Final = "outbox_copies_shown"


def show_event(
    outbox: Outbox, event_id: str, *, with_payload: bool = False
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


def _content(outbox: Outbox, event_id: str, created_date: str, arrival: object) -> dict[str, Any]:
    """Return what the log holds of the first copy of an event; reads one day of the log."""
    from pyspark.sql import functions as F  # noqa: N812

    copies = (
        outbox.spark.table(outbox.tables.events)
        .where(F.col("created_date") == F.lit(created_date).cast("date"))
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


def _transitions(outbox: Outbox, event_id: str, arrival: object) -> list[dict[str, object]]:
    from pyspark.sql import functions as F  # noqa: N812

    return rows_of(
        outbox.spark.table(outbox.tables.transitions)
        # The arrival names the event together with its id, and lets Delta pass over most files.
        .where((F.col("arrival") == F.lit(arrival)) & (F.col("event_id") == F.lit(event_id)))
        .select(*TRANSITIONS.names)
        .orderBy("epoch", "lane", "sequence", "destination")
    )


def show_command(outbox: Outbox, command_id: str) -> dict[str, object] | None:
    """Return an operator's command and what became of it; None if there is no such command.

    Its status is `done` once the log has a transition for every delivery that it names, else
    `waiting`.

    Args:
        outbox: where to look.
        command_id: the id that was printed when the command was given.
    """
    from pyspark.sql import functions as F  # noqa: N812

    rows = rows_of(
        outbox.spark.table(outbox.tables["outbox_commands"])
        .where(F.col("command_id") == F.lit(command_id))
        .orderBy("event_id", "destination")
    )
    if not rows:
        return None
    since = str(min(str(row["requested_date"]) for row in rows))
    carried_out = rows_of(
        outbox.spark.table(outbox.tables.transitions)
        .where(F.col("command_id") == F.lit(command_id))
        # A day earlier: the clock of the relay may be behind that of the operator.
        .where(F.col("occurred_date") >= F.date_sub(F.lit(since).cast("date"), 1))
        .select("event_id", "arrival", "destination")
    )
    return command_shown(rows, carried_out)


def command_shown(
    rows: Sequence[Mapping[str, object]], carried_out: Sequence[Mapping[str, object]]
) -> dict[str, object]:
    """Return a command as a document.

    Args:
        rows: the rows of outbox_commands with its id, one per delivery.
        carried_out: event_id, arrival and destination of the transitions with its id.
    """
    done = {(row["event_id"], row["arrival"], row["destination"]) for row in carried_out}
    # A command given before the first claim names no destination: any will do.
    done |= {(row["event_id"], row["arrival"], "") for row in carried_out}

    def status(row: Mapping[str, object]) -> str:
        key = (row["event_id"], row["arrival"], row["destination"] or "")
        return "done" if key in done else "waiting"

    targets = ("event_id", "arrival", "destination", "lifecycle")
    deliveries = [{**{name: row[name] for name in targets}, "status": status(row)} for row in rows]
    shared = ("command_id", "kind", "actor", "reason", "arguments", "requested_at")
    waiting = any(delivery["status"] == "waiting" for delivery in deliveries)
    return {
        **{name: rows[0][name] for name in shared},
        "status": "waiting" if waiting else "done",
        "deliveries": deliveries,
    }


def show(outbox: Outbox, id_: str, *, with_payload: bool = False) -> dict[str, object]:
    """Return the life of an event, or what became of a command.

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
    command = show_command(outbox, id_)
    if command is not None:
        return {"command": command}
    raise UnknownEvent(event_id=id_)

"""Says what became of a command: what of it is done, waits, or was refused.

As inspection.py: refresh first, values are never text, instants are ready for JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from delta_outbox.operations.inspection import rows_of

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

_COMMAND: Final = "outbox_command_shown"
_STATUS: Final = "outbox_command_status"
_OF_DESTINATIONS: Final = ("pause", "resume")

DELIVERIES_SHOWN: Final = 100  # of one command


def show_command(outbox: Store, command_id: str) -> dict[str, object] | None:
    """Return an operator's command and what became of it; None if there is no such command.

    Args:
        outbox: where to look.
        command_id: the id that was printed when the command was given.
    """
    from pyspark.sql import functions as F  # noqa: N812

    outbox.spark.table(outbox.tables.commands).where(
        F.col("command_id") == F.lit(command_id)
    ).select("*", F.col("_metadata.row_commit_version").alias("version")).createOrReplaceTempView(
        _COMMAND
    )
    given = rows_of(
        outbox.spark.sql(
            "select command_id, kind, actor, reason, requested_at, "
            # A day earlier: the clock of the relay may be behind that of the operator.
            f"date_sub(requested_date, 1) as since from {_COMMAND} order by requested_at limit 1"
        )
    )
    if not given:
        return None
    if given[0]["kind"] in _OF_DESTINATIONS:
        del given[0]["since"]
        return _pausing(outbox, given[0])
    text = outbox.statements.fill(
        "command_status",
        command=_COMMAND,
        since=f"date'{given[0].pop('since')}'",
        applied=outbox.commands_applied_to(),
    )
    outbox.spark.sql(text).createOrReplaceTempView(_STATUS)
    counts = rows_of(
        outbox.spark.sql(f"select status, count(*) as deliveries from {_STATUS} group by status")
    )
    rows = rows_of(
        outbox.spark.sql(
            # What is not done is what somebody asks for.
            f"select * from {_STATUS} order by status = 'done', status = 'waiting', "
            f"arrival, event_id, destination limit {DELIVERIES_SHOWN}"
        )
    )
    return command_shown(
        given[0], {str(row["status"]): int(str(row["deliveries"])) for row in counts}, rows
    )


def _pausing(outbox: Store, given: Mapping[str, object]) -> dict[str, object]:
    """Return a command about a destination: done once it is in the plans of the destinations."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = (
        outbox.spark.table(outbox.tables.commands)
        .where(F.col("command_id") == F.lit(given["command_id"]))
        .select("destination", F.col("_metadata.row_commit_version").alias("version"))
        .collect()
    )
    done = outbox.destinations.applied_to()
    deliveries = [
        {
            "destination": row["destination"],
            "status": "done" if row["version"] <= done else "waiting",
        }
        for row in rows
    ]
    return command_shown(given, Counter(row["status"] for row in deliveries), deliveries)


def command_shown(
    given: Mapping[str, object],
    counts: Mapping[str, int],
    deliveries: Sequence[Mapping[str, object]],
) -> dict[str, object]:
    """Return a command as a document.

    It waits while one of its deliveries does; it is refused if none of them was done.

    Args:
        given: what was asked for, by whom and why.
        counts: status (done, waiting or refused) to deliveries.
        deliveries: some of them, each with its status.
    """
    status = next((one for one in ("waiting", "done") if counts.get(one)), "refused")
    return {
        **given,
        "status": status,
        "counts": {one: counts.get(one, 0) for one in ("done", "waiting", "refused")},
        "deliveries": list(deliveries),
        "more": sum(counts.values()) > len(deliveries),
    }

"""Expands a request to the deliveries that it gets, by dbt's SQL, and appends it as a command."""

from __future__ import annotations

import logging
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from delta_outbox.core.errors import NoOutboxHere, UnknownEvent
from delta_outbox.core.literals import listed
from delta_outbox.operations.command_log import append_commands
from delta_outbox.operations.inspection import rows_of
from delta_outbox.operations.request_report import RequestReport
from delta_outbox.operations.requests import Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_outbox.store.store import Store

logger = logging.getLogger(__name__)

_REQUEST: Final = "outbox_request"
_TARGETS: Final = "outbox_targets"
_ROW: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("kind", "command_id", "actor", "reason", "state")),
        *((name, pa.string()) for name in ("event_type_regex", "error")),
        *((name, pa.list_(pa.string())) for name in ("event_ids", "claim_ids")),
    ]
)
"""A request as one row (macro request_row): the way its values reach the SQL."""


def perform(outbox: Store, request: Request) -> RequestReport:
    """Expand a request over all that was committed before, and append it unless it is a dry run.

    Args:
        outbox: where to ask.
        request: checked.

    Returns:
        What it is about; with a command id if deliveries were found and it is no dry run.

    Raises:
        UnknownEvent: it names events that do not exist; nothing was written.
    """
    outbox.refresh()
    state = pinned_state(outbox)
    command_id = uuid.uuid4().hex
    open_targets(outbox, request, state=state, command_id=command_id)
    if request.is_named:
        _refuse_unknown(outbox)
    found = _query(outbox, "request_examples")
    report = RequestReport(
        kind=request.kind,
        counts=_query(outbox, "request_counts"),
        examples=[_without(row, "refusal") for row in found if row["refusal"] is None],
        left_out=[row for row in found if row["refusal"] is not None],
    )
    if not report.deliveries:
        return report
    passed = 0
    if request.kind == "replay":
        passed = int(str(_query(outbox, "request_passed_keys", state=state)[0]["passed_keys"]))
    if not request.dry_run:
        append_commands(
            outbox, outbox.spark.sql(_filled(outbox, "command_rows", now=outbox.now_literal()))
        )
        logger.info(
            "command_appended",
            extra={
                "command_id": command_id,
                "kind": request.kind,
                "deliveries": report.deliveries,
            },
        )
    return replace(report, passed_keys=passed, command_id=None if request.dry_run else command_id)


def pinned_state(outbox: Store) -> str:
    """Return the projection at its newest version: what is shown is what is appended.

    Args:
        outbox: where to look.
    """
    seen = outbox.projection.watermark()
    if seen is None:
        raise NoOutboxHere(where=outbox.tables.state)
    return f"{outbox.tables.state} version as of {seen.version}"


def open_targets(outbox: Store, request: Request, *, state: str, command_id: str) -> DataFrame:
    """Expand a request and return its deliveries (macro request_targets).

    The session knows them, and the request, under names of ours.

    Args:
        outbox: where to look.
        request: checked.
        state: the projection at a version.
        command_id: of the command to be.
    """
    values = {
        "kind": request.kind,
        "command_id": command_id,
        "actor": request.actor,
        "reason": request.reason,
        "state": request.state,
        "event_type_regex": request.event_type_regex,
        "error": request.error,
        "event_ids": _as_list(request.event_ids),
        "claim_ids": _as_list(request.claim_ids),
    }
    row = pa.Table.from_pylist([values], schema=_ROW)
    outbox.spark.createDataFrame(row).createOrReplaceTempView(_REQUEST)
    text = outbox.statements.fill(
        f"{request.kind}_targets",
        state=state,
        request=_REQUEST,
        from_states=listed(request.from_states),
        is_named=str(request.is_named).lower(),
        created=request.created,
        now=outbox.now_literal(),
    )
    found = outbox.spark.sql(text)
    found.createOrReplaceTempView(_TARGETS)
    return found


def _as_list(ids: tuple[str, ...] | None) -> list[str] | None:
    return None if ids is None else list(ids)


def _refuse_unknown(outbox: Store) -> None:
    unknown = _query(outbox, "request_unknown_ids")
    if unknown:
        raise UnknownEvent(event_id=str(unknown[0]["event_id"]), others=len(unknown) - 1)


def _query(outbox: Store, name: str, **values: object) -> list[dict[str, object]]:
    return rows_of(outbox.spark.sql(_filled(outbox, name, **values)))


def _filled(outbox: Store, name: str, **values: object) -> str:
    return outbox.statements.fill(name, targets=_TARGETS, request=_REQUEST, **values)


def _without(row: dict[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in row.items() if key != name}

"""Workflows as rows: what `outbox workflow build` writes into seeds, and dbt checks."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from pydantic import TypeAdapter

from delta_outbox.railway.compromises import written
from delta_outbox.railway.graph import Event, Graph, Leg, fields_of
from delta_outbox.railway.identifiers import PLAIN_TYPES
from delta_outbox.railway.names import title
from delta_outbox.railway.tasks import (
    AnyTask,
    BlackBox,
    Idempotent,
    Never,
    OptimisticLock,
    PessimisticLock,
    State,
    ToDo,
)

Row = dict[str, str]
"""A cell for each column; an empty one says nothing."""
Rows = dict[str, list[Row]]
"""By the name of the seed."""

# twin: macros/workflows/workflow_columns.sql::workflow_columns
COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "railway_workflows": {
        "workflow": "Name of the workflow.",
        "version": "Raised when its routes change, from 1.",
        "title": "Its name for people.",
        "starts_on": "Event type that starts an instance.",
        "start_fields": (
            "Fields of the start event that identifiers may use, with blanks between; "
            "`name=key` where its payload has another key."
        ),
        "start_contract": "JSON Schema of its payload; empty: only those fields are checked.",
        "instance": "Template over the start event that tells instances apart.",
        "first_task": "Task that an instance begins with.",
        "default_exit": "Event type where a fault or an expiry leads that has no outcome.",
        "lease_seconds": "How long a claim of a task lasts.",
        "hash": "Of all rows of the workflow, by `outbox workflow build`; empty: written by hand.",
    },
    "railway_tasks": {
        "workflow": "Name of the workflow.",
        "task": "Name of the task.",
        "title": "Its name for people.",
        "category": "What its third party can promise.",
        "identifier": "Template of the task identifier, the key at the third party.",
        "expires_seconds": "How long after its trigger the task is of no use any more.",
        "never_expires_why": "Instead of it: why it never expires.",
        "third_party": "Whom it calls.",
        "time_limit_seconds": "How long one attempt may take.",
        "settles_within_seconds": "How late a request may take effect after its attempt.",
        "key_valid_for_seconds": "How long the third party remembers a key.",
        "key_never_forgotten_why": "Instead of it: why a key is never forgotten.",
        "why_not_pessimistic": "Of an optimistic lock: the performance problem that was measured.",
        "compromise": "Of a black box: at_most_once, at_least_once, up_to_N or human.",
        "visibility": "Of a black box: who would notice.",
        "necessity": "Of a black box: what the workflow is without it.",
        "hurt": "Of a black box: who is hurt first.",
        "risks": "Of a black box: the kinds of consequence, joined by |.",
        "decided_by": "Of a black box: who decided, and when.",
        "why": "Of a black box: the reason, in a sentence.",
        "roles": "Of a To-Do: who may answer, joined by |.",
        "due_seconds": "Of a To-Do: when somebody is reminded.",
        "told_apart_by": "Of a To-Do on a loop: the field by which answers to two visits differ.",
        "tells_opened": "Of a To-Do: yes, if an event `todo.opened` tells that an item is open.",
        "sends_link": "Of a To-Do: yes, if its events carry a signed link to the item.",
    },
    "railway_routes": {
        "workflow": "Name of the workflow.",
        "task": "Name of the task.",
        "cause": "decided, or what happened to the task: faulted, expired, uncertain.",
        "outcome": "Outcome of the task; empty: the default exit.",
        "to_task": "Task that follows.",
        "to_event": "Event type that ends the workflow instead.",
    },
    "railway_contracts": {
        "workflow": "Name of the workflow.",
        "task": "Name of the To-Do.",
        "version": "Of the workflow.",
        "contract": "JSON Schema of an answer.",
    },
}
"""The seeds, their columns and what stands in them."""


def rows_of(workflow: Graph[Any]) -> Rows:
    """Return the rows of a workflow.

    Args:
        workflow: that keeps every rule.
    """
    rows: Rows = {
        **rows_of_routes(workflow),
        "railway_contracts": [
            _full(
                "railway_contracts",
                workflow=workflow.name,
                task=task.task_name(),
                version=str(workflow.version),
                contract=_json(task.contract.model_json_schema()),
            )
            for task in workflow.tasks
            if issubclass(task, ToDo)
        ],
    }
    (row,) = rows["railway_workflows"]
    row["start_contract"] = _json(TypeAdapter(workflow.start).json_schema())
    row["hash"] = hash_of(rows)
    return rows


def rows_of_routes(workflow: Graph[Any]) -> Rows:
    """Return the rows of a workflow that say where its instances go, without contracts and
    hash.

    Args:
        workflow: whose.
    """
    return {
        "railway_workflows": [_workflow(workflow)],
        "railway_tasks": [_task(workflow, task) for task in workflow.tasks],
        "railway_routes": [
            _leg(workflow, leg) for one in workflow.tasks for leg in workflow.legs(one)
        ],
    }


# twin: macros/workflows/workflow_hash.sql::workflow_hash
def hash_of(rows: Mapping[str, Iterable[Row]]) -> str:
    """Return the hash of rows; their order, and the column `hash` itself, do not count.

    It finds rows that were changed or mixed up by mistake, and guards against nobody.

    Args:
        rows: by seed.
    """
    lines = sorted(
        "|".join([seed, *(row[name] for name in COLUMNS[seed] if name != "hash")])
        for seed, found in rows.items()
        for row in found
    )
    return hashlib.md5("\n".join(lines).encode(), usedforsecurity=False).hexdigest()


# twin: macros/workflows/workflow_start_fields.sql::workflow_start_fields
def start_fields(cell: str) -> dict[str, str]:
    """Return the fields of a start event that identifiers may use, each with its key in JSON.

    Args:
        cell: of the column `start_fields`.
    """
    named = [one.partition("=") for one in cell.split()]
    return {name: key or name for name, _, key in named}


def joined(each: Iterable[Rows]) -> Rows:
    """Return the rows of several workflows.

    Args:
        each: the rows of one each.
    """
    every = list(each)
    return {seed: [row for rows in every for row in rows[seed]] for seed in COLUMNS}


def to_csv(seed: str, rows: Sequence[Row]) -> str:
    """Return rows as the text of their seed.

    Args:
        seed: its name.
        rows: of it.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS[seed], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def from_csv(text: str) -> list[Row]:
    """Return the rows of a seed; those of another form are left as they are.

    Args:
        text: of the file.
    """
    return [
        {name: cell or "" for name, cell in row.items() if isinstance(name, str)}
        for row in csv.DictReader(io.StringIO(text))
    ]


def _workflow(workflow: Graph[Any]) -> Row:
    usable = [
        name if key == name else f"{name}={key}"
        for name, kind in fields_of(workflow.start).items()
        if kind in PLAIN_TYPES and not re.search(r"\s", key := _key(workflow.start, name))
    ]
    exit_ = workflow.default_exit
    return _full(
        "railway_workflows",
        workflow=workflow.name,
        version=str(workflow.version),
        title=_line(workflow.title or title(workflow.name)),
        starts_on=workflow.starts_on,
        start_fields=" ".join(usable),
        instance=workflow.instance,
        first_task=workflow.first.task_name(),
        default_exit=exit_.event_type if exit_ else "",
        lease_seconds=_seconds(workflow.lease),
    )


def _task(workflow: Graph[Any], task: AnyTask) -> Row:
    cells = {
        "workflow": workflow.name,
        "task": task.task_name(),
        "title": _line(task.business_name()),
        "category": str(task.category),
        "identifier": task.identifier,
        **_until("expires_seconds", "never_expires_why", task.expires),
    }
    if issubclass(task, State):
        cells |= {
            "third_party": task.third_party,
            "time_limit_seconds": _seconds(task.time_limit),
        }
    if issubclass(task, Idempotent | PessimisticLock):
        cells["settles_within_seconds"] = _seconds(task.settles_within)
    if issubclass(task, Idempotent):
        cells |= _until("key_valid_for_seconds", "key_never_forgotten_why", task.key_valid_for)
    if issubclass(task, OptimisticLock):
        cells["why_not_pessimistic"] = _line(task.why_not_pessimistic)
    if issubclass(task, BlackBox):
        concerns = task.concerns
        cells |= {
            "compromise": written(task.compromise),
            "visibility": str(concerns.visibility),
            "necessity": str(concerns.necessity),
            "hurt": str(concerns.hurt),
            "risks": "|".join(sorted(concerns.risks)),
            "decided_by": _line(concerns.decided_by),
            "why": _line(concerns.why),
        }
    if issubclass(task, ToDo):
        cells |= {
            "roles": "|".join(sorted(task.roles)),
            "due_seconds": _seconds(task.due) if task.due else "",
            "told_apart_by": _told_apart_by(task),
            "tells_opened": _yes(task.tells_opened),
            "sends_link": _yes(task.sends_link),
        }
    return _full("railway_tasks", **cells)


def _told_apart_by(task: type[ToDo[Any, Any, Any, Any]]) -> str:
    """Return the field by the name that it has in an answer, as the contract's JSON Schema."""
    return _key(task.contract, task.told_apart_by or "")


def _leg(workflow: Graph[Any], leg: Leg[Any]) -> Row:
    target = leg.target
    return _full(
        "railway_routes",
        workflow=workflow.name,
        task=leg.task.task_name(),
        cause=leg.cause,
        outcome=leg.outcome or "",
        to_task=target.task_name() if isinstance(target, type) else "",
        to_event=target.event_type if isinstance(target, Event) else "",
    )


def _key(kind: type[Any], name: str) -> str:
    """Return the key that a field has in JSON: its alias, if there is one."""
    field = getattr(kind, "__pydantic_fields__", {}).get(name)
    alias = field.validation_alias if field else None
    return alias if isinstance(alias, str) else name


def _full(seed: str, **cells: str) -> Row:
    return {name: cells.get(name, "") for name in COLUMNS[seed]}


def _until(column: str, instead: str, span: timedelta | Never) -> Row:
    if isinstance(span, Never):
        return {instead: _line(span.why)}
    return {column: _seconds(span)}


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():.6f}".rstrip("0").rstrip(".")


def _json(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _yes(holds: bool) -> str:
    return "yes" if holds else ""


def _line(text: str) -> str:
    """Return a text in one line, as a cell that every reader of CSV reads the same."""
    return " ".join(text.split())

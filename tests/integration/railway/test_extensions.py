"""Open tasks that operators let expire later, and instances that they cancel: by Python, by the
command line and by dbt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from tests.integration.conftest import REPOSITORY
from tests.integration.outboxes import Store, open_store

from delta_outbox.api import Outbox
from delta_outbox.cli.instances import report_text
from delta_outbox.cli.main import main
from delta_outbox.core.clock import CLOCK_OFFSET_VARIABLE, SystemClock
from delta_outbox.core.errors import WrongUsage
from delta_outbox.core.literals import instant_literal
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.core.settings import PublisherSettings, Settings, WorkflowSettings
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.operations.command_life import show_command
from delta_outbox.railway.modules import load
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.dbt import check_result, run_dbt
from delta_outbox.store.apply_commands import Commands
from delta_outbox.store.completions import completion_arguments
from delta_outbox.workflow_engine.execution.tasks import Tasks
from delta_outbox.workflow_engine.hosts.call import Setup
from delta_outbox.workflow_engine.instances import Instances, UnknownInstance
from delta_outbox.workflow_engine.items import AnsweredTooLate, Items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.home import Home

AUTHOR = REPOSITORY / "tests" / "integration" / "railway" / "author"
SCHEMA = "t_extensions"
WHO: dict[str, Any] = {"actor": "ann", "reason": "the bank is closed"}
SETTINGS = Settings(
    publishers={"default": PublisherSettings(type="null")},
    workflows=WorkflowSettings(modules=("desks",)),
)
HOUR = timedelta(hours=1)
COMPARED = "kind, event_id, arrival, destination, lifecycle, arguments, actor, reason"


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox with the workflows of `desks`."""
    with open_store(spark, home, SCHEMA) as opened:
        rows = joined(rows_of(one) for one in load(["desks"], AUTHOR))
        writes = NumberedWrites(spark, opened.tables, writer="workflows", clock=SystemClock())
        assert writes.append_after(None, {"version": "1", "rows": rows}, planned_by="tests")
        yield opened


def relayed(store: Store, *, ahead: timedelta = timedelta(0)) -> None:
    """Run a relay, with hosts of its own, until all is done or waits for long.

    Args:
        store: where.
        ahead: by how much its clock is.
    """
    outbox = opened(store, ahead=ahead)
    tasks = Tasks(outbox, Setup(modules=["desks"], folder=AUTHOR))
    try:
        Relay(outbox, tasks=tasks).run(Mode.DRAIN)
    finally:
        tasks.close()
        outbox.close()


def opened(store: Store, *, ahead: timedelta = timedelta(0)) -> Outbox:
    """Open a worker whose clock is ahead."""
    clock = SystemClock({CLOCK_OFFSET_VARIABLE: str(int(ahead.total_seconds()))})
    return store.open(SETTINGS, clock=clock)


def started(store: Store, **cases: str) -> None:
    """Start instances, and let them come to where they stand still.

    Args:
        store: where.
        cases: the business key of each, and what begins with it: asked, waiting or called.
    """
    store.insert(
        *(
            (f"start-{kind}-{name}", f"case.{kind}", json.dumps({"case": name}))
            for name, kind in cases.items()
        )
    )
    relayed(store)


def task(store: Store, task_id: str) -> dict[str, Any]:
    """Return what the view says of a task."""
    (found,) = store.rows(
        f"select * from {store.tables['workflow_tasks']} where task_id = '{task_id}'"
    )
    return found


def steps(store: Store, task_id: str) -> list[str]:
    """Return why a task has changed its state, from the first time on."""
    return [row["reason"] for row in store.transitions(task_id)]


def status(outbox: Outbox, command_id: str | None) -> object:
    """Return what became of a command."""
    assert command_id is not None
    outbox.refresh()
    shown = show_command(outbox, command_id)
    assert shown is not None
    return shown["status"]


def test_what_is_extended_expires_later_for_everybody(store: Store) -> None:
    """A preview writes nothing. A task that operators have let expire later is attempted after its
    first end by a relay that knows nothing but the logs, and an item stays open for an answer; what
    was not extended expires. The log says who has held the item, and until when.
    """
    started(store, e1="called", e2="called", e3="asked", e4="asked")
    outbox = opened(store)
    instances = Instances(outbox)
    preview = instances.extend(third_party="bank", by_seconds=7200, **WHO)
    assert ({"e1", "e2"}, None) == ({one["instance"] for one in preview.tasks}, preview.command_id)
    before = {name: task(store, name)["expires_at"] for name in ("call-e1", "ask-e3", "call-e2")}
    done = instances.extend(["e1"], by_seconds=7200, dry_run=False, **WHO)
    to = before["ask-e3"] + 2 * HOUR
    held = instances.extend(["e3"], to=to, dry_run=False, **WHO)
    assert ("done", "done") == (status(outbox, done.command_id), status(outbox, held.command_id))
    assert [
        before["call-e1"] + 2 * HOUR,
        before["call-e2"],
        to,
        to,
    ] == [
        *(task(store, name)["expires_at"] for name in ("call-e1", "call-e2", "ask-e3")),
        task(store, "ask-e3")["lease_expires_at"],
    ]
    assert ["claimed", "released", "claimed"] == steps(store, "ask-e3")
    (released,) = [row for row in store.transitions("ask-e3") if row["reason"] == "released"]
    assert (held.command_id, "ann") == (released["command_id"], released["actor"])
    again = instances.extend(["e3"], to=to, dry_run=False, **WHO)
    assert (0, None) == (len(again.tasks), again.command_id)
    outbox.close()
    relayed(store, ahead=1.5 * HOUR)
    assert ["claimed", "failed", "claimed", "failed"] == steps(store, "call-e1")
    assert ["claimed", "failed", "claimed", "expired"] == steps(store, "call-e2")
    assert ["claimed", "released", "claimed"] == steps(store, "ask-e3")
    assert ["claimed", "lease_expired", "claimed", "expired"] == steps(store, "ask-e4")
    relayed(store, ahead=4 * HOUR)
    assert ["claimed", "lease_expired", "claimed", "expired"] == steps(store, "ask-e3")[2:]
    assert "expired" == steps(store, "call-e1")[-1]

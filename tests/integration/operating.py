"""What tests of operations share: events in every state, and the three ways to ask."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from tests.integration.outboxes import Store

from delta_outbox.api import Outbox
from delta_outbox.core.clock import CLOCK_OFFSET_VARIABLE, SystemClock
from delta_outbox.lifecycle.claims import Claim
from delta_outbox.operations import command_life, event_life
from delta_outbox.runtime.dbt import check_result, run_dbt

SCHEMA = "t_operations"
START = datetime(2025, 3, 1, 12, tzinfo=UTC)
LATER = datetime.now(UTC).replace(microsecond=0) + timedelta(days=365)
HOSTILE = "x' or '1'='1\"; drop table y -- \\ \\' {{ 7*7 }} {% raw %} ${env:HOME} :id ü\U0001f600"
STEERING = "ctl-\x1b[2J\n\u202e"
WHO: dict[str, Any] = {"actor": f"ann {HOSTILE}", "reason": f"because {HOSTILE}"}
EVENTS = [
    ("dead", "order.created", "k1"),
    ("done", "order.created", "k1"),
    ("done-alone", "order.paid", None),
    (HOSTILE, "invoice.sent", HOSTILE),
    ("held-over", "order.held", None),
    ("held-now", "order.held", None),
]
KILLED = {way: [f"kill-{way}", f"{HOSTILE} {way}"] for way in ("python", "dbt")}
COMPARED = "kind, event_id, arrival, destination, lifecycle, arguments, actor, reason"


def table(rows: Sequence[tuple[str, str, str | None]]) -> pa.Table:
    """Return events, created a microsecond after each other; those of order.later are scheduled."""
    instant = pa.timestamp("us", tz="UTC")
    created = [START + timedelta(microseconds=number) for number in range(len(rows))]
    return pa.table(
        {
            "event_id": [row[0] for row in rows],
            "event_type": [row[1] for row in rows],
            "ordering_key": pa.array([row[2] for row in rows], pa.string()),
            "payload": pa.array([b"x"] * len(rows), pa.binary()),
            "created_at": pa.array(created, instant),
            "available_at": pa.array(
                [LATER if row[1] == "order.later" else None for row in rows], instant
            ),
        }
    )


def clock(hours: int) -> SystemClock:
    """Return a clock that is wrong by hours."""
    return SystemClock({CLOCK_OFFSET_VARIABLE: str(hours * 3600)})


@dataclass(frozen=True, kw_only=True)
class Lives:
    """An outbox with events in every state.

    Args:
        outbox: a worker.
        holder: the worker that holds `held-now`.
        claim: under which it does.
    """

    outbox: Outbox
    holder: Outbox
    claim: Claim


@dataclass(frozen=True, kw_only=True)
class Ways:
    """The three ways to ask, and what they wrote.

    Args:
        store: the tables.
        outbox: a worker.
        main: runs a command line with --json.
    """

    store: Store
    outbox: Outbox
    main: Callable[..., tuple[int, Any]]
    seen: set[str] = field(default_factory=set)

    def by_python(self, kind: str, **given: Any) -> None:
        """Ask by Python."""
        asked: dict[str, Callable[..., Any]] = {
            "replay": self.outbox.replay,
            "kill": self.outbox.kill,
            "release": self.outbox.release_expired_claims,
        }
        asked[kind](**given)

    def by_cli(self, kind: str, *, dry_run: bool, **given: Any) -> None:
        """Ask by the command."""
        words = [kind, "--dry-run" if dry_run else "--apply"]
        names = {"event_type": "--type", "event_ids": "--id", "claim_ids": "--claim"}
        for name, value in given.items():
            values = value if isinstance(value, list) else [value]
            if kind == "kill" and name == "event_ids":
                words += values
                continue
            for one in values:
                text = one.isoformat() if isinstance(one, datetime) else one
                words += [names.get(name, f"--{name}"), text]
        code, document = self.main(*words)
        assert code in (0, 1), document

    def by_dbt(self, kind: str, **given: Any) -> None:
        """Ask by dbt."""
        operation = "release_expired_claims" if kind == "release" else kind
        args = json.dumps(given, default=lambda value: value.isoformat(), ensure_ascii=False)
        check_result(
            run_dbt(
                ["run-operation", operation, "--args", args, "--no-populate-cache"],
                home=self.store.home,
                schema=SCHEMA,
            )
        )

    def ask(self, way: str, kind: str, **given: Any) -> list[dict[str, Any]]:
        """Ask one way and return the rows of the command log that this wrote."""
        getattr(self, f"by_{way}")(kind, **given)
        rows = self.store.rows(
            f"select {COMPARED}, command_id from {self.store.tables.commands} order by event_id"
        )
        new = [row for row in rows if row["command_id"] not in self.seen]
        assert len({row["command_id"] for row in new}) <= 1
        self.seen.update(row["command_id"] for row in new)
        return [{name: row[name] for name in row if name != "command_id"} for row in new]

    def statuses(self, kind: str) -> list[str]:
        """Return what became of the commands of a kind, in the order in which they were given."""
        rows = self.store.rows(
            "select command_id, min(_metadata.row_commit_version) as place "
            f"from {self.store.tables.commands} where kind = '{kind}' "
            "group by command_id order by place"
        )
        self.outbox.refresh()
        found = [command_life.show_command(self.outbox, row["command_id"]) for row in rows]
        return [str(command["status"]) for command in found if command is not None]

    def command(self, command_id: str | None) -> dict[str, Any]:
        """Return a command as `outbox show` does."""
        assert command_id is not None
        self.outbox.refresh()
        shown: Any = event_life.show(self.outbox, command_id)
        command: dict[str, Any] = shown["command"]
        return command

    def last_step(self, event_id: str) -> tuple[str, str, int, str | None, str | None]:
        """Return what an event's last transition says, and who asked for it."""
        shown: Any = event_life.show(self.outbox, event_id)
        step = shown["transitions"][-1]
        names = ("to_state", "reason", "lifecycle", "actor", "command_id")
        to_state, reason, lifecycle, actor, command_id = (step[name] for name in names)
        return to_state, reason, lifecycle, actor, command_id

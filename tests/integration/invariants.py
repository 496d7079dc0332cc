"""What tests of the invariants share: a build, and a store in which every rule is broken."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from tests.integration.outboxes import Store
from tests.integration.workflow_violations import LATE_MOVES, MOVED, MOVES, NAMES, Workflows

from delta_outbox.core.clock import SystemClock
from delta_outbox.core.tables import TRANSITIONS
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.projection.projection import Projection
from delta_outbox.runtime.dbt import check_result, run_dbt

BUILT: Final = ("--select", "outbox_state", "delivery_policies", "policy_rows", "tag:invariants")
NOW: Final = datetime.now(UTC).replace(microsecond=0)

BEFORE: Final = (
    *("twice", "stolen", "late", "revived", "revived-ok", "undead", "again", "copy"),
    *("tamper-c", "tamper-p", "over-1", "over-2", "fail-1", "fail-2", "kill-1", "kill-2"),
    *("calm-1", "calm-2", "jump", "count", "bare", "gap", "dup-a", "dup-b", "again-b"),
    *("stale", "fan-late", "hold-1", "hold-2", "redo-1", "redo-2", "back-1", "back-2"),
)
GROUPS: Final = ("over", "fail", "kill", "calm", "hold", "redo", "back")
AFTER: Final = ("lost", "twin", "renamed")
LANES = {name: lane for lane, name in enumerate([*BEFORE, *AFTER, "ghost", *NAMES], start=1)}
LANES |= {"dup-b": LANES["dup-a"], "again-b": LANES["again"]}
LANES |= {f"{name}-2": LANES[f"{name}-1"] for name in GROUPS}


def build(store: Store, **variables: object) -> Any:
    """Build the projection and the invariants and return dbt's result, failed or not."""
    return run_dbt(
        ["build", *BUILT], home=store.home, schema=store.tables.schema, variables=variables
    )


def positions(store: Store) -> list[dict[str, Any]]:
    """Return the verified positions, oldest first."""
    return [
        json.loads(row["plan"])
        for row in store.rows(
            f"select plan from {store.tables.progress} where writer = 'invariants' order by number"
        )
    ]


class Broken:
    """A store whose tables take everything.

    Args:
        store: the store; its CHECK constraints are dropped here.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.arrivals: dict[str, int] = {}
        self.projection = Projection(
            store.spark, store.tables, store.statements, clock=SystemClock()
        )
        for table in ("outbox_transitions", "outbox_commands"):
            for row in store.spark.sql(f"show tblproperties {store.tables[table]}").collect():
                if row["key"].startswith("delta.constraints."):
                    name = row["key"].removeprefix("delta.constraints.")
                    store.spark.sql(f"alter table {store.tables[table]} drop constraint {name}")

    def sql(self, text: str) -> None:
        tables = {name: self.store.tables[f"outbox_{name}"] for name in ("commands", "relays")}
        self.store.spark.sql(
            text.format(events=self.store.tables.events, state=self.store.tables.state, **tables)
        )

    def append_events(self, *event_ids: str) -> int:
        """Append events in one commit; the part of an id before `-<digit>` is its key."""
        values = ", ".join(
            f"('{event_id}', '{event_id[:4]}', cast('p' as binary), "
            f"timestamp'{NOW:%Y-%m-%d %H:%M:%S}', "
            f"'{event_id[:-2] if event_id[-1].isdigit() else event_id}', {number})"
            for number, event_id in enumerate(event_ids)
        )
        self.sql(
            "insert into {events} (event_id, event_type, payload, created_at, ordering_key, "
            f"ordinal) values {values}"
        )
        arrival = self.head()
        for event_id in event_ids:
            self.arrivals.setdefault(event_id, arrival)
        return arrival

    def head(self) -> int:
        """Return the latest version of the event log."""
        head = self.store.rows(f"describe history {self.store.tables.events} limit 1")
        return int(head[0]["version"])

    def append(self, *rows: dict[str, Any]) -> None:
        """Append transitions in one commit."""
        table = pa.Table.from_pylist(list(rows), schema=TRANSITIONS)
        frame = self.store.spark.createDataFrame(table)
        frame.write.format("delta").mode("append").saveAsTable(self.store.tables.transitions)

    def step(self, event_id: str, sequence: int, steps: str, **given: Any) -> dict[str, Any]:
        """Return one transition, `FROM>TO:reason`, as it should be but for what is given."""
        states, reason = steps.split(":")
        from_state, to_state = states.split(">")
        claim = {
            "claim_id": f"claim-{event_id}",
            "lease_expires_at": NOW + timedelta(seconds=30),
            "claim_size": 1,
        }
        return {
            "epoch": 0,
            "lane": LANES[event_id],
            "sequence": sequence,
            "event_id": event_id,
            "arrival": self.arrivals.get(event_id, 999),
            "destination": "default",
            "lifecycle": 0,
            "attempt": 1,
            "from_state": from_state,
            "to_state": to_state,
            "reason": reason,
            "relay_id": "r",
            "occurred_at": NOW,
            "policy_version": "p",
            "publish_attempts": 0,
            "crashes": 0,
            "suspect": 0,
            **(claim if "CLAIMED" in states else {}),
            **given,
        }


POLICIES: Final = PolicySet.from_csv("event_type,on_dead\nhold,hold\n*,continue\n")
CLAIM: Final = "PENDING>CLAIMED:claimed"
DONE: Final = "CLAIMED>PUBLISHED:delivered"
DEAD: Final = "CLAIMED>DEAD:rejected"
REPLAY: Final = "DEAD>PENDING:replayed"
ANEW: Final = {"lifecycle": 1, "attempt": 0, "actor": "me"}


def break_the_rules(store: Store) -> Broken:
    """Break every rule in a store, after a position at which all was well."""
    broken = Broken(store)
    step = broken.step
    plan = {"version": "p", "rows": [policy.as_row() for policy in POLICIES.policies]}
    values = f"('policy', 1, '{json.dumps(plan)}', current_timestamp(), 'test')"
    store.spark.sql(f"insert into {store.tables.progress} values {values}")
    broken.append_events(*BEFORE)
    broken.append(
        *(step(name, 1, CLAIM) for name in ("twice", "stolen", "late", "revived", "undead")),
        *(step(name, 1, CLAIM) for name in ("again", "revived-ok")),
        step("late", 2, DONE),
        *(step(name, 1, CLAIM) for name in ("redo-1", "back-1")),
        *(step(name, 2, DEAD) for name in ("revived", "revived-ok", "undead", "redo-1", "back-1")),
    )
    check_result(build(store))
    broken.append_events(*AFTER)
    copy = broken.append_events("copy")
    workflows = Workflows(broken, NOW)
    workflows.append()
    _seed(broken, workflows)
    broken.projection.refresh(planned_by="test")
    # What the projection itself gets wrong.
    broken.sql("update {state} set claimed_at = current_timestamp() where event_id = 'tamper-c'")
    broken.sql("update {state} set published_at = current_timestamp() where event_id = 'tamper-p'")
    broken.sql("update {state} set attempts = 9 where event_id = 'stale'")
    broken.sql("update {state} set event_type = 'x' where event_id = 'renamed'")
    broken.sql("delete from {state} where event_id = 'lost'")
    broken.sql("insert into {state} select * from {state} where event_id = 'twin'")
    _second_row(broken, copy)
    return broken


def _second_row(broken: Broken, arrival: int) -> None:
    """Add a delivery of the later copy to the projection."""
    frame = broken.store.spark.table(broken.store.tables.state).where("event_id = 'copy'")
    row = frame.selectExpr(
        *(f"{arrival}L as arrival" if name == "arrival" else name for name in frame.columns)
    )
    row.write.format("delta").mode("append").saveAsTable(broken.store.tables.state)


def _seed(broken: Broken, workflows: Workflows) -> None:
    """Append what must not be, and beside it what looks like it and is allowed."""
    step = broken.step
    broken.append(
        step("jump", 1, "PENDING>PUBLISHED:delivered", attempt=0),
        step("twice", 2, CLAIM, attempt=2, claim_id="claim-twice-2"),
        step("stolen", 2, DONE, claim_id="another"),
        step("late", 3, "CLAIMED>PENDING:failed"),
        step("count", 1, CLAIM, attempt=3),
        step("bare", 1, CLAIM, relay_id=None),
        step("revived", 3, REPLAY, **ANEW, command_id="nobody's"),
        step("revived-ok", 3, REPLAY, **ANEW, command_id="command-1"),
        step("undead", 3, "DEAD>PENDING:failed"),
        step("gap", 1, CLAIM),
        step("gap", 3, DONE),
        step("dup-a", 1, CLAIM),
        step("again-b", 1, CLAIM, relay_id="s"),
        step("stale", 1, CLAIM),
        step("ghost", 1, CLAIM),
        step("fan-late", 1, CLAIM),
        step("fan-late", 2, CLAIM, destination="other", claim_id="claim-other"),
        step("over-2", 1, CLAIM),
        step("over-2", 2, DONE),
        step("fail-1", 1, CLAIM),
        step("fail-1", 2, "CLAIMED>PENDING:failed", publish_attempts=1),
        step("fail-2", 3, CLAIM),
        step("fail-2", 4, DONE),
        step("kill-2", 1, CLAIM),
        step("kill-2", 2, DONE),
        step("hold-1", 1, CLAIM),
        step("hold-1", 2, DEAD),
        step("hold-2", 3, CLAIM),
        step("hold-2", 4, DONE),
        step("redo-1", 3, REPLAY, **ANEW, command_id="command-3"),
        step("redo-2", 4, CLAIM),
        step("redo-2", 5, DONE),
        step("back-2", 3, CLAIM),
        step("back-1", 4, REPLAY, **ANEW, command_id="command-4"),
        step("back-2", 5, DONE),
        step("calm-1", 1, CLAIM),
        step("calm-2", 1, CLAIM, relay_id="todo"),  # an item, claimed by the same append
        step("calm-1", 2, "CLAIMED>PENDING:released"),
        step("calm-2", 2, "CLAIMED>PENDING:released"),
        *workflows.transitions(),
    )
    broken.append(step("dup-b", 1, CLAIM, relay_id="s"))
    values = ", ".join(
        f"('{command_id}', '{kind}', '{event_id}', {broken.arrivals[event_id]}, '', 0, 'me', 'why')"
        for command_id, kind, event_id in (
            ("command-1", "replay", "revived-ok"),
            ("command-2", "kill", "kill-1"),
            ("command-3", "replay", "redo-1"),
            ("command-4", "replay", "back-1"),
            ("command-5", "replay", "book-one"),
            ("command-6", "kill", "strange"),
            ("command-7", "kill", "book-fourteen"),
        )
    )
    broken.sql(
        "insert into {commands} "
        "(command_id, kind, event_id, arrival, destination, lifecycle, actor, reason) "
        f"values {values}"
    )
    arguments = json.dumps({"to": asdict(MOVED)}).replace("{", "{{").replace("}", "}}")
    moves = ", ".join(
        f"('{command_id}', 'kill', '{event_id}', {broken.arrivals[event_id]}, '', 0, 'me', 'why', "
        f"'{arguments}')"
        for command_id, event_id in {**MOVES, **LATE_MOVES}.items()
    )
    broken.sql(
        "insert into {commands} "
        "(command_id, kind, event_id, arrival, destination, lifecycle, actor, reason, arguments) "
        f"values {moves}"
    )
    broken.sql(
        "merge into {commands} as t using (select 'old' as command_id) as s "
        "on t.command_id = s.command_id when not matched then insert "
        "(command_id, kind, event_id, arrival, destination, lifecycle, actor, reason, requested_at)"
        f" values ('old', 'kill', 'kill-1', {broken.arrivals['kill-1']}, '', 0, 'me', 'why', "
        "current_timestamp())"
    )
    broken.sql(
        "insert into {relays} (relay_id, kind, lanes, at, version) values "
        "('r', 'alive', array(0), current_timestamp(), '0')"
    )
    broken.sql("delete from {relays}")
    broken.sql("set spark.databricks.delta.commitInfo.userMetadata = outbox/purge/1")
    broken.sql("delete from {commands} where command_id = 'old'")
    broken.sql("reset spark.databricks.delta.commitInfo.userMetadata")

"""Breaks the rules of workflows in a store, beside tasks that keep them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from delta_outbox.core.literals import instant_literal, text_literal
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.railway.modules import load
from delta_outbox.railway.routing import TaskEnding
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.workflow_engine.derivation.events import NewEvent, StartEvent, TaskEvent
from delta_outbox.workflow_engine.derivation.follow_ups import Ended, follow
from delta_outbox.workflow_engine.derivation.moves import Move, OtherVersion
from delta_outbox.workflow_engine.derivation.plans import Plan
from delta_outbox.workflow_engine.derivation.starts import begin

if TYPE_CHECKING:
    from tests.integration.invariants import Broken

AUTHOR: Final = Path(__file__).parent / "railway" / "author"
NAMES: Final = (
    *("book-one", "book-two", "book-three"),
    *("tell-four", "tell-five", "tell-six", "tell-seven"),
    *("book-nine", "book-ten", "book-eleven", "book-twelve"),
    *("book-thirteen", "book-fourteen", "review-old", "strange"),
)
"""The tasks that have transitions."""
MOVES: Final = {"move-nine": "book-nine", "move-ten": "book-ten"}
"""The commands that let instances go on at another task, and the tasks at which these stood."""
LATE_MOVES: Final = {"move-fourteen": "book-fourteen"}
"""A command of that kind to which another kill came first."""
MOVED: Final = OtherVersion(plan=1, task="review")
CLAIM: Final = "PENDING>CLAIMED:claimed"


class Workflows:
    """Parcels at some of their tasks.

    Args:
        broken: takes what is appended.
        now: the instant of the seed.
    """

    def __init__(self, broken: Broken, now: datetime) -> None:
        self._broken = broken
        self._rows = joined(rows_of(one) for one in load(["parcels"], AUTHOR))
        self._plan = Plan(1, {"rows": self._rows})
        self._ended_at = now - timedelta(hours=4)
        self._writes = [now - timedelta(hours=hours) for hours in (5, 3, 2, 0)]

    def book(self, name: str) -> TaskEvent:
        """Return the first task of a parcel."""
        event = StartEvent(
            event_id=f"ordered-{name}",
            event_type="parcel.ordered",
            payload=json.dumps({"parcel": name, "port": 1}).encode(),
            since=self._writes[0],
            arrival=1,
        )
        task = begin(event, self._plan.versions["parcels"])
        assert isinstance(task, TaskEvent)
        return task

    def after(
        self, task: TaskEvent, cause: str, outcome: str | None = None, move: Move | None = None
    ) -> Any:
        """Return what follows a task."""
        ending = TaskEnding(cause=cause, outcome=outcome)
        at, position = self._ended_at, (0, 0, 1)
        ended = Ended(task=task, ending=ending, at=at, position=position, move=move)
        return follow(ended, {1: self._plan})

    def tell(self, name: str) -> TaskEvent:
        """Return the task of a black box, as if it were the first one."""
        task = self.after(self.after(self.book(name), "decided", "booked"), "decided", "paid")
        return replace(task, before=None)

    def append(self) -> None:
        """Append tasks, what follows them, and the numbered writes that have made both."""
        broken, tell, book = self._broken, self.tell, self.book
        self._keep("workflows", 1, self._writes[0], {"version": "1", "rows": self._rows})
        seen = [broken.head()]
        names = ("one", "two", "three", "eight", "nine", "ten", "eleven", "twelve", "thirteen")
        first = [book(name) for name in (*names, "fourteen")]
        first += [tell(name) for name in ("four", "five", "six", "seven")]
        item = self.after(book("old"), "faulted")
        assert isinstance(item, TaskEvent)
        long_ago = self._ended_at - timedelta(days=40)
        first.append(replace(item, before=None, created_at=long_ago))
        self._append([one.row() for one in first], self._writes[0])
        seen.append(broken.head())
        strange = replace(first[0].row(), event_id="strange", event_type="workflow:nobody/knows")
        self._append([replace(strange, created_at=self._ended_at)], None)
        review = self.after(book("three"), "faulted")
        assert isinstance(review, TaskEvent)
        wrong = self.after(book("three"), "decided", "booked").before
        eleven = self.after(book("eleven"), "decided", "booked").row()
        rows = [
            self.after(book("one"), "decided", "booked").row(),
            replace(review, before=wrong).row(),
            self.after(book("eight"), "decided", "booked").row(),
            self.after(tell("four"), "decided", "told"),
            self.after(tell("five"), "faulted"),
            self.after(tell("seven"), "uncertain"),
            self.after(book("nine"), "killed", move=MOVED).row(),
            self.after(book("ten"), "killed"),
            self.after(book("fourteen"), "killed"),
            eleven,
            replace(eleven, event_id="pay-eleven-again"),
            self.after(book("twelve"), "decided", "booked").row(),
        ]
        self._append(rows, self._writes[1])
        seen.append(broken.head())
        stranded = [{"task_id": "tell-six", "message": "Another event has the id 'x'."}]
        seen.append(broken.head())
        # The last one had not read all: what has ended since the one before is followed later.
        for number, (count, at) in enumerate(
            zip((15, 12, 0, 0), self._writes, strict=True), start=1
        ):
            plan = {
                "range": {"all_transitions": number < 4, "seen": {"events": seen[number - 1]}},
                "rows": count,
                "stranded": stranded if number == 2 else [],
            }
            self._keep("derived_events", number, at, plan)

    def transitions(self) -> list[dict[str, Any]]:
        """Return what has become of them."""
        found: list[dict[str, Any]] = []

        def life(
            event_id: str,
            destination: str,
            *steps: tuple[str, dict[str, Any]],
            at_last: datetime = self._ended_at,
        ) -> None:
            claims = 0
            for sequence, (step, given) in enumerate(steps, start=1):
                claims += step == CLAIM
                at: dict[str, Any] = {"destination": destination}
                at["occurred_at"] = at_last
                if "CLAIMED" in step:
                    at["claim_id"] = f"claim-{event_id}-{destination}-{claims}"
                found.append(self._broken.step(event_id, sequence, step, **at, **given))

        def ends(reason: str, outcome: str, **given: Any) -> tuple[str, dict[str, Any]]:
            return f"CLAIMED>PUBLISHED:{reason}", {"outcome": outcome, **given}

        def again(reason: str, counter: str) -> list[tuple[str, dict[str, Any]]]:
            return [
                (CLAIM, {}),
                (f"CLAIMED>PENDING:{reason}", {counter: 1}),
                (CLAIM, {"attempt": 2, counter: 1}),
            ]

        booked = ends("completed", "booked")
        anew = {"lifecycle": 1, "attempt": 0}
        life(
            "book-one",
            "carrier",
            *[(CLAIM, {}), booked],
            ("PUBLISHED>PENDING:replayed", {**anew, "actor": "me", "command_id": "command-5"}),
            (CLAIM, {"lifecycle": 1}),
            ends("completed", "booked", lifecycle=1),
        )
        life("book-two", "carrier", (CLAIM, {}), booked)
        life("book-three", "carrier", (CLAIM, {}), booked)
        twice = {"attempt": 2}
        unsure = again("unknown", "publish_attempts")
        told = ends("completed", "told", publish_attempts=1, **twice)
        life("tell-four", "post", *unsure, told)
        crashed = again("crashed", "crashes")
        life("tell-five", "post", *crashed, ends("exhausted", "default exit", crashes=1, **twice))
        life("tell-six", "post", (CLAIM, {}), ends("completed", "told"))
        life("tell-seven", "post", *crashed, ends("uncertain", "maybe_told", crashes=1, **twice))
        life("book-eleven", "carrier", (CLAIM, {}), booked)
        life("book-twelve", "carrier", (CLAIM, {}), booked)
        life("book-twelve", "post", (CLAIM, {}))  # in the same append
        lately = self._writes[-1] - timedelta(minutes=90)
        life("book-thirteen", "carrier", (CLAIM, {}), booked, at_last=lately)
        killed = {"actor": "me", "command_id": "command-6"}
        life("strange", "workflows", (CLAIM, {}), ("CLAIMED>DEAD:operator", killed))
        life(
            "review-old",
            TO_DO,
            *[(CLAIM, {}), ("CLAIMED>PENDING:released", {})],
            (CLAIM, {"attempt": 2}),
        )
        for command_id, name in {**MOVES, "command-7": "book-fourteen"}.items():
            by = {"actor": "me", "command_id": command_id}
            life(name, "carrier", (CLAIM, {}), ("CLAIMED>DEAD:operator", by))
        return found

    def _append(self, events: Iterable[NewEvent], at: datetime | None) -> None:
        rows = [
            {
                **{name: getattr(one, name) for name in ("event_id", "event_type", "payload")},
                **{name: getattr(one, name) for name in ("created_at", "ordering_key")},
                "metadata": None if one.metadata is None else list(one.metadata.items()),
                "appended_at": at,
            }
            for one in events
        ]
        instant, text = pa.timestamp("us", tz="UTC"), pa.string()
        columns = [("event_id", text), ("event_type", text), ("payload", pa.binary())]
        columns += [("created_at", instant), ("ordering_key", text)]
        columns += [("metadata", pa.map_(text, text)), ("appended_at", instant)]
        store = self._broken.store
        frame = store.spark.createDataFrame(pa.Table.from_pylist(rows, schema=pa.schema(columns)))
        frame.write.format("delta").mode("append").saveAsTable(store.tables.events)
        for row in rows:
            self._broken.arrivals[row["event_id"]] = self._broken.head()

    def _keep(self, writer: str, number: int, at: datetime, plan: dict[str, Any]) -> None:
        store = self._broken.store
        store.spark.sql(
            f"insert into {store.tables.progress} (writer, number, plan, planned_at, planned_by) "
            f"values ('{writer}', {number}, {text_literal(json.dumps(plan))}, "
            f"{instant_literal(at)}, 'test')"
        )

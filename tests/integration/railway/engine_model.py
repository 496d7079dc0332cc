"""A model of workflows that are run: relays, producers, operators, people, third parties and a
clock, in any order, with relays that die and others that go on in the middle of what one does.

What the model knows it has from what it did, from what it was told, and from the picture of each
workflow; from the engine it takes what is on record, to judge it.
"""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from hypothesis import strategies as st
from tests.integration.railway.author.categories import Looked
from tests.integration.railway.played import AUTHOR, Play, PlayedRelay, Time
from tests.unit.workflow_engine.engine_judge import WORKFLOWS, Known, path_of

from delta_outbox.api import Outbox
from delta_outbox.operations.lanes import LaneRequest, change_lanes
from delta_outbox.operations.pauses import append_pausing, pausing_request
from delta_outbox.railway import State
from delta_outbox.testing.workflows import TROUBLES, Trouble
from delta_outbox.workflow_engine.instances import Instances
from delta_outbox.workflow_engine.items import (
    AnsweredAlready,
    AnsweredTooLate,
    Items,
    UnknownItem,
)

WHO: Final[dict[str, Any]] = {"actor": "ann", "reason": "to try it"}
MOST: Final = 6  # instances of a run
SECONDS: Final = (1.0, 16.0, 40.0, 200.0, 1900.0, 3700.0, 30_000.0, 90_000.0)


class Beside:
    """The clock of one of several relays: once it is read, something else may happen meanwhile.

    Args:
        time: what all of them go by.
        meanwhile: lets something happen, or not.
    """

    def __init__(self, time: Time, meanwhile: Callable[[], None]) -> None:
        self._time, self._meanwhile = time, meanwhile
        self._thread = threading.get_ident()

    def now(self) -> datetime:
        """Return the current instant."""
        read = self._time.now()
        self._pass()
        return read

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        read = self._time.monotonic()
        self._pass()
        return read

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self._time.sleep(seconds)

    def _pass(self) -> None:
        if threading.get_ident() == self._thread:
            self._meanwhile()


class EngineModel:
    """What may happen, one step at a time.

    Args:
        play: the outbox, whose instances of earlier runs have all ended.
        prefix: of the names of this run.
        chance: of what happens in the middle of something else.
    """

    def __init__(self, play: Play, prefix: str, chance: random.Random) -> None:
        self.play, self.prefix, self.chance = play, prefix, chance
        self.operator: Outbox = play.open()
        self.operator.policies()
        self.relays: list[PlayedRelay | None] = [None, None]
        self.known: dict[str, Known] = {}
        self.paused: set[str] = set()
        self.done: list[str] = []  # what has happened, for whoever reads of a failure
        self._numbers = itertools.count()
        self._is_busy = False

    # --- what may happen -------------------------------------------------------------------------

    def possible(self) -> list[str]:
        """Return what may happen next; what is done more often, more than once."""
        names = ["go_on", "go_on", "go_on", "go_on", "go_far", "wait", "wait", "refresh"]
        if len(self.known) < MOST:
            names += ["start", "start"]
        if self.known:
            names += ["start_again", "cancel", "answer", "answer", "pause", "change_lanes"]
        if self.paused:
            names += ["resume", "resume"]
        if any(self.relays):
            names += ["die"]
        return names

    def step(self, data: st.DataObject) -> None:
        """Let something happen."""
        name = data.draw(st.sampled_from(self.possible()))
        self.done.append(name)
        getattr(self, name)(data)

    def start(self, data: st.DataObject) -> None:
        """Let instances begin, with scripts for what they will call."""
        starts: list[tuple[str, str, str]] = []
        scripts: dict[str, Sequence[Trouble]] = {}
        for _ in range(data.draw(st.integers(1, 3))):
            workflow = data.draw(st.sampled_from(["tour", "tour", *WORKFLOWS]))
            quick = data.draw(st.sampled_from(["", "quick"]))
            one = Known(workflow, f"{self.prefix}i{next(self._numbers)}{quick}")
            self.known[one.name] = one
            starts.append(self._start_of(one))
            for task in WORKFLOWS[workflow].tasks:
                for visit in (1, 2):
                    drawn = data.draw(st.lists(st.sampled_from(TROUBLES), max_size=3))
                    scripts[one.task_id(task, visit)] = drawn
        self._say(*starts)
        self.play.parties.follow(scripts)
        self.play.start(*starts)

    def start_again(self, data: st.DataObject) -> None:
        """Let an instance be asked for once more."""
        one = self._one(data)
        start = self._start_of(one)
        self._say(start[0])
        self.play.start(start)

    def go_on(self, data: st.DataObject) -> None:
        """Let a relay go on for some steps."""
        self._relay(data).go(data.draw(st.sampled_from([1, 3, 10])))

    def go_far(self, data: st.DataObject) -> None:
        """Let a relay go on as long as something is due."""
        self._relay(data).go(60)

    def die(self, data: st.DataObject) -> None:
        """Let a relay die."""
        place = data.draw(st.sampled_from([n for n, one in enumerate(self.relays) if one]))
        relay, self.relays[place] = self.relays[place], None
        assert relay is not None
        relay.die(is_proven=data.draw(st.booleans()))

    def wait(self, data: st.DataObject) -> None:
        """Let time pass."""
        seconds = data.draw(st.sampled_from(SECONDS))
        self._say(seconds)
        self.play.time.add(seconds)

    def refresh(self, data: st.DataObject) -> None:
        """Let the projection be refreshed."""
        del data
        self.operator.refresh()

    def pause(self, data: st.DataObject) -> None:
        """Pause a third party."""
        of_known = {
            task.third_party
            for one in self.known.values()
            for task in WORKFLOWS[one.workflow].tasks
            if issubclass(task, State)
        }
        party = data.draw(st.sampled_from(sorted(of_known)))
        self._say(party)
        self.paused.add(party)
        self._ask_for("pause", party)

    def resume(self, data: st.DataObject) -> None:
        """Resume a third party."""
        party = data.draw(st.sampled_from(sorted(self.paused)))
        self.paused.discard(party)
        self._ask_for("resume", party)

    def cancel(self, data: st.DataObject) -> None:
        """Cancel an instance, if it has begun and not ended."""
        one = self._one(data)
        found = self._instances(one)
        if not found:
            return
        made = Instances(self.operator).cancel(
            [one.name], workflow=one.workflow, **WHO, dry_run=False
        )
        self._say(one.name, [row["task_id"] for row in made.cancelled])
        one.cancelled |= {str(row["task_id"]) for row in made.cancelled}

    def answer(self, data: st.DataObject) -> None:
        """Answer an item, open or not; what is told about it must turn out to be true."""
        one = self._one(data)
        looks = [task for task in WORKFLOWS[one.workflow].tasks if not issubclass(task, State)]
        if not looks:
            return
        task_id = one.task_id(looks[0], data.draw(st.integers(1, 2)))
        finding = data.draw(st.sampled_from([Looked.FINE, Looked.AGAIN]))
        items = Items(self.operator, folder=AUTHOR)
        given = {"about": task_id, "finding": finding.value}
        self._say(task_id, finding.value)
        try:
            told = items.complete(task_id, given, **WHO)
        except (UnknownItem, AnsweredAlready) as error:
            self._say(type(error).__name__)
            return
        except AnsweredTooLate:
            self._say("too late")
            assert task_id not in one.answers
            return
        assert one.answers.setdefault(task_id, told.outcome) == told.outcome

    def change_lanes(self, data: st.DataObject) -> None:
        """Ask for another number of lanes."""
        lanes = data.draw(st.integers(1, 3))
        self._say(lanes)
        change_lanes(self.operator, LaneRequest(lanes=lanes, **WHO), max_wait=0)

    # --- how -------------------------------------------------------------------------------------

    def _say(self, *what: object) -> None:
        self.done.append(f"  {' '.join(map(str, what))}")

    def _one(self, data: st.DataObject) -> Known:
        return self.known[data.draw(st.sampled_from(sorted(self.known)))]

    def _start_of(self, one: Known) -> tuple[str, str, str]:
        event_id = f"start-{one.name}-{len(one.starts)}"
        one.starts.append(event_id)
        return event_id, one.workflow, json.dumps({"name": one.name})

    def _instances(self, one: Known) -> list[dict[str, Any]]:
        self.operator.refresh()
        view = self.play.store.tables["workflow_instances"]
        return self.play.store.rows(f"select * from {view} where instance = '{one.name}'")

    def _ask_for(self, kind: str, party: str) -> None:
        self.operator.policies()
        append_pausing(self.operator, pausing_request(kind, destination=party, **WHO))

    def _relay(self, data: st.DataObject) -> PlayedRelay:
        """Return a relay; begin one if there is none in its place, or if it hangs for ever."""
        place = data.draw(st.sampled_from(range(len(self.relays))))
        relay = self.relays[place]
        if relay is not None and relay.hangs():
            relay.die(is_proven=data.draw(st.booleans()))
            relay = None
        if relay is None:
            self._is_busy = True
            clock = Beside(self.play.time, partial(self._meanwhile, place))
            relay = self.relays[place] = self.play.relay(clock)
            self._is_busy = False
        self._say(f"relay {place}")
        return relay

    def _meanwhile(self, place: int) -> None:
        """Let another relay go on, or time pass, while one reads its clock."""
        if self._is_busy or self.chance.random() > 0.01:
            return
        self._is_busy = True
        others = [one for one in self.relays if one and one is not self.relays[place]]
        if others and self.chance.random() < 0.6:
            self._say("meanwhile another goes on")
            self.chance.choice(others).go(2)
        else:
            seconds = self.chance.choice(SECONDS[:4])
            self._say(f"meanwhile {seconds} s pass")
            self.play.time.add(seconds)
        self._is_busy = False

    # --- the end ---------------------------------------------------------------------------------

    def finish(self) -> None:
        """Let all come to its end, and judge what is on record."""
        self._is_busy = True
        for party in sorted(self.paused):
            self._ask_for("resume", party)
        for relay in self.relays:
            if relay is not None and relay.hangs():
                relay.die(is_proven=True)
            elif relay is not None:
                relay.end()
        self.relays = [None, None]
        try:
            self.play.run_to_the_end()
        finally:
            self.operator.close()
        self.judge()

    def judge(self) -> None:
        """Demand that what is on record is what the model knows, and what the pictures say."""
        store = self.play.store
        told = self.play.parties.told(everything=True)
        rows = store.rows(
            "select event_id, event_type, ordering_key, created_at, ordinal "
            f"from {store.tables.events} where event_id like '%{self.prefix}i%' "
            "order by _metadata.row_commit_version, ordinal"
        )
        created = {row["event_id"]: row["created_at"].astimezone(UTC) for row in rows}
        transitions: dict[str, list[dict[str, Any]]] = {}
        for row in store.transitions():
            transitions.setdefault(row["event_id"], []).append(row)
        for one in self.known.values():
            its = [
                (row["event_id"], row["event_type"])
                for row in rows
                if one.key in (row["ordering_key"], row["event_id"])
            ]
            assert path_of(one, transitions, told, created) == its, one
        self._check_starts()

    def _check_starts(self) -> None:
        """Demand that each second start is told, and nothing else of this run."""
        store = self.play.store
        ignored = store.rows(
            f"select event_id, why from {store.tables['ignored_starts']} "
            f"where event_id like 'start-{self.prefix}i%'"
        )
        expected = [(one, "second_start") for known in self.known.values() for one in known.starts]
        firsts = {known.starts[0] for known in self.known.values()}
        assert sorted(one for one in expected if one[0] not in firsts) == sorted(
            (row["event_id"], row["why"]) for row in ignored
        )

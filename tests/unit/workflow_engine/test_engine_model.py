"""What decides in the engine, whatever relays, operators, people and third parties do."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.unit.workflow_engine.engine_judge import WORKFLOWS, Known, path_of
from tests.unit.workflow_engine.simulated_engine import (
    Engine,
    RelayDied,
    SimulatedRelay,
    run_to_the_end,
)

from delta_outbox.lifecycle.states import State as DeliveryState
from delta_outbox.railway import Event, State
from delta_outbox.testing.workflows import TROUBLES
from delta_outbox.workflow_engine.derivation.moves import LateAnswer, Move, OtherVersion

RUNS = int(os.environ.get("OUTBOX_ENGINE_RUNS", "50"))
MOST = 4  # instances of a run
SECONDS = st.sampled_from([1.0, 16.0, 31.0, 181.0, 181.0, 3700.0, 90_000.0])
FINDINGS = st.sampled_from(["again", "fine", None])
PLACES = st.integers(0, 1)
STEPS = st.lists(st.integers(0, 3), max_size=5)
SCRIPTS = st.lists(st.sampled_from(TROUBLES), max_size=4)


class EngineMachine(RuleBasedStateMachine):
    """The steps: of two relays, of whoever derives, of operators and people, and of the clock."""

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.scripts: dict[str, Any] = {}
        self.findings: dict[str, str] = {}  # that people give, by item
        self.engine = Engine(self.scripts)
        self.known: dict[str, Known] = {}
        self.lives = 2
        self.relays = [SimulatedRelay(self.engine, f"relay-{number}") for number in range(2)]
        self.start(data, "tour")

    @precondition(lambda self: len(self.known) < MOST)
    @rule(data=st.data(), workflow=st.sampled_from(sorted(WORKFLOWS)))
    def start(self, data: st.DataObject, workflow: str) -> None:
        quick = data.draw(st.sampled_from(["", "quick"]))
        one = Known(workflow, f"i{len(self.known)}{quick}")
        self.known[one.name] = one
        for task in WORKFLOWS[workflow].tasks:
            for visit in (1, 2):
                task_id = one.task_id(task, visit)
                if issubclass(task, State):
                    self.scripts[task_id] = data.draw(SCRIPTS)
                elif finding := data.draw(FINDINGS):
                    self.findings[task_id] = finding
        self.engine.start(one, json.dumps({"name": one.name}).encode())

    @rule(data=st.data())
    def start_again(self, data: st.DataObject) -> None:
        one = self.known[data.draw(st.sampled_from(sorted(self.known)))]
        self.engine.start(one, json.dumps({"name": one.name}).encode())

    @rule(place=PLACES)
    def go_far(self, place: int) -> None:
        """Let a relay do all that is due, and record it."""
        self.go_on(place, most=MOST, steps=[0] * 40, expires=True)
        self.relays[place].record()

    @rule(place=PLACES, most=st.integers(1, MOST), steps=STEPS, expires=st.booleans())
    def go_on(self, place: int, most: int, steps: list[int], expires: bool) -> None:
        """Let a relay look at the logs, claim, and make some calls."""
        self.engine.derive()
        if expires:
            self.engine.expire()
        relay = self.relays[place]
        relay.claim(most)
        try:
            for which in steps:
                if relay.attempts:
                    relay.step(which % len(relay.attempts))
        except RelayDied:
            self.die(place)

    @rule(place=PLACES)
    def record(self, place: int) -> None:
        self.relays[place].record()

    @rule(place=PLACES)
    def die(self, place: int) -> None:
        self.relays[place] = SimulatedRelay(self.engine, f"relay-{self.lives}")
        self.lives += 1

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        self.engine.clock.pass_for(timedelta(seconds=seconds))

    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        """Let an operator end an instance."""
        one = self.known[data.draw(st.sampled_from(sorted(self.known)))]
        for task_id in self._open_of(one):
            one.killed.setdefault(task_id, None)
            self.engine.kill(task_id)

    @rule(data=st.data(), is_late=st.booleans())
    def move(self, data: st.DataObject, is_late: bool) -> None:
        """Let an operator move an instance: by a late answer, or to another task."""
        one = self.known[data.draw(st.sampled_from(sorted(self.known)))]
        routing = self.engine.versions[one.workflow].routing
        for task_id in self._open_of(one):
            place = self.engine.log.task(task_id).place
            # A task without {visit} in its identifier cannot be come to again.
            tasks = (
                {*routing.tasks}
                if one.workflow == "tour"
                else {*routing.tasks} - place.visits.keys()
            )
            to: Move | None = None
            if is_late:
                task = data.draw(st.sampled_from(sorted(place.visits)))
                outcomes = {
                    str(outcome)
                    for route in WORKFLOWS[one.workflow].routes
                    for outcome, after in route.to.items()
                    if route.task.task_name() == task
                    and (isinstance(after, Event) or after.task_name() in tasks)
                }
                if outcomes:
                    outcome = data.draw(st.sampled_from(sorted(outcomes)))
                    late_id = f"late-{len(self.engine.log.rows)}"
                    to = LateAnswer(task_id=late_id, task=task, outcome=outcome)
            elif tasks:
                to = OtherVersion(plan=1, task=data.draw(st.sampled_from(sorted(tasks))))
            if to is not None:
                said = {"late": asdict(to)} if isinstance(to, LateAnswer) else {"to": asdict(to)}
                one.killed.setdefault(task_id, to)
                self.engine.kill(task_id, json.dumps(said))

    @rule()
    def answer(self) -> None:
        """Let people answer what is open, each as it was drawn for the item."""
        for one in self.known.values():
            for task_id in self._open_of(one):
                finding = self.findings.get(task_id)
                outcome = finding and self.engine.answer(task_id, finding)
                if outcome:
                    one.answers[task_id] = outcome

    def _open_of(self, one: Known) -> list[str]:
        key = one.key
        return [
            task.task_id
            for task in self.engine.log.tasks()
            if task.key == key
            and self.engine.deliveries[task.task_id].state
            in (DeliveryState.PENDING, DeliveryState.CLAIMED)
        ]

    def teardown(self) -> None:
        if not hasattr(self, "engine"):
            return
        run_to_the_end(self.engine, self.answer)
        told, log = self.engine.told(), self.engine.log
        keys = {task.task_id: task.key for task in log.tasks()}
        created = {task.task_id: task.created_at for task in log.tasks()}
        for one in self.known.values():
            its = [
                (row.event_id, row.event_type)
                for row in log.rows.values()
                if one.key in (row.event_id, keys.get(row.event_id))
            ]
            assert path_of(one, self.engine.transitions, told, created) == its
        seconds = {name for one in self.known.values() for name in one.starts[1:]}
        assert {(name, "second_start") for name in seconds} == set(self.engine.ignored)


def test_no_promise_is_broken() -> None:
    """Whatever happens between any two calls, each task ends once and as it may, what follows is
    what its picture says, and no third party has done more than its category allows.
    """
    run_state_machine_as_test(
        EngineMachine,
        settings=settings(
            max_examples=RUNS,
            derandomize="OUTBOX_ENGINE_RUNS" not in os.environ,  # by chance in `make soak`
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

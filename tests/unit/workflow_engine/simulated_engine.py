"""The engine without Spark and without processes: what decides in it is the code that ships, and
the logs, the hosts and the time are a test's. Each call is a step, so anything may come between.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from tests.unit.workflow_engine import categories
from tests.unit.workflow_engine.derived_log import NOW, DerivedLog, plan
from tests.unit.workflow_engine.engine_judge import UNSURE, WORKFLOWS, Known
from tests.unit.workflow_engine.scripted_parties import ALONE, Party

from delta_outbox.core.clock import boot_time
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.core.tables import Tables
from delta_outbox.lifecycle.endings import (
    Counters,
    EndOfClaim,
    LeaseExpired,
    counters_at_claim,
    decide_ending,
)
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.states import OUTCOME_REASONS, Reason, State
from delta_outbox.railway import Item, ToDo, Trigger
from delta_outbox.railway.algorithms.steps import Rules
from delta_outbox.railway.author_decisions import is_ours
from delta_outbox.testing.workflows import Trouble, VirtualClock
from delta_outbox.testing.workflows.third_parties import WorkerDied
from delta_outbox.workflow_engine.derivation.events import StartEvent, TaskEvent
from delta_outbox.workflow_engine.derivation.follow_ups import Ended
from delta_outbox.workflow_engine.execution.attempt_requests import attempt_request
from delta_outbox.workflow_engine.execution.attempt_results import attempted, expired
from delta_outbox.workflow_engine.execution.histories import Histories, Transition
from delta_outbox.workflow_engine.execution.task_policies import task_policies
from delta_outbox.workflow_engine.hosts.answers import encoded, told
from delta_outbox.workflow_engine.hosts.attempts import AttemptReport, AttemptRequest, AttemptRun
from delta_outbox.workflow_engine.hosts.call import (
    DECISIONS,
    Answered,
    Call,
    Lost,
    NotStarted,
    TaskFacts,
    Word,
)

MARGIN: Final = timedelta(seconds=10)  # of a lease, for the way back
MOST_ROUNDS: Final = 2000


class RelayDied(Exception):
    """A relay is gone, in the middle of a call."""


@dataclass(kw_only=True)
class Delivery:
    """Where a task stands.

    Args:
        state: of it.
        counters: of its last transition.
        available_at: before it nobody claims it.
        claim_id: of its claim.
        holder: of its claim.
        lease_ends: of its claim.
        is_killed: an operator has asked for its end.
        command: what the first of these commands says, as JSON.
    """

    state: State = State.PENDING
    counters: Counters = field(default_factory=Counters)
    available_at: datetime | None = None
    claim_id: str | None = None
    holder: str | None = None
    lease_ends: datetime | None = None
    is_killed: bool = False
    command: str | None = None


class _Time:
    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now

    def monotonic(self) -> float:
        return self._clock.elapsed.total_seconds()

    def sleep(self, seconds: float) -> None:
        raise AssertionError(f"nobody sleeps here, not for {seconds} s")


class _Word:
    """What becomes of a call: it is made once somebody lets the attempt go on."""

    def __init__(self, call: Call) -> None:
        self.call = call

    def __await__(self) -> Generator[Call, Word, Word]:
        return (yield self.call)


class _Running:
    def __init__(self, call: Call) -> None:
        self.word = _Word(call)

    def cut(self) -> None:
        raise AssertionError("nobody cuts here")


class _Hosts:
    """A host that takes any call at once."""

    async def host(self, *, alone: bool, until: float, wanted: Callable[[], bool]) -> Any:
        return self

    def begin(self, call: Call, *, limit: float, acts: bool) -> _Running:
        return _Running(call)


class _Histories(Histories):
    """Histories that are read from the log of the test."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(None, Tables(schema="s"), clock=engine.time)  # type: ignore[arg-type]
        self._engine = engine

    def _read(self, asked: list[str], *, since: datetime) -> dict[str, list[Transition]]:
        return {
            one: [
                Transition(**{name: row[name] for name in Transition.__dataclass_fields__})
                for row in self._engine.transitions[one]
            ]
            for one in asked
        }


class Engine:
    """The logs, the third parties, and whoever derives.

    Args:
        scripts: what goes wrong, by key.
    """

    def __init__(self, scripts: Mapping[str, Sequence[Trouble]]) -> None:
        self.clock = VirtualClock(NOW)
        self.time = _Time(self.clock)
        self.scripts = scripts
        self.parties: dict[str, Party] = {}
        self.log = DerivedLog(plan(1, *WORKFLOWS.values()))
        self.versions = self.log.plans[1].versions
        self.policies = PolicySet(policies=(), tasks=task_policies([self.log.plans[1]]))
        self.deliveries: dict[str, Delivery] = {}
        self.transitions: dict[str, list[dict[str, Any]]] = {}
        self.ignored: list[tuple[str, str]] = []
        self.claims = 0
        self._arrivals = self._appends = 0
        self._starts: list[StartEvent] = []
        self._ended: list[Ended] = []
        self.tasks = {one: self._made(one) for wf in WORKFLOWS.values() for one in wf.tasks}

    def _made(self, task: Any) -> Any:
        return task() if issubclass(task, ToDo) else task(self._client(task.third_party))

    def _client(self, name: str) -> Any:
        engine = self

        class Client:
            def __getattr__(self, method: str) -> Any:
                return lambda key, *given: getattr(engine.party(name, key), method)(key, *given)

        return Client()

    def party(self, name: str, key: str) -> Party:
        """Return the third party of a key."""
        if key not in self.parties:
            self.parties[key] = Party(self.scripts.get(key, ()), party=name)
            self.parties[key].clock = self.clock
        return self.parties[key]

    def told(self) -> dict[str, dict[str, Any]]:
        """Return what the third parties have written down, in the end."""
        self.clock.pass_everything()
        return {key: one.told for key, one in self.parties.items()}

    # --- the logs --------------------------------------------------------------------------------

    def start(self, one: Known, payload: bytes) -> None:
        """Append a start event."""
        self._arrivals += 1
        one.starts.append(f"start-{one.name}-{len(one.starts)}")
        self._starts.append(
            StartEvent(
                event_id=one.starts[-1],
                event_type=f"{one.workflow}.asked",
                payload=payload,
                since=self.clock.now,
                arrival=self._arrivals,
            )
        )

    def derive(self) -> None:
        """Write what follows, and see that the same news make nothing more."""
        news = self._starts, self._ended
        self._starts, self._ended = [], []
        written = self.log.write(*news)
        assert not written.stranded
        self.ignored += [(one.event_id, one.why) for one in written.ignored]
        assert not self.log.follows(*news).rows
        for one in self.log.tasks():
            self.deliveries.setdefault(one.task_id, Delivery())
            self.transitions.setdefault(one.task_id, [])

    def append(self, task_id: str, to: State, reason: Reason, **given: Any) -> None:
        """Append a transition of a task."""
        self._appends += 1
        now = self.clock.now
        row = {"outcome": None, "outcome_data": None, "receipt": None, **given}
        row |= {"event_id": task_id, "to_state": to, "reason": reason, "occurred_at": now}
        self.transitions[task_id].append(row)
        if to is State.DEAD or reason in OUTCOME_REASONS:
            self._ended.append(
                Ended.read(
                    self.log.task(task_id),
                    reason,
                    row["outcome"],
                    row["outcome_data"],
                    now,
                    (0, 0, self._appends),
                    command=self.deliveries[task_id].command,
                    may_have_acted=self.may_have_acted(task_id),
                )
            )

    def may_have_acted(self, task_id: str) -> bool:
        """Say whether an attempt of a task without a known result is on record."""
        if isinstance(self.task_of(self.log.task(task_id)), ToDo):
            return False
        return any(row["reason"] in UNSURE for row in self.transitions[task_id])

    def claim(self, task_id: str, holder: str, until: datetime) -> str:
        """Claim a task that is open."""
        self.claims += 1
        one = self.deliveries[task_id]
        one.state, one.claim_id, one.holder = State.CLAIMED, f"claim-{self.claims}", holder
        one.lease_ends, one.counters = until, counters_at_claim(one.counters)
        self.append(task_id, State.CLAIMED, Reason.CLAIMED)
        return one.claim_id

    def end(self, task_id: str, claim_id: str, result: EndOfClaim) -> bool:
        """End a claim, and say whether that counts: of one that has ended already it is void."""
        one = self.deliveries[task_id]
        if (one.state, one.claim_id) != (State.CLAIMED, claim_id):
            return False
        task = self.log.task(task_id)
        ending = decide_ending(
            counters=one.counters,
            result=result,
            claim_size=1,
            policy=self.policies.match(self.log.rows[task_id].event_type),
            now=self.clock.now,
            started_at=task.created_at,
            jitter=0.0,
        )
        one.state, one.counters = ending.to_state, ending.counters
        one.available_at, one.claim_id, one.holder = ending.available_at, None, None
        self.append(
            task_id,
            ending.to_state,
            ending.reason,
            outcome=ending.outcome,
            outcome_data=ending.outcome_data,
            receipt=ending.receipt,
        )
        return True

    def expire(self) -> None:
        """End the claims whose leases are over, also those of items."""
        for task_id, one in self.deliveries.items():
            if one.state is State.CLAIMED and one.lease_ends and one.lease_ends <= self.clock.now:
                assert one.claim_id is not None
                self.end(task_id, one.claim_id, LeaseExpired())

    def due(self) -> list[str]:
        """Return the tasks that may be claimed."""
        now = self.clock.now
        return [
            task_id
            for task_id, one in self.deliveries.items()
            if one.state is State.PENDING and (one.available_at is None or one.available_at <= now)
        ]

    def is_over(self) -> bool:
        """Say whether nothing is open, and nothing follows."""
        ended = (State.PUBLISHED, State.DEAD)
        done = all(one.state in ended for one in self.deliveries.values())
        return done and not (self._starts or self._ended)

    def next_moment(self) -> datetime:
        """Return when something may go on, of what is open and waits."""
        moments = [
            at
            for one in self.deliveries.values()
            for at in (one.available_at, one.lease_ends)
            if one.state in (State.PENDING, State.CLAIMED) and at and at > self.clock.now
        ]
        assert moments, "something is open, and nobody waits for anything"
        return min(moments)

    # --- operators and people --------------------------------------------------------------------

    def kill(self, task_id: str, command: str | None = None) -> None:
        """End a task, at once or when it is open again.

        Args:
            task_id: its identifier.
            command: the arguments: where the instance goes on; None for the default exit.
        """
        one = self.deliveries[task_id]
        if not one.is_killed:
            one.is_killed, one.command = True, command
        if one.state is State.CLAIMED and one.holder == TO_DO:
            one.state, one.claim_id = State.DEAD, None
            self.append(task_id, State.DEAD, Reason.OPERATOR)

    def answer(self, task_id: str, finding: str) -> str | None:
        """Answer an item; return the outcome, None if that does not count."""
        one = self.deliveries[task_id]
        if one.state is not State.CLAIMED or one.holder != TO_DO:
            return None
        assert one.lease_ends is not None
        if one.lease_ends < self.clock.now:
            return None
        event = self.log.task(task_id)
        task = self.task_of(event)
        data = task.contract(about=task_id, finding=finding)
        assert task.correlate(data) == task_id
        model = task.read_model(self.trigger(event))
        decided = task.decide(
            Item(task_id=task_id, read_model=model, due_at=None, expires_at=one.lease_ends), data
        )
        one.state, one.claim_id = State.PUBLISHED, None
        self.append(task_id, State.PUBLISHED, Reason.COMPLETED, outcome=decided.outcome)
        return str(decided.outcome)

    def task_of(self, event: TaskEvent) -> Any:
        """Return the object of a task."""
        workflow = WORKFLOWS[event.workflow]
        (found,) = [one for one in workflow.tasks if one.task_name() == event.place.task]
        return self.tasks[found]

    def trigger(self, event: TaskEvent) -> Trigger[Any]:
        """Return what triggers a task."""
        return Trigger(
            instance=event.instance,
            start=WORKFLOWS[event.workflow].parse(event.origin.payload),
            visit=event.place.visit,
            facts=event.place.facts,
        )


@dataclass(kw_only=True)
class _Attempt:
    task_id: str
    claim_id: str
    claimed: pa.Table  # the task before its claim
    request: AttemptRequest
    no_call_after: datetime
    run: Generator[Call, Word, AttemptReport]
    call: Call | None = None
    report: AttemptReport | None = None

    def go_on(self, word: Word | None) -> None:
        try:
            self.call = self.run.send(word)  # type: ignore[arg-type]
        except StopIteration as done:
            self.report = done.value


class SimulatedRelay:
    """A relay: it claims, attempts, decides and records, each when it is told to.

    Args:
        engine: the logs.
        name: of the relay.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine, self.name = engine, name
        self.attempts: list[_Attempt] = []
        self.decided: list[tuple[str, str, EndOfClaim]] = []
        self._histories = _Histories(engine)

    def claim(self, most: int) -> None:
        """Claim tasks that are due, and begin their attempts."""
        for task_id in self.engine.due()[:most]:
            self._claim(task_id)

    def _claim(self, task_id: str) -> None:
        engine, now = self.engine, self.engine.clock.now
        one, event = engine.deliveries[task_id], engine.log.task(task_id)
        routing = engine.versions[event.workflow].routing
        task = engine.task_of(event)
        policy = engine.policies.match(engine.log.rows[task_id].event_type)
        lease = timedelta(seconds=policy.lease_seconds)
        counted = {
            "attempts": one.counters.attempt,
            "publish_attempts": one.counters.publish_attempts,
            "crashes": one.counters.crashes,
        }
        row = {"event_id": task_id, "created_at": event.created_at, **counted}
        claimed = pa.Table.from_pylist([row])
        is_item = isinstance(task, ToDo)
        if is_item and not one.is_killed and event.expires_at and event.expires_at > now:
            engine.claim(task_id, TO_DO, event.expires_at)
            return
        claim_id = engine.claim(task_id, self.name, now + lease)
        if one.is_killed:
            one.state, one.claim_id = State.DEAD, None
            engine.append(task_id, State.DEAD, Reason.OPERATOR)
            return
        if is_item:
            self.decided.append((task_id, claim_id, expired(routing, event.place.task)))
            return
        history = self._histories.of(claimed, {task_id: event.created_at})[task_id]
        facts = TaskFacts(
            category=task.category,
            third_party=task.third_party,
            asynchronous=False,
            can_look_up=Rules.of(type(task)).can_look_up,
            decides=[name for name in DECISIONS if not is_ours(task, name)],
        )
        request = attempt_request(
            event, routing, facts, history.claimed(now), until=boot_time() + 1e6
        )
        run = AttemptRun(request, facts, _Hosts(), engine.time, alone=False).run()
        attempt = _Attempt(
            task_id=task_id,
            claim_id=claim_id,
            claimed=claimed,
            request=request,
            no_call_after=now + lease - MARGIN - request.limits.time_limit,
            run=run,  # type: ignore[arg-type]
        )
        attempt.go_on(None)
        self.attempts.append(attempt)

    def step(self, place: int) -> None:
        """Let the next call of an attempt be made, and decide how it ends if that was the last.

        Raises:
            RelayDied: in the middle of it.
        """
        attempt = self.attempts[place]
        if attempt.report is None:
            assert attempt.call is not None
            attempt.go_on(self._word(attempt, attempt.call))
        if attempt.report is not None:
            self.attempts.remove(attempt)
            self._decide(attempt, attempt.report)

    def _word(self, attempt: _Attempt, call: Call) -> Word:
        engine = self.engine
        if call.function not in DECISIONS and engine.clock.now >= attempt.no_call_after:
            return NotStarted("its deadline has passed")
        event = engine.log.task(attempt.task_id)
        task, trigger = engine.task_of(event), engine.trigger(event)
        given: Sequence[Any] = (trigger, call.task_id, *call.more)
        if call.function == "back_off":
            given = (*call.more, trigger, call.task_id, None)
        try:
            value = getattr(task, call.function)(*given)
            if hasattr(value, "send"):
                value = _waited(value)
            return Answered(encoded(call, task, value))
        except WorkerDied:
            if task.third_party in ALONE:
                return Lost("its host died", host_gone=True)
            raise RelayDied from None
        except Exception as error:  # noqa: BLE001 - as a host does
            return told(call, error)

    # As `Tasks._end` does.
    def _decide(self, attempt: _Attempt, report: AttemptReport) -> None:
        request, now = attempt.request, self.engine.clock.now
        routing = self.engine.versions[request.workflow].routing
        after = request.history.ended(report.ending, request.limits, now)
        if not report.ending.final:
            self._histories.keep(attempt.claimed, report.ending.reason, after)
        result = attempted(report, routing, request.task, after, now=now)
        self.decided.append((attempt.task_id, attempt.claim_id, result))

    def record(self) -> None:
        """Put on record what is decided."""
        decided, self.decided = self.decided, []
        for task_id, claim_id, result in decided:
            self.engine.end(task_id, claim_id, result)


def _waited(value: Any) -> Any:
    try:
        value.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for something")


def run_to_the_end(engine: Engine, people: Callable[[], None]) -> None:
    """Let relays go on, one after the other, until nothing is open; time passes meanwhile.

    Args:
        engine: the logs.
        people: answers what is open.
    """
    relay = SimulatedRelay(engine, "last-0")
    for number in range(MOST_ROUNDS):
        engine.derive()
        if engine.is_over():
            return
        people()
        engine.expire()
        relay.claim(100)
        if not (relay.attempts or relay.decided):
            engine.derive()
            if not engine.is_over() and not engine.due():
                engine.clock.pass_until(engine.next_moment())
            continue
        try:
            while relay.attempts:
                relay.step(0)
        except RelayDied:
            relay = SimulatedRelay(engine, f"last-{number + 1}")
        relay.record()
    raise AssertionError("it does not come to an end")


__all__ = ["Engine", "RelayDied", "SimulatedRelay", "categories", "run_to_the_end"]

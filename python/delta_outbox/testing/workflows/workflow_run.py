"""Runs an instance of a workflow to its end, with people who answer as the test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from delta_outbox.railway import Decided, Exit, Item, Never, State, Task, ToDo, Trigger
from delta_outbox.railway.graph import Event, Graph, values_of
from delta_outbox.railway.names import duration
from delta_outbox.railway.routing import Facts, Place, Routing, TaskEnding, facts_after
from delta_outbox.railway.rows import rows_of_routes
from delta_outbox.testing.workflows.clock import VirtualClock
from delta_outbox.testing.workflows.errors import KitError
from delta_outbox.testing.workflows.inputs import check_object, check_third_parties
from delta_outbox.testing.workflows.promises import BrokenPromise, broken_promises
from delta_outbox.testing.workflows.task_run import TaskRun, moment, run_task
from delta_outbox.testing.workflows.third_parties import ThirdParty
from delta_outbox.testing.workflows.trace import Line, table

MOST_TASKS = 1_000


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What somebody answers to a To-Do item, and when.

    Args:
        task: the class of the item.
        data: the answer, or a function that makes it of the task identifier.
        after: how long after the item was opened.
    """

    task: type[ToDo[Any, Any, Any, Any]]
    data: BaseModel | Callable[[str], BaseModel]
    after: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class Passed:
    """A task that an instance has passed.

    Args:
        task: its name.
        task_id: its identifier.
        cause: `decided`, `faulted`, `expired` or `uncertain`.
        outcome: what was decided, None for the default exit.
        run: of a task that calls a third party.
        item: of a To-Do.
    """

    task: str
    task_id: str
    cause: str
    outcome: str | None
    run: TaskRun | None = None
    item: Item[Any] | None = None


@dataclass(kw_only=True)
class WorkflowRun:
    """What became of an instance.

    Args:
        instance: its identifier.
        passed: the tasks, in order.
        end: event type that ended it; None while somebody has to answer.
        waits_for: the open item, None once it has ended.
        facts: by task, the data of its latest decision.
        lines: what happened.
    """

    instance: str
    passed: list[Passed] = field(default_factory=list)
    end: str | None = None
    waits_for: Item[Any] | None = None
    facts: Facts = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

    @property
    def path(self) -> list[str]:
        """Return the names of the tasks that were passed."""
        return [one.task for one in self.passed]

    @property
    def trace(self) -> str:
        """Return what happened, as a table."""
        return table(self.lines)


def run_workflow(
    workflow: Graph[Any],
    tasks: Sequence[Task[Any, Any]],
    start: Any,
    *,
    people: Sequence[Answer] = (),
    third_parties: Sequence[ThirdParty] = (),
    event_id: str = "event-1",
    clock: VirtualClock | None = None,
    spare_answers: bool = False,
) -> WorkflowRun:
    """Run an instance to its end, or until it waits for somebody who does not answer.

    Args:
        workflow: to run.
        tasks: one of each class, with its clients.
        start: the start event.
        people: what is answered to To-Do items; answers to one task are given in this order.
        third_parties: scripted ones.
        event_id: of the start event.
        clock: one that others use too; a new one if left out.
        spare_answers: whether there may be answers for which no item comes, as where people are
            drawn at random.

    Raises:
        BrokenPromise: a task did what its category may never do; with the trace.
        KitError: a task or a third party is missing, an answer does not fit or no item comes for
            it, or the instance goes round and round.
    """
    for task in tasks:
        check_object("tasks", task, Task)
    check_object("start", start, workflow.start)
    for answer in people:
        check_object("people", answer, Answer)
        if answer.task not in workflow.tasks:
            raise KitError(
                f"An answer is for {answer.task!r}, which is no class among the tasks of "
                f"{workflow.name}: write `Answer(task=Class, ...)` with one of them."
            )
        after: object = answer.after
        if not isinstance(after, timedelta) or after < timedelta(0):
            raise KitError(
                f"The answer for {answer.task.__name__} comes after {answer.after!r}: "
                "write `after=timedelta(...)`, not negative."
            )
    check_third_parties(tasks, third_parties)
    clock = clock or VirtualClock()
    for one in third_parties:
        one.clock = clock
    made = {type(one): one for one in tasks}
    missing = [one.__name__ for one in workflow.tasks if one not in made]
    if missing:
        raise KitError(f"{workflow.name}: no {', '.join(missing)} among the tasks.")
    named = {one.task_name(): made[one] for one in workflow.tasks}
    instance = _Instance(workflow, named, start, event_id, list(people), third_parties, clock)
    ended = instance.checked(instance.run())
    if instance.people and not spare_answers:
        spare = ", ".join(dict.fromkeys(one.task.__name__ for one in instance.people))
        raise KitError(
            f"{ended.instance} came to no item for {len(instance.people)} of the answers of "
            f"`people`: {spare}. Leave them out, or see by the trace why.\n{ended.trace}"
        )
    return ended


class _Instance:
    def __init__(
        self,
        workflow: Graph[Any],
        tasks: Mapping[str, Task[Any, Any]],
        start: Any,
        event_id: str,
        people: list[Answer],
        third_parties: Sequence[ThirdParty],
        clock: VirtualClock,
    ) -> None:
        self.workflow, self.tasks, self.start = workflow, tasks, start
        self.people, self.third_parties, self.clock = people, third_parties, clock
        self.routing = Routing(rows_of_routes(workflow), workflow.name)
        self.run_of = WorkflowRun(instance=self.routing.instance(values_of(start), event_id))

    def run(self) -> WorkflowRun:
        place = self.routing.first()
        for _ in range(MOST_TASKS):
            ending = self.pass_through(self.tasks[place.task], place)
            if ending is None:
                return self.run_of
            self.run_of.facts = facts_after(place, ending)
            target = self.routing.after(place, ending)
            if isinstance(target, Event):
                self.run_of.end = target.event_type
                self.say(self.workflow.name, f"ends with {target.event_type}")
                return self.run_of
            place = target
        raise KitError(
            f"{self.run_of.instance} has passed {MOST_TASKS} tasks and has not ended.\n"
            f"{table(self.run_of.lines[-20:])}"
        )

    def checked(self, run_of: WorkflowRun) -> WorkflowRun:
        """Let what is under way come to its end, and read the ledgers."""
        self.clock.pass_everything()
        for one in run_of.passed:
            broken = list(broken_promises(one.run, self.third_parties)) if one.run else []
            if broken:
                raise BrokenPromise("\n".join([f"{one.task_id}:", *broken, "", run_of.trace]))
        return run_of

    def say(self, task: str, what: str) -> None:
        self.run_of.lines.append(Line(at=self.clock.elapsed, task=task, what=what))

    def pass_through(self, task: Task[Any, Any], place: Place) -> TaskEnding | None:
        trigger = Trigger(
            instance=self.run_of.instance,
            start=self.start,
            visit=place.visit,
            facts=dict(place.facts),
        )
        if isinstance(task, ToDo):
            return self.answered(task, trigger)
        assert isinstance(task, State)
        return self.called(task, trigger)

    def called(self, task: State[Any, Any], trigger: Trigger[Any]) -> TaskEnding:
        run = run_task(self.workflow, task, trigger, self.third_parties, clock=self.clock)
        self.run_of.lines += run.lines
        chosen = run.outcome if run.cause in ("decided", "faulted") else None
        ending = TaskEnding(cause=run.cause, outcome=chosen, data=run.data)
        self.passed(task, run.task_id, ending, run=run)
        return ending

    def passed(
        self, task: Task[Any, Any], task_id: str, ending: TaskEnding, **more: TaskRun | Item[Any]
    ) -> None:
        name = task.task_name()
        outcome = self.routing.outcome(name, ending)
        member = None if isinstance(outcome, Exit) else str(outcome)
        passed: Any = {"task": name, "task_id": task_id, "cause": ending.cause, **more}
        self.run_of.passed.append(Passed(outcome=member, **passed))

    def answered(self, task: ToDo[Any, Any, Any, Any], trigger: Trigger[Any]) -> TaskEnding | None:
        task_id = self.workflow.task_id(type(task), trigger)
        span = None if isinstance(task.expires, Never) else task.expires
        item: Item[Any] = Item(
            task_id=task_id,
            read_model=task.read_model(trigger),
            due_at=moment(self.clock, task.due),
            expires_at=moment(self.clock, span),
        )
        self.say(task.business_name(), f"waits for {' or '.join(sorted(task.roles))}")
        answer = next((one for one in self.people if one.task is type(task)), None)
        if answer is not None and (span is None or answer.after < span):
            self.people.remove(answer)
            self.clock.pass_for(answer.after)
            ending = self.decided(task, item, answer)
        elif span is None:
            self.run_of.waits_for = item
            self.say(task.business_name(), "nobody answers, and it never expires")
            return None
        else:
            if answer is not None:
                self.people.remove(answer)
                late = duration(answer.after)
                self.say(task.business_name(), f"the answer comes too late, after {late}")
            self.clock.pass_for(span)
            self.say(task.business_name(), f"expires after {duration(span)}")
            ending = TaskEnding(cause="expired")
        self.passed(task, task_id, ending, item=item)
        return ending

    def decided(
        self, task: ToDo[Any, Any, Any, Any], item: Item[Any], answer: Answer
    ) -> TaskEnding:
        data = answer.data(item.task_id) if callable(answer.data) else answer.data
        if not isinstance(data, task.contract):
            name = task.contract.__name__
            raise KitError(f"{item.task_id}: `data` is {data!r}; give an object, `{name}(...)`.")
        # As it would arrive: through JSON, checked against the contract.
        data = task.contract.model_validate_json(data.model_dump_json())
        about = task.correlate(data)
        if about != item.task_id:
            raise KitError(
                f"{item.task_id}: `correlate` says that the answer is about "
                f"{'no item' if about is None else repr(about)}. "
                "It must return the task identifier, with its visit."
            )
        decided: Any = task.decide(item, data)
        if not isinstance(decided, Decided) or not isinstance(decided.outcome, task.outcomes()):
            raise KitError(f"{item.task_id}: decided {decided!r}, which it cannot.")
        self.say(task.business_name(), f"is answered: {decided.outcome}")
        return TaskEnding(cause="decided", outcome=decided.outcome, data=dict(decided.data))

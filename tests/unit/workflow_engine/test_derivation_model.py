"""Drawn workflows, news in any order and repeated: what follows is what the picture says."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.railway.drawn import graphs
from tests.unit.workflow_engine.derived_log import NOW, DerivedLog, plan

from delta_outbox.railway.checks import problems_of
from delta_outbox.railway.graph import Event, Graph
from delta_outbox.railway.outcomes import DEFAULT_EXIT
from delta_outbox.railway.routing import TaskEnding
from delta_outbox.workflow_engine.derivation.events import NewEvent, StartEvent
from delta_outbox.workflow_engine.derivation.follow_ups import Ended, follow
from delta_outbox.workflow_engine.derivation.starts import WhyIgnored

PARCELS = ("a", "b", "c")
HOUR = timedelta(hours=1)


def sound(workflow: Graph[Any]) -> bool:
    """Say whether a workflow keeps every rule."""
    return all(one.warning for one in problems_of(workflow))


@dataclass
class Instance:
    """An instance as the picture has it, and what was written of it: written by hand, once more.

    Args:
        workflow: its picture.
        plan: by which it has begun.
        begun_by: id of its start event.
        task: at which it stands, None once it has ended.
        since: when it has come there.
        visits: by task.
        facts: by task.
        rows: that it has: id, event type, instant, facts.
        ending: of the task at which it stands, which nothing has followed yet.
    """

    workflow: Graph[Any]
    plan: int
    begun_by: str
    task: Any
    since: datetime
    visits: Counter[str] = field(default_factory=Counter)
    facts: dict[str, Any] = field(default_factory=dict)
    rows: list[tuple[str, str, datetime, dict[str, Any]]] = field(default_factory=list)
    ending: Any = None

    def come_to(self, parcel: str, task: Any) -> None:
        """Come to a task."""
        name = task.task_name()
        self.task, self.ending = task, None
        self.visits[name] += 1
        task_id = f"drawn-{name}-{parcel}-{self.visits[name]}"
        self.rows.append((task_id, f"workflow:drawn/{name}", self.since, dict(self.facts)))

    def go_on(self, parcel: str) -> None:
        """Go where the ending leads."""
        leg, self.since, data = self.ending
        if leg.cause == "decided":
            self.facts[leg.task.task_name()] = data
        if isinstance(leg.target, Event):
            self.task = self.ending = None
            key = f"workflow:drawn/{parcel}"
            self.rows.append((key, leg.target.event_type, self.since, {}))
        else:
            self.come_to(parcel, leg.target)


class Instances:
    """Producers, whoever ends tasks, and writers that race, against the picture.

    Args:
        workflows: two versions of one workflow; the first is in force.
        chance: what happens.
    """

    def __init__(self, workflows: tuple[Graph[Any], Graph[Any]], chance: Random) -> None:
        self.chance = chance
        self.now = NOW
        self.starts: list[StartEvent] = []
        self.ended: list[Ended] = []
        self.unread: list[StartEvent] = []
        self.instances: dict[str, Instance] = {}
        self.workflows = {1: workflows[0], 2: replace(workflows[1], version=2)}
        self.log = DerivedLog(plan(1, self.workflows[1]))

    def build(self) -> None:
        """Put the other version into force."""
        self.log.plans[2] = plan(2, self.workflows[2])
        self.log.newest = 2

    def start(self) -> None:
        """Append a start event, also of an instance that has begun or ended."""
        self.now += HOUR
        event = StartEvent(
            event_id=f"e-{len(self.starts)}",
            event_type="parcel.ready",
            payload=f'{{"parcel_id":"{self.chance.choice(PARCELS)}","grams":1}}'.encode(),
            since=self.now,
            arrival=len(self.starts),
        )
        self.starts.append(event)
        self.unread.append(event)

    def end(self) -> None:
        """End a task in any way, maybe twice before anybody follows it, the first way counts; what
        its rows say of a cause need not be said again.
        """
        at_work = [one for one in self.instances.values() if one.task]
        if not at_work:
            return
        self.now += self.chance.choice([HOUR, timedelta()])
        instance = self.chance.choice(at_work)
        leg = self.chance.choice(list(instance.workflow.legs(instance.task)))
        outcome = DEFAULT_EXIT if leg.outcome is None else leg.outcome
        decided = leg.cause == "decided"
        facts = {"at": len(self.ended)} if decided else {}
        explicit = decided or self.chance.random() < 0.5
        ending = TaskEnding(cause=leg.cause, outcome=outcome if explicit else None, data=facts)
        task = self.log.task(instance.rows[-1][0])
        position = (0, 0, len(self.ended) + 1)
        self.ended.append(Ended(task=task, ending=ending, at=self.now, position=position))
        instance.ending = instance.ending or (leg, self.now, facts)

    def write(self) -> None:
        """Let two writers read the same news, and old ones, in any order; one of them writes."""
        news = [(self.mixed(self.starts, self.unread), self.mixed(self.ended)) for _ in range(2)]
        both = [self.log.follows(*one) for one in news]
        assert both[0].rows == both[1].rows
        derived = self.log.write(*news[0])
        assert () == derived.stranded
        self.follow_by_hand()
        begun = {one.begun_by for one in self.instances.values()}
        late = {one.event_id for one in news[0][0]} - begun
        assert {(one, WhyIgnored.SECOND_START) for one in late} == {
            (one.event_id, one.why) for one in derived.ignored
        }
        self.compare()

    def mixed(self, every: list[Any], news: list[Any] | None = None) -> list[Any]:
        """Return all news, some of the rest, and some of both twice, in any order."""
        old = every if news is None else self.chance.sample(every, len(every) // 2)
        found = [*(every if news is None else news), *old]
        self.chance.shuffle(found)
        return found

    def follow_by_hand(self) -> None:
        """Do by the picture what the writers have done."""
        for parcel, instance in self.instances.items():
            if instance.ending:
                instance.go_on(parcel)
        for event in self.unread:
            parcel = event.payload.decode()[14]
            if parcel not in self.instances:
                workflow = self.workflows[self.log.newest]
                instance = Instance(
                    workflow=workflow,
                    plan=self.log.newest,
                    begun_by=event.event_id,
                    task=workflow.first,
                    since=event.since,
                )
                instance.come_to(parcel, workflow.first)
                self.instances[parcel] = instance
        self.unread.clear()

    def compare(self) -> None:
        """The log has the rows of the picture and no other, and every instance a next moment."""
        expected = {row for one in self.instances.values() for row in map(told, one.rows)}
        tasks = {one.task_id: one for one in self.log.tasks()}
        assert expected == {
            told(
                (
                    row.event_id,
                    row.event_type,
                    row.created_at,
                    dict(tasks[name].place.facts) if name in tasks else {},
                )
            )
            for name, row in self.log.rows.items()
        }
        ended = {one.task.task_id: one for one in reversed(self.ended)}
        for parcel, instance in self.instances.items():
            own = [one for one in tasks.values() if one.instance == parcel]
            assert {instance.plan} == {one.plan for one in own}
            last = max(own, key=lambda one: one.number)
            # What follows counts before it is written.
            after = follow(ended[last.task_id], self.log.plans) if last.task_id in ended else last
            if isinstance(after, NewEvent):
                assert (None, instance.rows[-1][1]) == (instance.task, after.event_type)
            else:
                assert instance.task is not None
                until = instance.since + instance.task.expires
                assert (instance.task.task_name(), instance.rows[-1][0], until) == (
                    after.place.task,
                    after.task_id,
                    after.expires_at,
                )


def told(row: tuple[str, str, datetime, dict[str, Any]]) -> tuple[str, str, datetime, str]:
    """Return a row in a form that a set can hold."""
    return (*row[:3], str(sorted(row[3].items())))


@settings(max_examples=20)
@given(
    workflows=st.tuples(*[graphs(odd=False).filter(sound)] * 2),
    chance=st.randoms(use_true_random=True),
)
def test_what_follows_is_what_the_picture_says(workflows, chance) -> None:
    """Whatever is started and ended, and however the news arrive, the log has the rows of the
    picture, each once, and every instance has ended or has a next moment.
    """
    instances = Instances(workflows, chance)
    acts = [instances.start, instances.end, instances.write, instances.build]
    for act in chance.choices(acts, weights=[3, 8, 6, 1], k=60):
        act()
    instances.write()
    before = dict(instances.log.rows)
    instances.write()
    assert before == instances.log.rows

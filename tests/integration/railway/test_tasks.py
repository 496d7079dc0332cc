"""Workflows that a relay executes: real logs, hosts, and third parties with a ledger."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.invariants import build
from tests.integration.outboxes import Store, as_if_ended, delivered, open_store
from tests.integration.railway.author.parcels import ask
from tests.unit.macro_namespace import Macros
from tests.unit.workflow_engine.hosts.ledger import Ledger, ledger

from delta_outbox.core.clock import SystemClock
from delta_outbox.core.settings import (
    DestinationLimits,
    PublisherSettings,
    Settings,
    ThirdPartySettings,
    WorkflowSettings,
)
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.operations.lanes import LaneRequest, change_lanes
from delta_outbox.operations.pauses import append_pausing, pausing_request
from delta_outbox.railway.modules import load
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.relay import Mode, Relay, Summary
from delta_outbox.runtime.dbt import check_result
from delta_outbox.workflow_engine.execution.tasks import Tasks
from delta_outbox.workflow_engine.hosts.call import Setup
from delta_outbox.workflow_engine.hosts.host_process import HostNotStarted
from delta_outbox.workflow_engine.hosts.places import HostLimits
from delta_outbox.workflow_engine.item_answers import (
    AnsweredAlready,
    Completion,
    GivenAnswer,
    UnexpectedOutcome,
)
from delta_outbox.workflow_engine.item_decisions import BadAnswer
from delta_outbox.workflow_engine.item_deliveries import UnknownItem
from delta_outbox.workflow_engine.items import Items
from delta_outbox.workflow_engine.opening import task_runner
from delta_outbox.workflow_engine.workflow_views import workflow_status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.home import Home

AUTHOR = Path(__file__).parent / "author"
TASKS = ("book", "pay", "tell")
SETTINGS = Settings(publishers={"default": PublisherSettings(type="null")})


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox in which parcels are workflows."""
    with open_store(spark, home, "t_tasks") as opened:
        rows = joined(rows_of(one) for one in load(["parcels"], AUTHOR))
        writes = NumberedWrites(spark, opened.tables, writer="workflows", clock=SystemClock())
        assert writes.append_after(None, {"version": "1", "rows": rows}, planned_by="tests")
        yield opened


@pytest.fixture(scope="module")
def books() -> Iterator[Ledger]:
    """Return the third parties."""
    with ledger() as found:
        yield found


def order(store: Store, books: Ledger, *names: str, does: str = "") -> None:
    """Append that parcels are ordered."""
    store.insert(
        *(
            (
                f"ordered-{name}",
                "parcel.ordered",
                json.dumps({"parcel": name, "port": books.port, "does": does}),
            )
            for name in names
        )
    )


def drained(store: Store, folder: Path) -> Summary:
    """Run a relay until nothing is open."""
    outbox = store.outbox(folder)
    tasks = Tasks(outbox, Setup(modules=["parcels"], folder=AUTHOR))
    try:
        return Relay(outbox, tasks=tasks).run(Mode.DRAIN)
    finally:
        tasks.close()
        outbox.close()


def on_lanes(store: Store, lanes: int) -> None:
    """Change how many lanes there are."""
    with closing(store.open(SETTINGS)) as outbox:
        asked_for = LaneRequest(lanes=lanes, actor="ann", reason="to try it")
        assert change_lanes(outbox, asked_for, max_wait=60)


def steps(store: Store, name: str) -> list[tuple[str, str, str | None]]:
    """Return what became of the tasks of a parcel: id, reason and outcome of each ending, but for
    that of a claim of `todo`: whether an item is over before anybody has it is the machine's speed.
    """
    return [
        (row["event_id"].removesuffix(f"-{name}"), row["reason"], row["outcome"])
        for row in store.transitions()
        if row["event_id"].endswith(f"-{name}") and row["from_state"] == "CLAIMED"
        if not row["event_id"].startswith("ordered") and row["reason"] != "lease_expired"
    ]


def seen(store: Store, view: str, columns: str, condition: str) -> list[tuple[Any, ...]]:
    """Return columns of rows of a view."""
    found = store.rows(f"select {columns} from {store.tables[view]} where {condition}")
    return [tuple(row.values()) for row in found]


def types(folder: Path) -> list[str]:
    """Return the types of what was delivered to the destination of domain events."""
    return [one["event_type"] for one in delivered(folder)]


def test_an_instance_goes_its_way(store: Store, books: Ledger, tmp_path: Path) -> None:
    """Each third party is asked once, what it decides is on record, and its event is delivered."""
    order(store, books, "p1")
    summary = drained(store, tmp_path / "out")
    assert [
        ("book", "completed", "booked"),
        ("pay", "completed", "paid"),
        ("tell", "completed", "told"),
    ] == steps(store, "p1")
    assert ["book-p1", "pay-p1", "tell-p1"] == books.read()
    assert ["parcel.ordered", "parcel.sent"] == types(tmp_path / "out")
    assert (5, 0) == (summary.published, summary.waiting)
    columns = "state, exit, task, last_task, last_outcome, start_event_id, version"
    assert [("ended", "parcel.sent", None, "tell", "told", "ordered-p1", 1)] == seen(
        store, "workflow_instances", columns, "instance = 'p1'"
    )
    by_task = Macros("workflows").instances_by_task(
        "parcels",
        {"book": "book", "pay": "pay", "tell": "tell", "ask": "ask"},
        store.tables["workflow_instances"],
        store.tables["workflow_tasks"],
    )
    assert [
        {"exit": "parcel.sent", "book": "booked", "pay": "paid", "tell": "told", "ask": None}
    ] == store.rows(f"select exit, book, pay, tell, ask from ({by_task}) where instance = 'p1'")


RARE = ("carrier_fails", "bank_refuses")
UNKNOWN = {"bank_is_silent": ["unknown"], "post_hangs": ["uncertain"]}
CASES: list[tuple[str, list[tuple[str, str, str | None]], list[str], str]] = [
    (
        "carrier_fails",
        [
            ("book", "failed", None),
            ("book", "failed", None),
            ("book", "completed", "booked"),
            ("pay", "completed", "paid"),
            ("tell", "completed", "told"),
        ],
        ["book", "book", "book", "pay", "tell"],
        "parcel.sent",
    ),
    (
        "bank_is_silent",
        [
            ("book", "completed", "booked"),
            ("pay", "unknown", None),
            ("pay", "completed", "paid"),
            ("tell", "completed", "told"),
        ],
        ["book", "pay", "tell"],
        "parcel.sent",
    ),
    (
        "bank_refuses",
        [
            ("book", "completed", "booked"),
            ("pay", "rejected", "not_paid"),
            ("ring", "expired", "default exit"),
        ],
        ["book", "pay"],
        "parcel.kept",
    ),
    (
        "post_hangs",
        [
            ("book", "completed", "booked"),
            ("pay", "completed", "paid"),
            ("tell", "uncertain", "maybe_told"),
        ],
        ["book", "pay", "tell"],
        "parcel.maybe_sent",
    ),
]


@pytest.mark.parametrize(
    ("does", "endings", "asked", "last"),
    [pytest.param(*case, marks=[pytest.mark.rest] if case[0] in RARE else []) for case in CASES],
)
def test_every_fault_is_an_outcome(
    store: Store,
    books: Ledger,
    tmp_path: Path,
    does: str,
    endings: list[Any],
    asked: list[str],
    last: str,
) -> None:
    """A fault is tried again, a refusal is final, what is unsure is looked up, and what nobody can
    know is told as uncertain.
    """
    order(store, books, does, does=does)
    drained(store, tmp_path / "out")
    assert endings == steps(store, does)
    its = [one.removesuffix(f"-{does}") for one in books.read() if one.endswith(f"-{does}")]
    assert asked == its
    assert last == types(tmp_path / "out")[-1]
    attempts = seen(
        store, "task_attempts", "task, result, outcome, known, began_at", f"instance = '{does}'"
    )
    attempts.sort(key=lambda one: one[-1])
    known = [(task, result, outcome) for task, result, outcome, *_ in attempts]
    assert endings == [one for one in known if one[1] != "lease_expired"]
    assert UNKNOWN.get(does, []) == [one[1] for one in attempts if one[3] == "unsure"]
    unsure = [f"{task}-{does}" for task, reason, _ in endings if reason == "uncertain"]
    assert unsure == [
        task_id
        for (task_id,) in seen(store, "uncertain_outcomes", "task_id", f"instance = '{does}'")
    ]


@pytest.mark.rest
def test_faults_are_counted_by_third_party_and_day(
    store: Store, books: Ledger, tmp_path: Path
) -> None:
    """What the view counts is what the log of transitions has of calls, but for those that were
    never made.
    """
    order(store, books, "counted", does="bank_is_silent")
    drained(store, tmp_path / "out")
    named = {
        "completed": ["completed"],
        "failed": ["failed", "exhausted"],
        "refused": ["rejected"],
        "unsure": ["unknown", "crashed", "lease_expired", "uncertain"],
        "ended_uncertain": ["uncertain"],
    }
    made = [
        (one["destination"], one["occurred_date"], one["reason"])
        for one in store.transitions()
        if one["from_state"] == "CLAIMED" and one["destination"] in ("carrier", "bank", "post")
    ]
    assert {"completed", "unknown"} <= {reason for *_, reason in made}
    expected = {
        (party, day): tuple(
            sum(made.count((party, day, reason)) for reason in reasons)
            for reasons in named.values()
        )
        for party, day, _ in made
    }
    found = seen(
        store,
        "faults_by_third_party",
        f"third_party, day, {', '.join(named)}, last_fault_at, last_error",
        "true",
    )
    assert expected == {(party, day): tuple(counts[:5]) for party, day, *counts in found}
    assert {("bank", True)} == {
        (party, error is not None and at is not None)
        for party, _, *_, at, error in found
        if party == "bank"
    }


def test_start_events_that_begin_nothing_are_seen(
    store: Store, books: Ledger, tmp_path: Path
) -> None:
    """An event that starts an instance once more, and one whose payload breaks the contract, are
    delivered as ever, start nothing and say why.
    """
    order(store, books, "once")
    again = json.dumps({"parcel": "once", "port": books.port})
    store.insert(("again", "parcel.ordered", again), ("broken", "parcel.ordered", "{}"))
    drained(store, tmp_path / "out")
    assert ["book-once", "pay-once", "tell-once"] == books.read()[-3:]
    assert 3 == types(tmp_path / "out").count("parcel.ordered")
    found = seen(store, "ignored_starts", "event_id, workflow, instance, why", "true")
    assert [
        ("again", "parcels", "once", "second_start"),
        ("broken", "parcels", None, "payload_refused"),
    ] == sorted(found)


def test_tasks_wait_for_a_third_party_that_is_paused(
    store: Store, books: Ledger, tmp_path: Path
) -> None:
    """A pause holds the tasks of one third party, and none of them is attempted meanwhile."""
    outbox = store.open(replace(SETTINGS, third_parties={"bank": ThirdPartySettings()}))
    for kind in ("pause", "resume"):
        request = pausing_request(kind, destination="bank", actor="ann", reason="they asked")
        append_pausing(outbox, request)
        if kind == "pause":
            order(store, books, "paused")
            drained(store, tmp_path / "out")
            assert [("book", "completed", "booked")] == steps(store, "paused")
    outbox.close()
    drained(store, tmp_path / "out")
    assert ["book-paused", "pay-paused", "tell-paused"] == books.read()[-3:]
    assert 3 == len(steps(store, "paused"))


@pytest.mark.rest
def test_a_drain_ends_where_nothing_has_room(
    store: Store, books: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no host takes a task, a drain ends, also beside a rate that holds nothing back."""
    limits = DestinationLimits(rate_per_second=100.0)
    parties = {"carrier": ThirdPartySettings(limits=limits)}
    order(store, books, "nowhere")
    stop = threading.Event()
    impatient = threading.Timer(120, stop.set)
    impatient.daemon = True
    impatient.start()
    with (
        closing(store.open(replace(SETTINGS, third_parties=parties))) as outbox,
        closing(Tasks(outbox, Setup(modules=["parcels"], folder=AUTHOR))) as tasks,
    ):
        monkeypatch.setattr(tasks, "_room", lambda _: 0)
        summary = Relay(outbox, tasks=tasks).run(Mode.DRAIN, max_wait=0.1, stop=stop)
    impatient.cancel()
    assert (False, True) == (stop.is_set(), summary.waiting > 0)
    drained(store, tmp_path / "out")
    assert 3 == len(steps(store, "nowhere"))


def test_the_settings_say_how_many_black_boxes_are_called_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relay starts no more hosts for black boxes than `[workflows] hosts` allows."""
    given: list[int] = []

    def start(setup: Setup, *, limits: HostLimits) -> None:
        assert ("parcels",) == setup.modules
        given.append(limits.hosts)
        raise HostNotStarted("enough is known")

    monkeypatch.setattr("delta_outbox.workflow_engine.opening.HostPool", start)
    settings = WorkflowSettings(modules=("parcels",), hosts=7)
    outbox = store.open(replace(SETTINGS, workflows=settings))
    with task_runner(outbox, folder=AUTHOR) as tasks, pytest.raises(HostNotStarted):
        tasks.policies()
    outbox.close()
    assert [7] == given


@pytest.mark.rest
def test_two_relays_share_the_tasks(store: Store, books: Ledger, tmp_path: Path) -> None:
    """Two relays at a time, on two lanes, call a third party once for each task."""
    on_lanes(store, 2)
    names = [f"both{number}" for number in range(10)]
    order(store, books, *names)
    with ThreadPoolExecutor(2) as relays:
        list(relays.map(lambda _: drained(store, tmp_path / "out"), range(2)))
    drained(store, tmp_path / "out")
    asked = [one for one in books.read() if "-both" in one]
    assert sorted(f"{task}-{name}" for name in names for task in TASKS) == sorted(asked)
    for name in names:
        assert 3 == len([one for one in steps(store, name) if one[1] == "completed"])
    lanes = {one["lane"] for one in store.transitions("book-both")}
    assert {0, 1} == lanes
    on_lanes(store, 1)


@pytest.mark.rest
def test_what_comes_after_the_claim_is_kept(store: Store, books: Ledger, tmp_path: Path) -> None:
    """What a third party has answered changes nothing once others have ended the claim, and is on
    record all the same.
    """
    order(store, books, "late", does="carrier_answers_late")
    slow, other = store.outbox(tmp_path / "out"), store.outbox(tmp_path / "other")
    with (
        closing(Tasks(slow, Setup(modules=["parcels"], folder=AUTHOR))) as tasks,
        ThreadPoolExecutor(1) as relays,
    ):
        run = relays.submit(Relay(slow, tasks=tasks).run, Mode.DRAIN)
        while "book-late" not in books.read():
            assert not run.done()
            time.sleep(0.1)
        as_if_ended(slow)
        assert 1 == other.release_expired_claims()
        ask(books.port, "go-book-late")
        run.result()
    assert ["claimed", "lease_expired", "claimed", "completed"] == [
        one["reason"] for one in store.transitions("book-late")
    ]
    assert [("book", "booked", slow.worker_id, "booked")] == seen(
        store, "late_answers", "task, answer, actor, outcome", "instance = 'late'"
    )
    slow.close()
    other.close()


def test_many_items_are_answered_at_once(store: Store, books: Ledger, tmp_path: Path) -> None:
    """Answers to several items are one append; what is wrong with one of them stops no other."""
    names = ["many1", "many2", "many3"]
    order(store, books, *names, does="carrier_refuses")
    drained(store, tmp_path / "out")
    outbox = store.open(replace(SETTINGS, workflows=WorkflowSettings(modules=("parcels",))))
    items = Items(outbox, folder=AUTHOR)
    waiting = {one.instance: one for one in items.waiting(role="support")}
    assert {*names} <= {*waiting}
    assert [] == items.waiting(role="nobody")
    for of_each_task in (False, True):  # there is one task that people do
        few = items.waiting(limit=2, of_each_task=of_each_task)
        assert [*waiting.values()][:2] == few
    assert ("review-many1", "parcels", "review", 1, ("support",)) == (
        waiting["many1"].task_id,
        waiting["many1"].workflow,
        waiting["many1"].task,
        waiting["many1"].visit,
        waiting["many1"].roles,
    )
    answers = [
        GivenAnswer(task_id="review-many1", data={"parcel": "many1", "send": True}),
        GivenAnswer(task_id="review-nowhere", data={}),
        GivenAnswer(task_id="review-many2", data={"parcel": "many2"}),
        GivenAnswer(task_id="review-many3", data={"parcel": "many3", "send": False}),
    ]
    who = {"actor": "ann", "reason": "it fits"}
    other = replace(answers[0], data={"parcel": "many1", "send": False})
    strange = replace(answers[0], allowed=lambda item: "nobody" in item.roles)
    first, unknown, bad, last, same, loser, forbidden = items.complete_many(
        [*answers, answers[0], replace(other, actor="bob"), strange], **who
    )
    assert isinstance(first, Completion)
    assert replace(first, repeated=True) == same
    assert isinstance(loser, AnsweredAlready)
    assert ("send", UnknownItem) == (loser.outcome, type(forbidden))
    assert str(unknown).replace("review-nowhere", "review-many1") == str(forbidden)
    assert isinstance(unknown, UnknownItem)
    assert isinstance(bad, BadAnswer)
    assert isinstance(last, Completion)
    assert ("send", "keep", "done") == (first.outcome, last.outcome, first.status)
    commands = store.spark.sql(
        f"select _metadata.row_commit_version as version from {store.tables['outbox_commands']} "
        f"where command_id in ('{first.command_id}', '{last.command_id}')"
    ).collect()
    assert (2, 1) == (len(commands), len({row["version"] for row in commands}))
    again = items.complete_many(answers, **who)
    assert [replace(first, repeated=True), replace(last, repeated=True)] == [again[0], again[3]]
    assert {*names} & {one.instance for one in items.waiting()} == {"many2"}
    outbox.close()


def test_an_item_waits_for_an_answer(store: Store, books: Ledger, tmp_path: Path) -> None:
    """A drain ends beside an open item; its answer ends it, its instance goes on, and who answers
    once more is told what has become of it.
    """
    order(store, books, "heavy", does="carrier_refuses")
    assert 0 == drained(store, tmp_path / "out").waiting
    assert [("book", "rejected", "not_booked")] == steps(store, "heavy")
    assert [("review", "open", "support", "todo", None)] == seen(
        store, "todo_items", "task, state, roles, held_by, outcome", "instance = 'heavy'"
    )
    assert [("waiting_for_person", "review-heavy", "faulted", "not_booked")] == seen(
        store,
        "workflow_instances",
        "state, task_id, last_cause, last_outcome",
        "state <> 'ended' and instance = 'heavy'",
    )
    outbox = store.open(replace(SETTINGS, workflows=WorkflowSettings(modules=("parcels",))))
    items = Items(outbox, folder=AUTHOR)
    status = workflow_status(outbox)
    assert [len(items.waiting())] * 2 == [
        status[name] for name in ("open_items", "expire_within_the_hour")
    ]
    who = {"actor": "ann", "reason": "it fits"}
    with pytest.raises(BadAnswer, match=r"parcels\.review: /send: missing\."):
        items.complete("review-heavy", {"parcel": "heavy"}, **who)
    with pytest.raises(BadAnswer, match="is about another item"):
        items.complete("review-heavy", {"parcel": "light", "send": True}, **who)
    with pytest.raises(UnknownItem):
        items.complete("book-heavy", {}, **who)
    answer = {"parcel": "heavy", "send": True}
    with pytest.raises(UnexpectedOutcome, match="means 'send', and 'keep' was expected"):
        items.complete("review-heavy", answer, **who, outcome="keep")
    done = items.complete("review-heavy", answer, **who, outcome="send")
    assert ("send", "done", False) == (done.outcome, done.status, done.repeated)
    assert replace(done, repeated=True) == items.complete("review-heavy", answer, **who)
    with pytest.raises(AnsweredAlready, match="with the outcome 'send'"):
        items.complete("review-heavy", {"parcel": "heavy", "send": False}, **who)
    assert [("running", None, "review", "send")] == seen(
        store, "workflow_instances", "state, task, last_task, last_outcome", "instance = 'heavy'"
    )
    store.spark.sql(
        f"insert into {store.tables['outbox_commands']} (command_id, kind, event_id, arrival, "
        "destination, lifecycle, arguments, actor, reason) select 'late', kind, event_id, arrival, "
        "destination, lifecycle, replace(arguments, 'send', 'keep'), 'bob', 'no' "
        f"from {store.tables['outbox_commands']} where command_id = '{done.command_id}'"
    )
    outbox.close()
    drained(store, tmp_path / "out")
    assert [("late", "keep", "bob", "send")] == seen(
        store, "late_answers", "command_id, answer, actor, outcome", "instance = 'heavy'"
    )
    assert [
        ("book", "rejected", "not_booked"),
        ("review", "completed", "send"),
    ] == steps(store, "heavy")
    assert "parcel.sent" == types(tmp_path / "out")[-1]
    (ended,) = [
        row
        for row in store.transitions()
        if row["event_id"] == "review-heavy" and row["to_state"] == "PUBLISHED"
    ]
    assert ("ann", done.command_id, '{"parcel":"heavy"}') == (
        ended["actor"],
        ended["command_id"],
        ended["outcome_data"],
    )


@pytest.mark.rest
def test_the_invariants_find_nothing_in_it(store: Store) -> None:
    """Whatever went wrong in the tests of this file, what the engine has written breaks no rule."""
    check_result(build(store))

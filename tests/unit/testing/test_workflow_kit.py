"""The kit for authors of workflows: what it runs, and what it finds out."""

from __future__ import annotations

import random
import threading
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from tests.unit.railway.drawn import Again
from tests.unit.railway.workflow import (
    LOST,
    SENT,
    Book,
    Booked,
    Check,
    Finding,
    Label,
    Labelled,
    Pack,
    Packed,
    Parcel,
    Tell,
    Told,
    graph,
)

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.settings import SecretMapping, Unset
from delta_outbox.railway import (
    DEFAULT_EXIT,
    CertainlyNot,
    Decided,
    FirstStep,
    Never,
    NotDue,
    Trigger,
)
from delta_outbox.railway.graph import Graph
from delta_outbox.testing.workflows import (
    TROUBLES,
    Answer,
    BrokenPromise,
    KitError,
    ThirdParty,
    Trouble,
    VirtualClock,
    check_task,
    explore,
    provided,
    random_script,
    run_task,
    run_workflow,
)
from delta_outbox.testing.workflows.promises import broken_promises

START = Parcel(parcel_id="p-1", grams=20)
PARCEL = Trigger(instance="p-1", start=START)
SHIPPING = graph()


class Printer(ThirdParty):
    def label(self, key: str) -> str:
        return self.act(key, "a label", "a label")


class Labels(Label):
    def __init__(self, printer: Printer) -> None:
        self.printer = printer

    def attempt(self, trigger, task_id):
        self.printer.label(task_id)
        return Decided(outcome=Labelled.LABELLED)


class Robot(ThirdParty):
    def pack(self, key: str) -> bool:
        return self.act(key, "packed", True)

    def packed(self, key: str) -> str | None:
        return self.find(key)


class Packs(Pack):
    def __init__(self, robot: Robot) -> None:
        self.robot = robot

    async def attempt(self, trigger, task_id):
        self.robot.pack(task_id)
        return Decided(outcome=Packed.PACKED)

    async def lookup(self, trigger, task_id):
        return Decided(outcome=Packed.PACKED) if self.robot.packed(task_id) else None


class Carrier(ThirdParty):
    """It has holds, which can be found and undone, and bookings."""

    def __init__(self, script=()) -> None:
        super().__init__(script)
        self.holds: dict[str, bool] = {}

    def hold(self, key: str) -> str:
        name = f"hold-{len(self.holds) + 1}"

        self.holds[name] = False
        return name

    def book(self, key: str, hold: str) -> None:
        if hold not in self.holds:
            raise CertainlyNot("the hold was undone")
        self.act(key, hold, None)
        self.holds[hold] = True

    def listed(self, key: str) -> list[FirstStep[Booked]]:
        booked = {one.what for one in self.ledger}
        return [
            FirstStep(
                reference=one, decided=Decided(outcome=Booked.BOOKED) if one in booked else None
            )
            for one in self.holds
        ]

    def undo(self, hold: str) -> None:
        del self.holds[hold]


class Books(Book):
    def __init__(self, carrier: Carrier) -> None:
        self.carrier = carrier

    def first_step(self, trigger, task_id):
        return self.carrier.hold(task_id)

    def lookup(self, trigger, task_id):
        return self.carrier.listed(task_id)

    def attempt(self, trigger, task_id, reference):
        self.carrier.book(task_id, reference)
        return Decided(outcome=Booked.BOOKED)

    def undo(self, trigger, task_id, reference):
        self.carrier.undo(reference)


class Pager(ThirdParty):
    def page(self, key: str) -> None:
        self.act(key, "paged", None)


class Tells(Tell):
    def __init__(self, pager: Pager) -> None:
        self.pager = pager

    def attempt(self, trigger, task_id):
        self.pager.page(task_id)
        return Decided(outcome=Told.TOLD)


for made, kind in ((Labels, Label), (Packs, Pack), (Books, Book), (Tells, Tell)):
    made.__name__ = kind.__name__  # of which the names of tasks are made
SWAPPED: Graph = graph({Label: Labels, Pack: Packs, Book: Books, Tell: Tells})
KINDS: dict[str, Any] = {
    "idempotent": (Labels, lambda script: Printer(script, remembers_keys=True)),
    "pessimistic": (Packs, Robot),
    "optimistic": (Books, Carrier),
    "black box": (Tells, Pager),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_script_of_every_category_keeps_its_promise(kind: str) -> None:
    """All scripts of two troubles end with an outcome, and with one effect at most."""
    task, party = KINDS[kind]

    def build(script):
        made = party(script)
        return task(made), made

    found = explore(SWAPPED, build, PARCEL, depth=2)
    assert 1 + len(TROUBLES) + len(TROUBLES) ** 2 == len(found.runs)
    assert "decided" in found.causes


class Moody(Carrier):
    """A carrier of which any call may go wrong."""

    def hold(self, key: str) -> str:
        self.find(key)
        return super().hold(key)

    def listed(self, key: str) -> list[FirstStep[Booked]]:
        self.find(key)
        return super().listed(key)

    def undo(self, hold: str) -> None:
        self.find(hold)
        super().undo(hold)


@pytest.mark.parametrize("stops", [True, False], ids=["stops", "insists"])
@pytest.mark.parametrize("kind", [*KINDS, "moody optimistic"])
def test_an_expiry_ends_a_task_whatever_goes_wrong_for_ever(kind: str, stops: bool) -> None:
    """Whatever comes first, and then for ever, at any call, a task ends soon after its expiry, and
    says that it was not done only if it was not.
    """
    task, make = {**KINDS, "moody optimistic": (Books, Moody)}[kind]
    insists = type(task.__name__, (task,), {"back_off": lambda *_: timedelta(minutes=30)})
    begins = [[], *([one] for one in TROUBLES), *([Trouble.ANSWERS, one] for one in TROUBLES)]
    begins += [[Trouble.ANSWERS] * number + [Trouble.ACTS_SILENTLY] for number in (2, 3)]
    for first, for_ever in product(begins, TROUBLES):
        party, clock = make([]), VirtualClock()
        party.script = Again([*first, for_ever])
        run = run_task(SWAPPED, (task if stops else insists)(party), PARCEL, [party], clock=clock)
        assert [] == list(broken_promises(run, [party])), run.trace
        assert clock.elapsed <= task.expires + timedelta(minutes=40), run.trace


@pytest.mark.parametrize("dies", [Trouble.DIES_BEFORE, Trouble.DIES_AFTER])
def test_a_worker_that_dies_while_it_finds_out_leaves_it_open(dies: Trouble) -> None:
    """After the last attempt a look-up is tried once; a death in it is no answer."""

    class Once(Packs):
        def back_off(self, attempts, trigger, task_id, error):
            return None

    Once.__name__ = "Pack"
    robot = Robot([Trouble.ANSWERS, dies, Trouble.DIES_BEFORE])
    run = check_task(SWAPPED, Once(robot), PARCEL, [robot])
    assert ("uncertain", 3) == (run.cause, len(robot.calls))


def test_an_attempt_that_dies_over_the_expiry_is_looked_up() -> None:
    """What was begun in time is found out, although its worker died and the task then expired."""

    class Short(Packs):
        expires = timedelta(minutes=1)

    Short.__name__ = "Pack"
    robot = Robot([Trouble.ANSWERS, Trouble.DIES_AFTER])
    made = graph({Label: Labels, Pack: Short, Book: Books, Tell: Tells})
    run = check_task(made, Short(robot), PARCEL, [robot])
    assert (Packed.PACKED, "decided") == (run.outcome, run.cause)
    run = check_task(made, Short(late := Robot([Trouble.DIES_BEFORE])), PARCEL, [late])
    assert ("expired", []) == (run.cause, late.ledger)


def test_a_third_party_that_is_held_back_for_ever_ends_with_the_expiry() -> None:
    """NotDue for ever expires; after an unsure attempt with a key that never dies, nobody knows."""

    class Held(Labels):
        key_valid_for: Any = Never(why="it keeps its keys")

        def attempt(self, trigger, task_id):
            if self.printer.script:
                return super().attempt(trigger, task_id)
            raise NotDue("the printer is paused")

    Held.__name__ = "Label"
    for script, cause in (([], "expired"), ([Trouble.ACTS_SILENTLY], "uncertain")):
        printer, clock = Printer(script, remembers_keys=True), VirtualClock()
        run = run_task(SWAPPED, Held(printer), PARCEL, [printer], clock=clock)
        assert (cause, len(script)) == (run.cause, len(printer.ledger))
        assert clock.elapsed <= Label.expires + timedelta(minutes=40)


def test_a_third_party_that_forgets_a_key_is_found_out() -> None:
    """Two effects are a broken promise, told with the script and the trace in business words."""
    with pytest.raises(BrokenPromise) as error:
        explore(
            SWAPPED,
            lambda script: (Labels(made := Printer(script, remembers_keys=True)), made),
            PARCEL,
            depth=2,
            troubles=list(Trouble),
        )
    told = str(error.value).splitlines()
    assert "shipping-label-p-1-1 (Trivial):" == told[0]
    assert told[1].startswith("2 effects where at most 1 is promised")
    assert (
        "Printer: acts, and the answer does not come in time; has forgotten the key too early"
        in told
    )
    assert any("Label" in line and "tries again" in line for line in told)


def test_a_lookup_that_shows_too_little_is_found_out() -> None:
    """A third party that does not show what it has done makes a pessimistic lock act twice."""
    robot = Robot([Trouble.ANSWERS, Trouble.ACTS_SILENTLY, Trouble.LOOKS_UP_LATE])
    with pytest.raises(BrokenPromise, match="2 effects"):
        check_task(SWAPPED, Packs(robot), PARCEL, [robot])


def test_an_attempt_that_sends_something_else_the_second_time_is_found_out() -> None:
    """What is sent depends on the trigger alone: a counter or a clock in it is named."""

    class Counts(Labels):
        count = 0

        def attempt(self, trigger, task_id):
            Counts.count += 1
            self.printer.act(task_id, Counts.count, None)
            return Decided(outcome=Labelled.LABELLED)

    Counts.__name__ = "Label"
    printer = Printer(remembers_keys=True)
    with pytest.raises(BrokenPromise, match="two attempts sent different things"):
        check_task(SWAPPED, Counts(printer), PARCEL, [printer])


def test_an_attempt_of_two_calls_is_found_out() -> None:
    """Between two calls of one attempt a process may die: each call is a task of its own."""

    class Twice(Labels):
        def attempt(self, trigger, task_id):
            self.printer.label(task_id)
            return super().attempt(trigger, task_id)

    Twice.__name__ = "Label"
    printer = Printer(remembers_keys=True)
    with pytest.raises(BrokenPromise, match="an attempt made 2 calls"):
        check_task(SWAPPED, Twice(printer), PARCEL, [printer])


def test_an_attempt_that_calls_two_third_parties_is_found_out() -> None:
    """Also between calls of different third parties a process may die; each is rehearsed once."""
    first, second = Printer(remembers_keys=True), Printer(remembers_keys=True)

    class Both(Labels):
        def attempt(self, trigger, task_id):
            second.label(task_id)
            return super().attempt(trigger, task_id)

    Both.__name__ = "Label"
    with pytest.raises(BrokenPromise, match="an attempt made 2 calls"):
        check_task(SWAPPED, Both(first), PARCEL, [first, second])
    assert [1, 1] == [len(one.ledger) for one in (first, second)]


def test_time_passes_only_on_the_virtual_clock() -> None:
    """A request that acts after it was given up does so on the clock, before anybody looks up."""
    robot, clock = Robot([Trouble.ANSWERS, Trouble.ACTS_LATE]), VirtualClock()
    run = run_task(SWAPPED, Packs(robot), PARCEL, [robot], clock=clock)
    assert (Packed.PACKED, 1) == (run.outcome, len(robot.ledger))
    assert clock.elapsed >= Pack.time_limit + Pack.settles_within
    assert "looks up at robot: packed" in run.trace


def test_an_attempt_that_sends_nothing_does_not_count() -> None:
    """NotDue is no attempt and never makes a black box uncertain."""

    class Waits(Tells):
        waits = 3

        def attempt(self, trigger, task_id):
            if self.waits:
                self.waits -= 1
                raise NotDue("the pager is paused")
            return super().attempt(trigger, task_id)

    Waits.__name__ = "Tell"
    pager = Pager()
    run = run_task(SWAPPED, Waits(pager), PARCEL, [pager])
    assert (Told.TOLD, 1, 1) == (run.outcome, run.attempts, len(pager.calls))


def test_decisions_that_raise_do_not_stop_a_task() -> None:
    """Where back_off, on_fault or still_needed raise, the declared default counts."""

    class Raises(Packs):
        def back_off(self, attempts, trigger, task_id, error):
            raise ValueError("no back-off")

        def still_needed(self, trigger, task_id):
            raise ValueError("no idea")

        def on_fault(self, error, trigger, task_id):
            raise ValueError("no outcome")

    Raises.__name__ = "Pack"
    robot = Robot([Trouble.ANSWERS, Trouble.REJECTS])
    run = run_task(SWAPPED, Raises(robot), PARCEL, [robot])
    assert (DEFAULT_EXIT, "faulted") == (run.outcome, run.cause)
    assert "on_fault raised ValueError: no outcome: the default counts" in run.trace


def test_a_task_that_is_not_needed_any_more_expires() -> None:
    """A task whose use is over ends as expired, without a call."""

    class Over(Packs):
        def still_needed(self, trigger, task_id):
            return False

    Over.__name__ = "Pack"
    robot = Robot()
    run = run_task(SWAPPED, Over(robot), PARCEL, [robot])
    assert ("expired", []) == (run.cause, robot.calls)


def test_a_wrong_decision_is_refused_with_what_was_expected() -> None:
    """An attempt that returns no decision of its own task is an error of the test."""

    class Wrong(Packs):
        def attempt(self, trigger, task_id):
            return Decided(outcome=Told.TOLD)

    Wrong.__name__ = "Pack"
    robot = Robot()
    with pytest.raises(KitError, match="It must return Decided with one of packed, broken"):
        run_task(SWAPPED, Wrong(robot), PARCEL, [robot])


def test_a_whole_workflow_runs_to_its_end() -> None:
    """Tasks follow their outcomes; people answer when the test says; loops have visits."""
    pager = Pager([Trouble.STAYS_SILENT])
    parties = [printer := Printer(remembers_keys=True), robot := Robot(), carrier := Carrier()]
    tasks: list[Any] = [Labels(printer), Packs(robot), Books(carrier), Tells(pager), Check()]

    def answer(finding):
        return Answer(
            task=Check,
            data=lambda task_id: Finding(task_id=task_id, finding=finding),
            after=timedelta(hours=2),
        )

    run = run_workflow(
        SWAPPED,
        tasks,
        START,
        people=[answer("again")],
        third_parties=[*parties, pager],
    )
    assert SENT.event_type == run.end
    assert ["label", "pack", "book", "tell", "check", "label", "pack", "book", "tell"] == run.path
    assert "shipping-tell-p-1-2" == run.passed[-1].task_id


def everybody(printer: Printer | None = None, pager: Pager | None = None) -> tuple[Any, Any]:
    """Return an object of each task, and the third parties that they call."""
    parties = [printer or Printer(), Robot(), Carrier(), pager or Pager()]
    kinds: tuple[Any, ...] = (Labels, Packs, Books, Tells)
    made = [kind(party) for kind, party in zip(kinds, parties, strict=True)]
    return [*made, Check()], parties


def test_an_item_that_nobody_answers_expires() -> None:
    """Without an answer, and with one that comes too late, the expiry is the outcome."""
    tasks, parties = everybody(printer=Printer([Trouble.REJECTS]))
    run = run_workflow(SWAPPED, tasks, START, third_parties=parties)
    assert (LOST.event_type, ["label"]) == (run.end, run.path)
    late = Answer(
        task=Check,
        data=lambda task_id: Finding(task_id=task_id, finding="send"),
        after=timedelta(days=1),
    )
    for people in ([], [late]):
        tasks, parties = everybody(pager=Pager([Trouble.ACTS_SILENTLY]))
        run = run_workflow(SWAPPED, tasks, START, people=people, third_parties=parties)
        assert (SENT.event_type, "check") == (run.end, run.path[-1])
        assert "expired" == run.passed[-1].cause


def test_a_missing_task_is_named() -> None:
    """A workflow cannot be run without an object of each of its tasks."""
    with pytest.raises(KitError, match="no Label, Pack, Book, Tell, Check among the tasks"):
        run_workflow(graph(), [], START)


class Client:
    """What lies between a task and its third party in many projects."""

    def __init__(self, printer: Printer) -> None:
        self.service = printer

    def label(self, key: str) -> str:
        return self.service.label(key)


class Slots(Label):
    """A task that does not show what it calls."""

    __slots__ = ()

    def attempt(self, trigger, task_id):
        return Decided(outcome=Labelled.LABELLED)


Slots.__name__ = "Label"


@pytest.mark.parametrize(
    ("task", "parties", "says"),
    [
        (lambda: Labels(Printer()), list, "Label calls `printer`, a Printer that is not among"),
        (
            lambda: Labels(Client(Printer())),  # type: ignore[arg-type]
            list,
            "Label calls `printer.service`, a Printer that is not among",
        ),
        (lambda: Labels(Printer()), lambda: [Printer()], "Add this object to `third_parties`"),
        (Slots, list, "Label calls printer, and no third party was given whose ledger"),
        (Check, list, "Check: a To-Do calls nobody; use run_workflow with `people=`"),
        (lambda: Labels, list, r"`task`: Label is a class; give an object, `Label\(...\)`"),
        (lambda: Labels(Printer()), lambda: [Printer], "`third_parties`: Printer is a class"),
        (lambda: Labels(Printer()), Printer, "`third_parties`: give a list of objects"),
        (lambda: "label", list, "`task`: 'label' is no Task"),
    ],
)
def test_a_task_is_checked_with_all_that_it_calls(task, parties, says: str) -> None:
    """Without the ledgers of those that a task calls nothing was checked: it fails, and says so."""
    with pytest.raises(KitError, match=says):
        check_task(SWAPPED, task(), PARCEL, parties())


def test_a_trigger_is_an_object() -> None:
    """The class of a trigger, or a start event in place of it, is refused; so is a wrong start."""
    printer = Printer()
    cases = (
        (Trigger, "Trigger is a class"),
        (START, "is no Trigger"),
        (Trigger(instance="p-1", start={"parcel_id": "p-1"}), r"`trigger\.start`: .* is no Parcel"),
    )
    for trigger, says in cases:
        with pytest.raises(KitError, match=says):
            check_task(SWAPPED, Labels(printer), trigger, [printer])  # type: ignore[arg-type]


def test_a_task_whose_third_party_is_not_named_is_explored_too() -> None:
    """The ledger of a third party that a task holds is read where `build` returns another one."""

    def build(script):
        return Labels(Printer(script)), Printer()

    with pytest.raises(BrokenPromise, match="2 effects") as error:
        explore(SWAPPED, build, PARCEL, depth=1)
    assert "Printer (remembers no keys: it was made without `remembers_keys=True`)" in str(
        error.value
    )


def everybody_with_a_silent_pager() -> tuple[Any, Any, dict[str, Any]]:
    """Return tasks, a start event and the rest for an answer that is no object of the contract."""
    tasks, parties = everybody(pager=Pager([Trouble.ACTS_SILENTLY]))
    data: Any = {"x": 1}
    return tasks, START, {"third_parties": parties, "people": [Answer(task=Check, data=data)]}


def test_a_workflow_runs_with_all_that_it_calls() -> None:
    """Third parties, objects of tasks and people who answer are named where they do not fit."""
    tasks, parties = everybody()
    start: Any = START
    finding = Finding(task_id="x", finding="send")
    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        (tasks, start, {}, "Label calls `printer`, a Printer that is not among"),
        (tasks, start, {"third_parties": parties[1:]}, "Label calls `printer`"),
        ([Labels, *tasks[1:]], start, {"third_parties": parties}, "`tasks`: Label is a class"),
        (tasks, Parcel, {"third_parties": parties}, "`start`: Parcel is a class"),
        (
            tasks,
            start,
            {"third_parties": parties, "people": [Answer(task=Check(), data=finding)]},  # type: ignore[arg-type]
            "no class among the tasks of shipping",
        ),
        (tasks, start, {"third_parties": parties, "people": [Answer]}, "Answer is a class"),
        (
            tasks,
            start,
            {"third_parties": parties, "people": [Answer(task=Check, data=finding, after=3)]},  # type: ignore[arg-type]
            r"write `after=timedelta\(\.\.\.\)`",
        ),
        (
            *everybody_with_a_silent_pager(),
            r"`data` is \{'x': 1\}; give an object, `Finding\(\.\.\.\)`",
        ),
    ]
    for given, event, more, says in cases:
        with pytest.raises(KitError, match=says):
            run_workflow(SWAPPED, given, event, **more)


def test_random_scripts_repeat_with_their_seed() -> None:
    """The same seed makes the same troubles."""
    scripts = [random_script(random.Random(seed), 50) for seed in (1, 1, 2)]
    assert scripts[0] == scripts[1] != scripts[2]
    assert set(scripts[0]) <= set(TROUBLES)


def test_decisions_that_hang_do_not_stop_a_task() -> None:
    """Where a decision takes longer than a second, the declared default counts."""
    forever = threading.Event()

    class Hangs(Packs):
        def on_fault(self, error, trigger, task_id):
            forever.wait()
            return Packed.BROKEN

    Hangs.__name__ = "Pack"
    robot = Robot([Trouble.ANSWERS, Trouble.REJECTS])
    try:
        run = run_task(SWAPPED, Hangs(robot), PARCEL, [robot])
    finally:
        forever.set()
    assert (DEFAULT_EXIT, "faulted") == (run.outcome, run.cause)
    assert "no decision within 1 second: the default counts" in run.trace


def test_a_script_that_no_call_comes_to_is_named() -> None:
    """Troubles that were planned and never happened fail a test that would show nothing."""
    robot = Robot([Trouble.ANSWERS, Trouble.ANSWERS, Trouble.REFUSES])
    with pytest.raises(KitError, match="Robot was not called for the rest of its script: refuses"):
        check_task(SWAPPED, Packs(robot), PARCEL, [robot])


def test_answers_for_which_no_item_comes_are_named() -> None:
    """An answer that nobody waits for fails, unless people are drawn at random."""
    people = [Answer(task=Check, data=Finding(task_id="x", finding="send"))]
    tasks, parties = everybody()
    with pytest.raises(KitError, match="came to no item for 1 of the answers of `people`: Check"):
        run_workflow(SWAPPED, tasks, START, people=people, third_parties=parties)
    tasks, parties = everybody()
    given: dict[str, Any] = {"people": people, "third_parties": parties, "spare_answers": True}
    assert "parcel.sent" == run_workflow(SWAPPED, tasks, START, **given).end


def test_what_was_explored_is_shown_in_a_line() -> None:
    """Whoever prints what came of all scripts reads how many there were, and their outcomes."""
    found = explore(SWAPPED, lambda script: (Packs(made := Robot(script)), made), PARCEL, depth=1)
    assert f"<Explored {len(found.runs)} scripts: packed>" == repr(found)
    assert "<TaskRun shipping-pack-p-1-1: packed (decided)>" == repr(found.runs[0])


def test_the_kit_calls_provide_with_tables() -> None:
    """A test gives `provide` tables as the settings do, and hears of a variable that is not set."""

    def provide(settings: Any) -> list[Any]:
        return [Packs(settings["robot"]["url"])]

    only: dict[Any, Any] = {**dict.fromkeys((Label, Book, Tell, Check)), Pack: Packs}
    packing = graph(only, routes={Pack: dict.fromkeys(Packed, SENT)}, first=Pack)
    (task,) = provided(provide, [packing], {"robot": {"url": "https://robot.example.com"}})
    assert isinstance(task, Packs)
    unset = Unset("${URL}", variable="URL", where="third_parties.robot.url", file=None)
    with pytest.raises(BadSettings, match=r"`third_parties\.robot\.url` refers to .* URL"):
        provided(provide, [packing], {"robot": SecretMapping({"url": unset})})


class Mistyped(Labels):
    def attempt(self, trigger, task_id):
        self.prnter.label(task_id)  # type: ignore[attr-defined]
        return Decided(outcome=Labelled.LABELLED)


class Forgetful(Labels):
    def attempt(self, trigger, task_id):
        self.printer.label(trigger.facts["pack"]["weight"])
        return Decided(outcome=Labelled.LABELLED)


class Signed(Labels):
    def attempt(self, trigger):  # type: ignore[override]
        self.printer.label("x")
        return Decided(outcome=Labelled.LABELLED)


class Finds(Packs):
    async def lookup(self, trigger, task_id):
        return self.robot.pakced(task_id)  # type: ignore[attr-defined]


class Silent(Labels):
    def attempt(self, trigger, task_id):
        return Decided(outcome=Labelled.LABELLED)


for made, kind in ((Mistyped, Label), (Forgetful, Label), (Signed, Label), (Finds, Pack)):
    made.__name__ = kind.__name__
Silent.__name__ = "Label"


@pytest.mark.parametrize(
    ("task", "party", "says"),
    [
        (Mistyped, Printer, "`attempt` raised AttributeError"),
        (Forgetful, Printer, "`attempt` raised KeyError: 'pack'"),
        (Signed, Printer, "`attempt` raised TypeError"),
        (Finds, Robot, "`lookup` raised AttributeError"),
        (Silent, Printer, "no call came to Printer|no script has led to a call of Printer"),
    ],
)
def test_a_task_that_calls_nobody_is_a_mistake(task: Any, party: Any, says: str) -> None:
    """What raises or decides before a third party was called tests nothing: it is no outcome."""

    def build(script):
        made = party(script)
        return task(made), made

    with pytest.raises(KitError, match=says):
        explore(SWAPPED, build, PARCEL, depth=1)
    made, called = build([])
    with pytest.raises(KitError, match=says):
        check_task(SWAPPED, made, PARCEL, [called])
    if task is not Silent:
        with pytest.raises(KitError, match=f"{says}.* before it had called (printer|robot)"):
            run_task(SWAPPED, made, PARCEL, [called])


def test_an_attempt_may_say_that_nothing_was_sent() -> None:
    """Who refuses before a call says so by the exceptions that are for it."""

    class Refuses(Labels):
        def attempt(self, trigger, task_id):
            raise CertainlyNot("the address has no street")

    Refuses.__name__ = "Label"
    printer = Printer()
    run = check_task(SWAPPED, Refuses(printer), PARCEL, [printer])
    assert ("faulted", []) == (run.cause, printer.calls)


@pytest.mark.parametrize(
    "script", [["ACTS_SILENTLY"], ["answers"], [3], Trouble.REFUSES, "ANSWERS", 3, None, [Trouble]]
)
def test_a_script_holds_members_of_trouble(script: Any) -> None:
    """A script that means nothing is refused, or each call would simply be answered."""
    with pytest.raises(KitError, match="a script is a list of members of Trouble"):
        Printer(script)


@pytest.mark.parametrize("pause", [10, timedelta(seconds=-5), "soon", False])
def test_a_back_off_is_a_duration(pause: Any) -> None:
    """A back-off that is no duration, or a negative one, is named."""

    class Waits(Labels):
        def back_off(self, attempts, trigger, task_id, error):
            return pause

    Waits.__name__ = "Label"
    printer = Printer([Trouble.REFUSES])
    with pytest.raises(KitError, match=r"back_off returned .* must return a timedelta"):
        run_task(SWAPPED, Waits(printer), PARCEL, [printer])

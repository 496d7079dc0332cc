"""The thread that asks the outbox: what it does at once, and what becomes of those who wait."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from tests.unit.todo.memory_items import MemoryItems, MemoryKeys, item

from delta_outbox.core.errors import DiskFull, OutboxError, ServerUnreachable
from delta_outbox.todo import item_thread
from delta_outbox.todo.item_thread import ItemThread, NotInTime, OpenOutbox
from delta_outbox.workflow_engine.item_answers import Completion, GivenAnswer
from delta_outbox.workflow_engine.item_deliveries import UnknownItem
from delta_outbox.workflow_engine.item_holds import HeldByAnother, HoldRequest


class Opening:
    """An outbox in memory that can be opened again and again."""

    def __init__(self) -> None:
        self.items, self.count = MemoryItems(), 0
        self.problem: Exception | None = None

    @contextmanager
    def __call__(self) -> Iterator[OpenOutbox]:
        self.count += 1
        if self.problem is not None:
            raise self.problem
        yield OpenOutbox(items=self.items, keys=MemoryKeys())


@contextmanager
def running(
    opening: Opening, seconds: float = 10.0, *, monotonic: Callable[[], float] = time.monotonic
) -> Iterator[ItemThread]:
    """Run the thread for a block."""
    thread = ItemThread(opening, answer_seconds=seconds, monotonic=monotonic)
    thread.start()
    try:
        yield thread
    finally:
        thread.stop()


def review(name: str, *, send: bool = True) -> GivenAnswer:
    """Return an answer to a review."""
    return GivenAnswer(task_id=f"review-{name}", data={"order": name, "send": send})


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds, ten seconds at most."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("still waiting")


def together(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    """Await what is asked at once; what is raised is returned."""

    async def all_of() -> list[Any]:
        return await asyncio.gather(*calls, return_exceptions=True)

    return asyncio.run(all_of())


def held(opening: Opening, first: str) -> tuple[threading.Event, Callable[[str], None]]:
    """Return an event that lets the first call of a kind go on, and what makes it wait."""
    may_go = threading.Event()
    waited: list[str] = []

    def fails(what: str) -> None:
        if what.startswith(first) and not waited:
            waited.append(what)
            assert may_go.wait(10)

    opening.items.fails = fails
    return may_go, fails


def test_answers_that_wait_go_together() -> None:
    """What comes while answers are written goes in one batch afterwards."""
    opening = Opening()
    opening.items.add(*(item(f"review-o{n}") for n in range(30)))
    may_go, _ = held(opening, "complete")
    with running(opening) as thread:

        async def answering(number: int) -> Completion:
            if number:
                await until(lambda: "complete 1" in opening.items.calls)
            return await thread.answer(review(f"o{number}"))

        async def go_on() -> None:
            await until(lambda: len(thread._answers) == 29)
            may_go.set()

        *told, _ = together(*map(answering, range(30)), go_on())
    assert all(isinstance(one, Completion) for one in told)
    assert ["complete 1", "end", "complete 29", "end"] == opening.items.calls


def test_who_takes_items_goes_with_others() -> None:
    """Requests to hold items that come meanwhile go in one append, beside the answers; what is
    refused is told to whoever has asked for it, and to nobody else.
    """
    opening = Opening()
    opening.items.add(*(item(f"review-o{n}") for n in range(3)))
    may_go, _ = held(opening, "hold")
    with running(opening) as thread:

        async def taking(name: str, person: str, *, is_first: bool = False) -> str | None:
            if not is_first:
                await until(lambda: "hold 1" in opening.items.calls)
            return await thread.hold(HoldRequest(task_id=name, person=person))

        async def go_on() -> None:
            await until(lambda: len(thread._holds) == 3)
            may_go.set()

        first, second, other, none, _ = together(
            taking("review-o0", "ann", is_first=True),
            taking("review-o1", "bob"),
            taking("review-o0", "bob"),
            taking("review-o9", "bob"),
            go_on(),
        )
    assert ("ann", "bob") == (first, second)
    assert isinstance(other, HeldByAnother)
    assert isinstance(none, UnknownItem)
    assert ["hold 1", "hold 3"] == opening.items.calls


def test_who_asks_what_is_being_asked_waits_for_the_same_result() -> None:
    """Whoever asks for a list, or for an item, while it is read costs no other question."""
    opening = Opening()
    opening.items.add(item("review-o1"))

    async def asked_twice(thread: ItemThread, ask: Callable[[], Any], call: str) -> list[Any]:
        may_go, _ = held(opening, call)
        first = asyncio.create_task(ask())
        await until(lambda: call in opening.items.calls)
        second = asyncio.create_task(ask())
        await until(lambda: thread._questions.waiters == 2)
        may_go.set()
        return [await first, await second]

    async def asked(thread: ItemThread) -> list[list[Any]]:
        return [
            await asked_twice(thread, lambda: thread.waiting(["support"]), "waiting"),
            await asked_twice(thread, lambda: thread.shown("review-o1"), "show 1"),
        ]

    with running(opening) as thread:
        lists, items = asyncio.run(asked(thread))
    assert ["waiting", "show 1"] == opening.items.calls
    assert lists[0] == lists[1]
    assert items[0] == items[1]


def test_an_answer_that_always_takes_longer_than_one_waits_is_told() -> None:
    """However long a round takes, whoever gives the same answer again is told what came of it, by
    the round that has written it: while that goes on or afterwards.
    """
    opening = Opening()
    opening.items.add(item("review-o1"), item("review-o2"))
    given = [review("o1"), review("o2")]
    with running(opening, 0.05) as thread:
        during, after = [
            asyncio.run(given_again(opening, thread, one, is_over=is_over))
            for one, is_over in zip(given, (False, True), strict=True)
        ]
    assert (True, True) == (during.repeated, after.repeated)
    assert ["complete 1", "end"] * 2 == opening.items.calls
    assert 2 == len(opening.items.recorded)


async def given_again(
    opening: Opening, thread: ItemThread, given: GivenAnswer, *, is_over: bool
) -> Completion:
    """Give an answer until its round is over, and once more then; no round ends in time."""
    may_go, _ = held(opening, "complete")
    for _ in range(2):
        with pytest.raises(NotInTime):
            await thread.answer(given)
    assert 1 == len(thread._answers.begun)
    if is_over:
        may_go.set()
        await until(lambda: not thread._answers.begun)
    while True:
        try:
            return await thread.answer(given)
        except NotInTime:
            may_go.set()


async def patiently(ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Ask again until it is told."""
    while True:
        with suppress(NotInTime):
            return await ask()


def test_a_hold_that_takes_long_is_told_until_somebody_changes_it() -> None:
    """Who takes an item, is told to ask again and does so learns who held it then; not after
    somebody else has changed that.
    """
    opening = Opening()
    opening.items.add(item("review-o1"))
    take = HoldRequest(task_id="review-o1", person="ann")
    back = HoldRequest(task_id="review-o1", person="ann", gives_back=True)

    async def late(thread: ItemThread, request: HoldRequest) -> None:
        may_go, _ = held(opening, "hold")
        with pytest.raises(NotInTime):
            await thread.hold(request)
        may_go.set()
        await until(lambda: not thread._holds.begun)

    async def asked(thread: ItemThread) -> list[str | None]:
        await late(thread, take)
        told = [await thread.hold(take)]
        await late(thread, take)
        await late(thread, back)
        return [*told, *[await patiently(partial(thread.hold, one)) for one in (take, back)]]

    with running(opening, 0.05) as thread:
        assert ["ann", "ann", None] == asyncio.run(asked(thread))
    assert 5 == opening.items.calls.count("hold 1")


def test_what_nobody_waits_for_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the outbox hangs, those who have given up leave nothing behind; of those who wait there
    is a limit, by number and by the bytes of their answers.
    """
    monkeypatch.setattr(item_thread, "MOST_WAITERS", 4)
    monkeypatch.setattr(item_thread, "MOST_BYTES", 500)
    opening = Opening()
    opening.items.add(item("review-o1"))
    may_go, _ = held(opening, "waiting")
    large = GivenAnswer(task_id="review-o1", data={"order": "o1", "send": True, "why": "x" * 450})

    async def refused(call: Coroutine[Any, Any, Any]) -> str:
        with pytest.raises(NotInTime) as raised:
            await call
        return raised.value.why

    async def asked(thread: ItemThread) -> list[str]:
        told = [await refused(thread.waiting(["support"]))]
        await until(lambda: thread._questions.begun)
        for number in range(10):
            calls = [thread.waiting([]), thread.answer(large), thread.shown(f"review-o{number}")]
            told += await asyncio.gather(*map(refused, calls))
        return told

    with running(opening, 0.05) as thread:
        assert {"it takes longer"} == {*asyncio.run(asked(thread))}
        kinds = (thread._answers, thread._holds, thread._questions)
        assert [0] * 3 == [one.waiters for one in kinds]
        assert [0] * 3 == [len(one) for one in kinds]
        assert 0 == thread._answers.size

        async def crowd() -> list[str]:
            two = [thread.answer(large), thread.answer(replace(large, actor="bob"))]
            lists = [thread.waiting([]) for _ in range(4)]
            return [*await asyncio.gather(*map(refused, [*two, *lists]))]

        told = asyncio.run(crowd())
        may_go.set()
    longer, many = "it takes longer", "too many wait"
    assert [longer, many, longer, longer, longer, many] == told


def test_a_list_outlives_answers_that_fail() -> None:
    """While answers cannot be written, because a disk is full, lists are read as often as else."""
    opening = Opening()
    opening.items.add(item("review-o1"))

    def fails(what: str) -> None:
        if what.startswith("complete"):
            raise DiskFull(table="outbox.outbox_commands", cause="no space")

    opening.items.fails = fails
    with running(opening, monotonic=lambda: 1000.0) as thread:

        async def asked() -> None:
            for _ in range(3):
                await thread.waiting(["support"])
                await thread.shown("review-o1")
                with pytest.raises(NotInTime):
                    await thread.answer(review("o1"))

        asyncio.run(asked())
    one = ["show 1", "complete 1"]
    assert ["waiting", *one, *one, *one] == [one for one in opening.items.calls if one != "end"]


def test_many_readers_cost_one_question() -> None:
    """Who asks for a list at once, or soon after, is told what one question has found, whatever
    their roles.
    """
    opening = Opening()
    opening.items.add(item("review-o1"), item("review-o2"), item("payment-o1", task="payment"))
    with running(opening) as thread:

        async def asked() -> list[Any]:
            first = await asyncio.gather(
                *(thread.waiting([role]) for role in ("support", "provider", "nobody") * 30)
            )
            return [*first, await thread.waiting(["support"])]

        found = asyncio.run(asked())
    reviews, payments, nothing = (one.items for one in found[:3])
    assert ["review-o1", "review-o2"] == [one.task_id for one in reviews]
    assert ["payment-o1"] == [one.task_id for one in payments]
    assert [] == nothing
    assert [reviews, payments, nothing] * 30 + [reviews] == [one.items for one in found]
    assert ["waiting"] == opening.items.calls


def test_a_list_says_that_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each role has its own list, as long as any; also with an item less that was answered here."""
    monkeypatch.setattr(item_thread, "MOST_LISTED", 3)
    opening = Opening()
    opening.items.is_behind = True
    opening.items.add(*(item(f"review-o{number}") for number in range(4)))
    opening.items.add(item("payment-o1", task="payment"))
    with running(opening) as thread:

        async def asked() -> list[Any]:
            first = [await thread.waiting([role]) for role in ("support", "provider")]
            await thread.answer(review("o1"))
            return [*first, await thread.waiting(["support"])]

        cut, whole, after = asyncio.run(asked())
    assert (3, True) == (len(cut.items), cut.is_cut)
    assert (1, False) == (len(whole.items), whole.is_cut)
    assert (2, True) == (len(after.items), after.is_cut)


@pytest.mark.parametrize("is_behind", [False, True])
def test_what_was_answered_is_in_no_list(is_behind: bool) -> None:
    """Who has answered an item, or was told that it is over, sees it in no list any more: neither
    in one that was read before, nor in one that still has it because no relay has ended it yet.
    After a minute the outbox is believed again.
    """
    at = [1000.0]
    opening = Opening()
    opening.items.is_behind = is_behind
    opening.items.add(*(item(f"review-o{number}") for number in range(4)))
    opening.items.late.add("review-o1")
    with running(opening, monotonic=lambda: at[0]) as thread:

        async def listed(*, later: float = 0) -> list[str]:
            at[0] += later
            return [one.task_id for one in (await thread.waiting(["support"])).items]

        async def asked() -> list[list[str]]:
            before = await listed()
            await thread.answer(review("o2"))
            with pytest.raises(OutboxError):
                await thread.answer(review("o1"))
            with pytest.raises(OutboxError):  # the list it is in may have it for a good reason
                await thread.answer(GivenAnswer(task_id="review-o3", data={"order": "?"}))
            return [before, await listed(), await listed(later=30), await listed(later=30)]

        before, after, soon, late = asyncio.run(asked())
        assert {"review-o1", "review-o2"} == {*thread._answered}
        asyncio.run(thread.answer(review("o0")))
        assert {"review-o0"} == {*thread._answered}
    assert {"review-o0", "review-o2", "review-o3"} <= {*before}
    assert ["review-o0", "review-o3"] == after == soon
    assert (4 if is_behind else 2) == len(late)


def shown_together(opening: Opening, thread: ItemThread, names: Sequence[str]) -> list[Any]:
    """Ask for items while the open ones are listed, and return what each who asked was told."""
    may_go, _ = held(opening, "waiting")

    async def shown(name: str) -> Any:
        await until(lambda: "waiting" in opening.items.calls)
        return await thread.shown(name)

    async def go_on() -> None:
        await until(lambda: len(thread._questions) == len(names))
        may_go.set()

    listed, *told, _ = together(thread.waiting(["support"]), *map(shown, names), go_on())
    assert len(opening.items.open) == len(listed.items)
    return told


def test_many_items_are_read_at_once() -> None:
    """Whoever asks for many items, there or not, costs the others one question, not one for each;
    an item that is wrong is told to whoever asked for it.
    """
    opening = Opening()
    opening.items.add(*(item(f"review-o{n}") for n in range(20)))
    names = [f"review-o{n}" for n in range(40)]
    with running(opening) as thread:
        told = shown_together(opening, thread, names)
    assert names[:20] == [one["task_id"] for one in told[:20]]
    assert {UnknownItem} == {type(one) for one in told[20:]}
    assert ["waiting", "show 40"] == opening.items.calls


def test_one_bad_item_hides_no_other() -> None:
    """Where one of the items that are read together fails us, the others are shown."""
    opening = Opening()
    opening.items.add(*(item(f"review-o{n}") for n in range(3)))
    show_many, names = opening.items.show_many, [f"review-o{n}" for n in range(3)]

    def failing(task_ids: Sequence[str]) -> Any:
        if "review-o1" in task_ids:
            raise ValueError("a bug of ours")
        return show_many(task_ids)

    with running(opening) as thread, patch.object(opening.items, "show_many", failing):
        told = shown_together(opening, thread, names)
    assert names[::2] == [one["task_id"] for one in told[::2]]
    assert isinstance(told[1], NotInTime)


def test_who_has_answered_sees_what_came_of_it() -> None:
    """An item is shown from memory for a moment, but not after an answer to it, or a hold; a list
    says who holds its items now.
    """
    opening = Opening()
    opening.items.add(item("review-o1"), item("review-o2"))
    with running(opening) as thread:

        async def asked() -> list[Any]:
            found = [await thread.shown(name) for name in ("review-o1", "review-o2") * 2]
            await thread.waiting(["support"])
            await thread.answer(review("o1"))
            found += [await thread.shown(name) for name in ("review-o1", "review-o2")]
            await thread.hold(HoldRequest(task_id="review-o2", person="ann"))
            return [*found, await thread.shown("review-o2"), await thread.waiting(["support"])]

        *_, answered, other, held, listed = asyncio.run(asked())
    assert ("ended", "open", "ann") == (answered["state"], other["state"], held["assigned_to"])
    assert [("review-o2", "ann")] == [(one.task_id, one.assigned_to) for one in listed.items]
    calls = ["show 1", "show 1", "waiting", "complete 1", "show 1", "hold 1", "show 1"]
    assert calls == [one for one in opening.items.calls if one != "end"]


def test_who_was_too_slow_to_take_an_item_sees_who_has_it() -> None:
    """Where somebody else has taken an item elsewhere, the list is read anew."""
    opening = Opening()
    opening.items.add(item("review-o1"))
    with running(opening) as thread:

        async def asked() -> Any:
            await thread.waiting(["support"])
            opening.items.holders["review-o1"] = "bob"  # by another server
            with pytest.raises(OutboxError):
                await thread.hold(HoldRequest(task_id="review-o1", person="ann"))
            return await thread.waiting(["support"])

        (one,) = asyncio.run(asked()).items
    assert "bob" == one.assigned_to


def test_what_cannot_be_warmed_up_is_served_all_the_same() -> None:
    """The first answer is prepared before anybody is let in; if that fails, who answers learns of
    what is wrong.
    """
    opening = Opening()
    opening.items.add(item("review-o1"))
    fails = patch.object(opening.items, "warm_up", side_effect=RuntimeError("no"))
    with fails as warmed, running(opening) as thread:
        assert warmed.called
        assert isinstance(asyncio.run(thread.answer(review("o1"))), Completion)


def test_what_takes_long_to_read_is_shown_as_long() -> None:
    """At least half of the time is left for those who answer, however long reading takes and
    however many read.
    """
    opening = Opening()
    opening.items.add(item("review-o1"))
    at = [1000.0]

    def takes(_: str) -> None:
        at[0] += 5

    opening.items.fails = takes
    with running(opening, monotonic=lambda: at[0]) as thread:
        for passed in (0, 4.9, 0.2, 0, 4.9):
            at[0] += passed
            assert 1 == len(asyncio.run(thread.waiting(["support"])).items)
    assert ["waiting", "waiting"] == opening.items.calls


def test_one_bad_answer_spoils_no_other() -> None:
    """If a batch raises what nobody foresaw, each of its answers is given by itself."""
    opening = Opening()
    opening.items.add(item("review-o1"), item("review-o2"), item("review-o3"))
    may_go, wait = held(opening, "complete")

    def fails(what: str) -> None:
        wait(what)
        if what == "complete 2":
            raise RuntimeError("one of them")

    opening.items.fails = fails
    with running(opening) as thread:

        async def answering(number: int) -> Completion:
            if number > 1:
                await until(lambda: "complete 1" in opening.items.calls)
            return await thread.answer(review(f"o{number}"))

        async def go_on() -> None:
            await until(lambda: len(thread._answers) == 2)
            may_go.set()

        *told, _ = together(*map(answering, (1, 2, 3)), go_on())
    assert all(isinstance(one, Completion) for one in told)


class Gone(Exception):
    """What Spark raises when its server is away."""

    def getGrpcStatusCode(self) -> Any:  # noqa: N802 - so Spark calls it
        """Return the status as gRPC has it."""
        return SimpleNamespace(name="UNAVAILABLE")


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (Gone("it has ended"), ["complete 3"]),
        (RuntimeError("each"), ["complete 3"] + 3 * ["complete 1"]),
    ],
)
def test_what_no_answer_is_the_reason_for_opens_the_outbox_again(
    error: Exception, tries: Sequence[str]
) -> None:
    """Where each of a batch fails, or the server has gone, it is not one of the answers: they are
    told to come again, and not tried one after the other if that can only take long.
    """
    opening = Opening()
    opening.items.add(*(item(f"review-o{number}") for number in range(4)))
    may_go, wait = held(opening, "complete")
    is_lost = [False]

    def fails(what: str) -> None:
        wait(what)
        if is_lost[0]:
            raise error

    opening.items.fails = fails
    with running(opening) as thread:

        async def answering(number: int) -> Any:
            await until(lambda: not number or "complete 1" in opening.items.calls)
            return await thread.answer(review(f"o{number}"))

        async def go_on() -> None:
            await until(lambda: len(thread._answers) == 3)
            opening.items.calls.clear()
            is_lost[0] = True
            may_go.set()

        first, *told, _ = together(*map(answering, range(4)), go_on())
    assert [NotInTime] * 4 == [type(one) for one in (first, *told)]
    assert tries == opening.items.calls
    assert opening.count >= 2


@pytest.mark.parametrize(
    "error",
    [ServerUnreachable(address="localhost:1", cause="it has ended"), RuntimeError("what is this")],
)
def test_a_lost_outbox_is_opened_again(error: Exception) -> None:
    """Who waits while the outbox is lost is told to ask again, and it is opened anew."""
    opening = Opening()
    opening.items.add(item("review-o1"))
    lost = [error]

    def fails(what: str) -> None:
        if lost:
            opening.problem = error if opening.count < 2 else None
            raise lost.pop()

    opening.items.fails = fails
    with running(opening) as thread:
        first = together(thread.answer(review("o1")))
        assert [NotInTime] == [type(one) for one in first]
        opening.problem = None
        again = together(thread.answer(review("o1")))
    assert [Completion] == [type(one) for one in again]
    assert opening.count >= 2


def test_what_cannot_be_opened_is_said_at_once() -> None:
    """An outbox that cannot be opened at the start ends the server with the reason."""
    opening = Opening()
    opening.problem = ServerUnreachable(address="localhost:1", cause="it has ended")
    with pytest.raises(OutboxError, match="has ended"):
        ItemThread(opening, answer_seconds=1).start()


def test_the_end_waits_for_what_is_written() -> None:
    """A server that is told to end writes what it has begun, and tells it."""
    opening = Opening()
    opening.items.add(item("review-o1"))
    may_go, _ = held(opening, "complete")
    with running(opening) as thread:

        async def ending() -> None:
            await until(lambda: "complete 1" in opening.items.calls)
            stopping = asyncio.create_task(asyncio.to_thread(thread.stop))
            await until(lambda: thread._is_ending)
            may_go.set()
            await stopping

        told, _ = together(thread.answer(review("o1")), ending())
    assert isinstance(told, Completion)


def test_items_end_after_all_who_wait() -> None:
    """Items are ended once those who ask meanwhile are told, and only where an answer was written
    that has not ended its item.
    """
    opening = Opening()
    opening.items.add(item("review-o1"), item("review-o2"))
    may_go, _ = held(opening, "complete")
    with running(opening) as thread:

        async def asking() -> None:
            await until(lambda: "complete 1" in opening.items.calls)
            asked = asyncio.create_task(thread.waiting(["support"]))
            await until(lambda: len(thread._questions) == 1)
            may_go.set()
            await asked

        together(thread.answer(review("o1")), asking())
        for given in (review("o1"), review("o1", send=False)):
            together(thread.answer(given))
    calls = ["complete 1", "waiting", "end", "complete 1", "complete 1"]
    assert calls == opening.items.calls


def test_nobody_waits_for_the_end_of_an_item() -> None:
    """Who answers is told as soon as the answer is on record, before the item is ended."""
    opening = Opening()
    opening.items.add(item("review-o1"))
    may_go, _ = held(opening, "end")
    with running(opening) as thread:
        told = asyncio.run(asyncio.wait_for(thread.answer(review("o1")), 20))
        assert isinstance(told, Completion)
        may_go.set()
    assert ["complete 1", "end"] == opening.items.calls

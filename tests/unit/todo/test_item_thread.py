"""The thread that asks the outbox: what it does at once, and what becomes of those who wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.unit.todo.memory_items import MemoryItems, MemoryKeys, item

from delta_outbox.core.errors import OutboxError, ServerUnreachable
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
def running(opening: Opening, seconds: float = 10.0) -> Iterator[ItemThread]:
    """Run the thread for a block."""
    thread = ItemThread(opening, answer_seconds=seconds)
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


def test_many_readers_cost_one_question() -> None:
    """Who asks the same at once, or within a second, is told what one question has found; after an
    answer everybody asks anew.
    """
    opening = Opening()
    opening.items.add(item("review-o1"), item("review-o2"))
    with running(opening) as thread:

        async def asked() -> list[Any]:
            first = await asyncio.gather(*(thread.waiting("support") for _ in range(100)))
            first += [await thread.waiting("support")]
            await thread.answer(review("o1"))
            return [*first, await thread.waiting("support")]

        *before, after = asyncio.run(asked())
    assert {2} == {len(one) for one in before}
    assert ["review-o2"] == [one.task_id for one in after]
    assert ["waiting", "complete 1", "end", "waiting"] == opening.items.calls


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

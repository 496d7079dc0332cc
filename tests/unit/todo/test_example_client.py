"""The client that the example of orders has, against a real server of items."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.todo.memory_items import Office, item, office
from todo_client import KeyRefused, TodoClient, Told


@pytest.fixture
def desk() -> Iterator[Office]:
    """Return an office without items."""
    with office() as opened:
        yield opened


def client(desk: Office, who: dict[str, str]) -> TodoClient:
    """Return the client of somebody."""
    key = who["Authorization"].removeprefix("Bearer ")
    return TodoClient(str(desk.client.base_url).rstrip("/"), key, at_once=2)


def test_all_pages_are_listed(desk: Office) -> None:
    """Somebody sees all that waits for them, whatever the number."""
    desk.items.add(*(item(f"review-o{number}") for number in range(450)))
    found = [one.task_id for one in client(desk, desk.key()).waiting()]
    assert 450 == len({*found}) == len(found)


def test_what_becomes_of_an_answer_is_told(desk: Office) -> None:
    """An answer counts, is a repeat, is refused with a reason; or nobody knows, and the same again
    finds out.
    """
    desk.items.add(item("review-o1"))
    support = client(desk, desk.key())
    (waits,) = support.waiting()
    yes, no = ({"order": "o1", "send": send} for send in (True, False))

    def fails(what: str) -> None:
        if what.startswith("complete"):
            raise ConnectionError

    desk.items.fails = fails
    assert support.answer(waits, yes) is None
    desk.items.fails = lambda _: None
    assert Told(outcome="yes") == support.answer(waits, yes)
    assert Told(outcome="yes", is_repeat=True) == support.answer(waits, yes)
    assert Told(refusal="ANSWERED_ALREADY") == support.answer(waits, no)


def test_who_is_not_known_learns_it_and_nobody_answers_where_no_server_is(desk: Office) -> None:
    """A key that does not count is an error. A server that is gone has no items for now."""
    with pytest.raises(KeyRefused):
        list(client(desk, {"Authorization": "Bearer x"}).waiting())
    desk.items.add(item("review-o1"))
    (waits,) = client(desk, desk.key()).waiting()
    nobody = TodoClient("http://127.0.0.1:9", "x", at_once=1)
    assert [] == list(nobody.waiting())
    assert nobody.answer(waits, {}) is None

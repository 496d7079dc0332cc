"""From where a group of consumers goes on: never past a message that is held."""

from __future__ import annotations

import random

import pytest
from confluent_kafka import Message

from delta_outbox.todo.queue.offsets import MOST_BYTES, MOST_HELD, Held, Offsets


def held(offset: int, *, partition: int = 0, size: int = 2) -> Held:
    """Return a message that has just come."""
    message = Message("answers", partition, offset, None, b"x" * size)
    return Held(message=message, try_at=0)


def test_a_group_goes_on_before_what_is_held() -> None:
    """The offset of a partition is that of its first message that is not done; behind the last one
    if all are. Each is committed once.
    """
    offsets = Offsets()
    assert {} == offsets.to_commit()
    first, second, third = (held(number) for number in (7, 8, 11))
    for one in (first, second, third, held(3, partition=1)):
        offsets.add(one)
    offsets.done(second)
    assert {("answers", 0): 7, ("answers", 1): 3} == offsets.to_commit()
    offsets.committed(offsets.to_commit())
    assert {} == offsets.to_commit()
    offsets.done(first)
    assert {("answers", 0): 11} == offsets.to_commit()
    offsets.done(third)
    assert {("answers", 0): 12} == offsets.to_commit()


def test_what_somebody_else_has_is_forgotten() -> None:
    """Of a partition that went to another consumer nothing is committed, and nothing is held."""
    offsets = Offsets()
    one, other = held(1), held(2, partition=1)
    offsets.add(one)
    offsets.add(other)
    offsets.forget([("answers", 0)])
    offsets.done(one)
    assert [other] == [*offsets.held()]
    assert {("answers", 1): 2} == offsets.to_commit()


@pytest.mark.parametrize(("count", "size"), [(MOST_HELD, 1), (64, MOST_BYTES // 64)])
def test_what_is_held_is_bounded(count: int, size: int) -> None:
    """So many messages, or bytes of them, are held and no more."""
    offsets = Offsets()
    for number in range(count):
        assert not offsets.is_full
        offsets.add(held(number, size=size))
    assert offsets.is_full
    offsets.done(next(offsets.held()))
    assert not offsets.is_full


def test_no_message_is_passed_over() -> None:
    """In whatever order messages are done, and whenever it is committed: what is committed lies
    behind nothing that is held.
    """
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    chance = random.Random(seed)
    offsets, open_, next_ = Offsets(), list[Held](), 0
    committed = 0
    for _ in range(2000):
        if chance.random() < 0.5 or not open_:
            open_.append(held(next_))
            offsets.add(open_[-1])
            next_ += 1
        else:
            offsets.done(open_.pop(chance.randrange(len(open_))))
        if chance.random() < 0.3:
            found = offsets.to_commit()
            offsets.committed(found)
            committed = found.get(("answers", 0), committed)
            assert all((one.message.offset() or 0) >= committed for one in open_)
    while open_:
        offsets.done(open_.pop())
    assert {("answers", 0): next_} == offsets.to_commit()

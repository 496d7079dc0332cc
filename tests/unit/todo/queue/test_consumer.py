"""What becomes of a message that came by a topic, whoever brings it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message
from tests.unit.runtime.settings_files import load, refusal
from tests.unit.todo.memory_items import ELSEWHERE, MemoryItems, MemoryKeys, item

from delta_outbox.core.errors import (
    BadSettings,
    DiskFull,
    LogRewound,
    NotSynced,
    OutboxError,
    SequenceTaken,
)
from delta_outbox.core.settings import QueueSettings, SecretMapping
from delta_outbox.todo.item_thread import ItemThread, NotInTime, OpenOutbox
from delta_outbox.todo.queue.consumer import (
    RETRY_SECONDS,
    AnswerQueue,
    client_settings,
    types_by_topic,
)
from delta_outbox.todo.queue.offsets import Held
from delta_outbox.workflow_engine.item_decisions import UndecidedAnswer

TOPIC = "orders.payments"
HOLD = 60.0  # seconds
SETTINGS = QueueSettings(
    client=SecretMapping({"bootstrap.servers": "127.0.0.1:1"}), hold_seconds=HOLD
)


class Queue:
    """A queue that a test brings messages, in its own time."""

    def __init__(self, items: MemoryItems, thread: ItemThread) -> None:
        self.items, self.now, self.offset = items, 0.0, 0
        self.queue = AnswerQueue(
            thread,
            types_by_topic(items.types()),
            SETTINGS,
            client_settings(SETTINGS),
            monotonic=lambda: self.now,
        )

    def bring(self, *values: Any) -> None:
        """Bring messages: objects of JSON, or bytes."""
        for value in values:
            raw = value if isinstance(value, bytes | None) else json.dumps(value).encode()
            message = Message(TOPIC, 0, self.offset, None, raw)
            self.queue.offsets.add(Held(message=message, try_at=self.now))
            self.offset += 1

    def judge(self) -> list[tuple[int | None, str]]:
        """Judge what is due; return what is a dead letter, and why."""
        letters = asyncio.run(self.queue.judge())
        assert {f"{TOPIC}.dead"} >= {one.topic for one in letters}
        for one in letters:
            self.queue.offsets.done(one.held)
        return [(one.held.message.offset(), one.why.code) for one in letters]

    def held(self) -> list[int | None]:
        """Return the offsets of what nobody has decided."""
        return [one.message.offset() for one in self.queue.offsets.held()]


@contextmanager
def opened_queue(*, answer_seconds: float) -> Iterator[Queue]:
    """Open a queue of answers to payments, of which one is open, for a block."""
    items = MemoryItems(topics={"payment": TOPIC})
    items.add(item("payment-o1", task="payment"), item("review-o1"))

    @contextmanager
    def opened() -> Iterator[OpenOutbox]:
        yield OpenOutbox(items=items, keys=MemoryKeys())

    thread = ItemThread(opened, answer_seconds=answer_seconds)
    thread.start()
    yield Queue(items, thread)
    thread.stop()


@pytest.fixture
def queue() -> Iterator[Queue]:
    """Return a queue that is never in a hurry."""
    with opened_queue(answer_seconds=60) as queue:
        yield queue


def test_what_takes_longer_than_one_waits_is_done() -> None:
    """Messages whose round takes longer than `answer_seconds` are done by that round, and not given
    again behind it.
    """
    with opened_queue(answer_seconds=0.05) as queue:
        may_go = threading.Event()

        def waits(what: str) -> None:
            if what.startswith("complete"):
                assert may_go.wait(10)

        queue.items.fails = waits
        queue.items.add(item("payment-o2", task="payment"))
        queue.bring({"order": "o1", "paid": True}, {"order": "o2", "paid": True})
        for _ in range(3):
            assert [] == queue.judge()
            assert [0, 1] == queue.held()
            queue.now += RETRY_SECONDS
        may_go.set()
        while queue.held():
            assert [] == queue.judge()
            queue.now += RETRY_SECONDS
    assert 1 == sum(one.startswith("complete") for one in queue.items.calls)
    assert {(TOPIC, 0): 2} == queue.queue.offsets.to_commit()


def test_an_answer_is_on_record_before_it_is_done(queue: Queue) -> None:
    """An answer counts as over HTTP; repeats are told alike, another one and a late one are on
    record, and what is about none of our items is passed over.
    """
    paid = {"order": "o1", "paid": True}
    queue.bring(paid, paid, {"order": "o1", "paid": False}, {"order": ELSEWHERE, "paid": True})
    queue.items.add(item("payment-o2", task="payment"))
    queue.items.late.add("payment-o2")
    queue.bring({"order": "o2", "paid": True})
    assert [] == queue.judge()
    assert [] == queue.held()
    who = f"kafka:{TOPIC}"
    assert [("payment-o1", who)] * 2 + [("payment-o2", who)] == queue.items.recorded
    assert "yes" == queue.items.answers["payment-o1"][0]
    assert 1 == sum(one.startswith("complete") for one in queue.items.calls)


def test_the_first_in_the_topic_counts(queue: Queue) -> None:
    """Of answers to one item that come together the first in the topic counts."""
    for number in range(20):
        order = f"r{number}"
        queue.items.add(item(f"payment-{order}", task="payment"))
        first = number % 2 == 0
        queue.bring({"order": order, "paid": first}, {"order": order, "paid": not first})
    queue.judge()
    expected = ["yes" if number % 2 == 0 else "no" for number in range(20)]
    assert expected == [queue.items.answers[f"payment-r{number}"][0] for number in range(20)]


@pytest.mark.parametrize("is_unreachable", [False, True])
def test_the_first_in_the_topic_counts_if_it_was_early(
    queue: Queue, *, is_unreachable: bool
) -> None:
    """An answer waits behind an earlier one to the same item that came before the item was open, or
    while the outbox was not reached, and goes with it at its next turn.
    """

    def fails(what: str) -> None:
        if is_unreachable and what.startswith("complete"):
            raise SequenceTaken(writer="outbox/todo", number=1)

    queue.items.fails = fails
    queue.bring({"order": "o8", "paid": True})
    assert [] == queue.judge()
    queue.items.add(item("payment-o8", task="payment"))
    queue.items.fails = lambda _: None
    queue.now += RETRY_SECONDS / 2
    queue.bring({"order": "o8", "paid": False}, {"order": "o1", "paid": True})
    assert [] == queue.judge()
    assert [0, 1] == queue.held()
    queue.now += RETRY_SECONDS / 2
    assert [] == queue.judge()
    assert [] == queue.held()
    assert "yes" == queue.items.answers["payment-o8"][0]


def test_the_first_in_the_topic_counts_if_nobody_could_read_it(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nobody can say what a message is about, because the outbox is opened anew, whatever
    comes behind it in its partition waits too.
    """
    correlated, closed = queue.queue._thread.correlated, [True]

    async def reopening(workflow: str, task: str, data: Any) -> Any:
        if closed:
            closed.pop()
            raise NotInTime("the outbox is not open")
        return await correlated(workflow, task, data)

    monkeypatch.setattr(queue.queue._thread, "correlated", reopening)
    queue.bring({"order": "o1", "paid": True}, {"order": "o1", "paid": False})
    assert [] == queue.judge()
    queue.bring({"order": "o1", "paid": False})
    assert [] == queue.judge()
    assert [0, 1, 2] == queue.held()
    queue.now += RETRY_SECONDS
    assert [] == queue.judge()
    assert [] == queue.held()
    assert "yes" == queue.items.answers["payment-o1"][0]


def test_poison_is_a_dead_letter(queue: Queue) -> None:
    """What can be no answer is a dead letter with its reason; what comes with it counts."""
    poison = [None, b"", b"{", b"[]", b"\xff", b'{"a":' * 65 + b"1" + b"}" * 65]
    queue.bring(*poison, b'{"a": "' + b"x" * 2**20 + b'"}', {"order": 7}, {"order": "o1"})
    queue.bring({"order": "o1", "paid": True})
    codes = ["NOT_JSON"] * 6 + ["TOO_LARGE", "BAD_ANSWER", "BAD_ANSWER"]
    assert [*enumerate(codes)] == queue.judge()
    assert [] == queue.held()
    assert 1 == len(queue.items.recorded)


def test_an_early_answer_waits(queue: Queue) -> None:
    """An answer whose item is not open yet is held, and counts when it opens; where none opens
    within `hold_seconds` it is a dead letter. Others do not wait for it.
    """
    queue.bring({"order": "o8", "paid": True}, {"order": "o9", "paid": True})
    queue.bring({"order": "o1", "paid": True})
    assert [] == queue.judge()
    assert [0, 1] == queue.held()
    assert {(TOPIC, 0): 0} == queue.queue.offsets.to_commit()
    queue.items.add(item("payment-o8", task="payment"))
    assert [] == queue.judge()
    assert [0, 1] == queue.held()  # not asked again at once
    queue.now += RETRY_SECONDS
    assert [] == queue.judge()
    assert [1] == queue.held()
    queue.now = HOLD
    assert [(1, "UNKNOWN_ITEM")] == queue.judge()
    assert {(TOPIC, 0): 3} == queue.queue.offsets.to_commit()


def test_time_without_the_outbox_does_not_count_as_early(queue: Queue) -> None:
    """Nobody opens an item while the outbox cannot be reached, so its answer may wait longer."""

    def fails(what: str) -> None:
        if what.startswith("complete"):
            raise SequenceTaken(writer="outbox/todo", number=1)

    queue.bring({"order": "o8", "paid": True})
    assert [] == queue.judge()
    queue.now += HOLD / 2
    queue.items.fails = fails
    assert [] == queue.judge()
    queue.now += 2 * HOLD
    queue.items.fails = lambda _: None
    assert [] == queue.judge()
    queue.now += HOLD - 1
    queue.items.add(item("payment-o8", task="payment"))
    assert [] == queue.judge()
    assert [] == queue.held()


@pytest.mark.parametrize(
    "error",
    [
        SequenceTaken(writer="outbox/todo", number=1),
        DiskFull(table="outbox.outbox_commands", cause="no space"),
        NotSynced(what="a log", cause="the disk says no"),
        LogRewound(table="outbox.outbox_commands", writer="w", number=1),
    ],
    ids=lambda error: error.code,
)
def test_what_others_may_mend_is_never_given_up(queue: Queue, error: OutboxError) -> None:
    """While the outbox is in trouble messages are held, whatever it is and however long that takes;
    from then on those wait as early ones for which the code of the author fails.
    """
    trouble: list[Exception] = [error]

    def fails(what: str) -> None:
        if what.startswith("complete"):
            raise trouble[0]

    queue.items.fails = fails
    queue.bring({"order": "o1", "paid": True})
    for _ in range(3):
        assert [] == queue.judge()
        assert [0] == queue.held()
        queue.now += HOLD
    trouble[0] = UndecidedAnswer("payment-o1: orders.payment.decide: ValueError.")
    for _ in range(2):
        assert [] == queue.judge()
        queue.now += HOLD / 2
    assert [(0, "UNDECIDED_ANSWER")] == queue.judge()
    queue.bring({"order": "o1", "paid": True})
    assert [] == queue.judge()
    queue.items.fails = lambda _: None
    queue.now += RETRY_SECONDS
    assert [] == queue.judge()
    assert [] == queue.held()
    assert 1 == len(queue.items.recorded)


def test_time_in_which_nothing_could_be_read_does_not_count_as_early(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several early answers none grows older while the outbox is opened anew."""
    queue.bring({"order": "o8", "paid": True}, {"order": "o9", "paid": True})
    assert [] == queue.judge()
    queue.now += RETRY_SECONDS

    async def closed(workflow: str, task: str, data: Any) -> Any:
        raise NotInTime("the outbox is not open")

    with monkeypatch.context() as patched:
        patched.setattr(queue.queue._thread, "correlated", closed)
        assert [] == queue.judge()
        queue.now += 2 * HOLD
        assert [] == queue.judge()
        queue.now += RETRY_SECONDS
    assert [] == queue.judge()
    assert [0, 1] == queue.held()


def test_a_topic_is_of_one_type() -> None:
    """No topic at all, or one for two types of items, is refused by name."""
    with pytest.raises(BadSettings, match="No To-Do class has a topic"):
        types_by_topic(MemoryItems().types())
    with pytest.raises(BadSettings, match=r"orders\.review and orders\.payment|'t'"):
        types_by_topic(MemoryItems(topics={"review": "t", "payment": "t"}).types())


def test_settings_of_the_queue_are_read(tmp_path: Path) -> None:
    """`[todo.kafka]` has settings of the client, and three of its own; secrets are shown nowhere,
    and missed where the client is made.
    """
    assert QueueSettings() == load(tmp_path, "").todo.kafka
    text = (
        '[todo.kafka]\n"bootstrap.servers" = "k:9092"\n"sasl.password" = "${P}"\n'
        'group = "g"\nhold_seconds = 5\ndead_letter_topic = "dead"\n'
    )
    found = load(tmp_path, text, P="a secret of the broker").todo.kafka
    assert ("g", 5.0, "dead") == (found.group, found.hold_seconds, found.dead_letter_topic)
    assert "a secret of the broker" == client_settings(found).connection["sasl.password"]
    assert "a secret" not in repr(found)
    with pytest.raises(BadSettings, match="P, which is not set"):
        client_settings(load(tmp_path, text).todo.kafka)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("hold_seconds = -1", "`todo.kafka.hold_seconds`"),
        ('group = ""', "`todo.kafka.group`"),
        ('dead_letter_topic = "a b"', "`todo.kafka.dead_letter_topic`"),
    ],
)
def test_bad_settings_of_the_queue_are_refused(tmp_path: Path, line: str, named: str) -> None:
    """What means nothing is refused by name."""
    assert named in refusal(tmp_path, f"[todo.kafka]\n{line}\n")


@pytest.mark.parametrize(
    ("client", "named"),
    [
        ({}, "bootstrap.servers"),
        ({"bootstrap.servers": "k:1", "topics": ["x"]}, "todo.kafka.topics"),
        ({"bootstrap.servers": "k:1", "delivery": "exactly_once"}, "todo.kafka.delivery"),
        ({"bootstrap.servers": "k:1", "acks": "0"}, "acks"),
        ({"bootstrap.servers": "k:1", "group.id": "x"}, "group.id"),
    ],
)
def test_the_client_is_bounded(client: dict[str, object], named: str) -> None:
    """The client takes the settings of a publisher, without what a reader has no use for."""
    with pytest.raises(BadSettings, match=named):
        client_settings(QueueSettings(client=SecretMapping(client)))

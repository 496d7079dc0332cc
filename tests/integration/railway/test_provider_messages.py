"""A payment provider that signs its messages: the example of docs/railway/todo.md as it stands."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.integration.outboxes import Store, open_store
from tests.unit.todo.memory_items import MemoryKeys
from tests.unit.todo.serving import serving

from delta_outbox.core.clock import SystemClock
from delta_outbox.core.settings import (
    PublisherSettings,
    Settings,
    SignatureSettings,
    TodoSettings,
    WorkflowSettings,
)
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.railway.modules import load
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.relay import Mode, Relay
from delta_outbox.todo.app import create_app
from delta_outbox.todo.credentials import Credentials, KeyRing
from delta_outbox.todo.desk import Desk
from delta_outbox.todo.item_thread import ItemThread, OpenOutbox
from delta_outbox.workflow_engine.execution.tasks import Tasks
from delta_outbox.workflow_engine.hosts.call import Setup
from delta_outbox.workflow_engine.item_answers import (
    AnsweredAlready,
    GivenAnswer,
    KeyUsedAgain,
)
from delta_outbox.workflow_engine.items import Items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.home import Home

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "railway" / "todo.md").read_text(encoding="utf-8")
IMPORTS = """\
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from delta_outbox.railway import Decided, Event, Item, Outcome, Task, ToDo, Trigger, Workflow, route
"""
SECRET = "whsec_of the tests, which is long enough"
WHO = {"actor": "ann", "reason": "she has called them"}
SETTINGS = Settings(
    publishers={"default": PublisherSettings(type="null")},
    workflows=WorkflowSettings(modules=("payments",)),
)
TODO = TodoSettings(
    answer_seconds=240,  # the machine of a test may be busy
    signatures={
        "payments/receive_payment": SignatureSettings(
            scheme="stripe", person="stripe", secrets=(SECRET,)
        )
    },
)
ANSWERS = "/answers/payments/receive_payment"


def block(language: str) -> str:
    """Return the block of the page in a language."""
    section = PAGE.partition("\n## Webhooks of providers\n")[2].partition("\n## ")[0]
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def author(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the folder of the module that the page shows."""
    folder = tmp_path_factory.mktemp("payments")
    (folder / "payments.py").write_text(IMPORTS + block("python"))
    yield folder
    sys.modules.pop("payments", None)


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home, author: Path) -> Iterator[Store]:
    """Return an outbox in which payments are workflows."""
    with open_store(spark, home, "t_payments") as opened:
        rows = joined(rows_of(one) for one in load(["payments"], author))
        writes = NumberedWrites(spark, opened.tables, writer="workflows", clock=SystemClock())
        assert writes.append_after(None, {"version": "1", "rows": rows}, planned_by="tests")
        yield opened


def relayed(store: Store, author: Path) -> None:
    """Let a relay open what is to be opened."""
    outbox = store.open(SETTINGS)
    tasks = Tasks(outbox, Setup(modules=["payments"], folder=author))
    try:
        Relay(outbox, tasks=tasks).run(Mode.DRAIN)
    finally:
        tasks.close()
        outbox.close()


@contextmanager
def served(store: Store, author: Path) -> Iterator[str]:
    """Serve the items for a block, and yield the address."""

    @contextmanager
    def opened() -> Iterator[OpenOutbox]:
        outbox = store.open(SETTINGS)
        try:
            yield OpenOutbox(
                items=Items(outbox, folder=author, ends_items=False), keys=MemoryKeys()
            )
        finally:
            outbox.close()

    thread = ItemThread(opened, answer_seconds=TODO.answer_seconds)
    thread.start()
    try:
        credentials = Credentials(KeyRing(MemoryKeys), None)
        app = create_app(Desk(thread, clock=SystemClock()), TODO, credentials=credentials)
        with serving(app, TODO) as address:
            yield address
    finally:
        thread.stop()


def event(
    order: str, attempt: int, *, is_paid: bool = True, id_: str = "evt_1", **more: Any
) -> Any:
    """Return an event of Stripe about an attempt to pay an order."""
    kind = "succeeded" if is_paid else "payment_failed"
    metadata = {"order": order, "attempt": str(attempt)}
    return {
        "id": id_,
        "type": f"payment_intent.{kind}",
        "data": {"object": {"amount": 4200, "metadata": metadata}},
        **more,
    }


def sent(address: str, data: Any) -> tuple[int, Any]:
    """Send an event as Stripe does; return what it is told."""
    body = json.dumps(data).encode()
    at = int(time.time())
    signed = hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {"Stripe-Signature": f"t={at},v1={signed}", "Content-Type": "application/json"}
    told = httpx.post(f"{address}{ANSWERS}", content=body, headers=headers, timeout=500)
    return told.status_code, told.json()


def recorded(store: Store, order: str) -> list[tuple[Any, ...]]:
    """Return what is in the command log about the items of an order: item, actor, outcome."""
    found = store.rows(
        "select event_id, actor, get_json_object(arguments, '$.outcome') as outcome "
        f"from {store.tables.commands} where event_id like 'receive-payment-{order}-%' "
        "order by requested_at"
    )
    return [(row["event_id"][-1], row["actor"], row["outcome"]) for row in found]


def test_each_message_has_its_place(store: Store, author: Path) -> None:
    """What the page shows happens. A message that comes early is not taken, one that is repeated is
    told the same, and one about an earlier attempt never closes the item of the next.
    """
    store.insert(
        *((f"asked-{one}", "payment.asked", json.dumps({"order": one})) for one in ("o4711", "o1"))
    )
    with served(store, author) as address:
        assert 404 == sent(address, event("o1", 1))[0]
        relayed(store, author)

        shell = block("sh").replace("http://127.0.0.1:8765", address)
        environment = {**os.environ, "STRIPE_WEBHOOK_SECRET": SECRET}
        done = subprocess.run(
            ["bash", "-c", shell], env=environment, capture_output=True, text=True, check=True
        )
        assert f"It prints `{done.stdout.strip()}`" in PAGE

        refused = event("o1", 1, is_paid=False)
        told = {"task_id": "receive-payment-o1-1", "outcome": "refused", "is_repeat": False}
        assert (200, told) == sent(address, refused)
        assert 404 == sent(address, event("o1", 2, id_="evt_2"))[0]  # early: a relay is to open it
        relayed(store, author)
        again = (200, {**told, "is_repeat": True})
        assert again == sent(address, refused)
        assert again == sent(address, {**refused, "pending_webhooks": 7})
        noted = {"task_id": "receive-payment-o1-1", "outcome": "refused"}
        assert (202, noted) == sent(address, event("o1", 1, id_="evt_3"))
        assert 401 == httpx.post(f"{address}{ANSWERS}", json=refused, timeout=500).status_code
        other = {**event("o1", 2, id_="evt_4"), "type": "customer.created"}
        assert (202, {"task_id": None, "outcome": None}) == sent(address, other)
        relayed(store, author)
        expected = [("1", "stripe", "refused"), ("1", "stripe", "paid")]
        assert expected == recorded(store, "o1")

        paid = event("o1", 2, id_="evt_2")
        told = {"task_id": "receive-payment-o1-2", "outcome": "paid", "is_repeat": False}
        assert (200, told) == sent(address, paid)
        assert again == sent(address, refused)
        assert [*expected, ("2", "stripe", "paid")] == recorded(store, "o1")


def test_messages_at_once(store: Store, author: Path) -> None:
    """Of several answers at once, messages that do not count are on record all the same, once, and
    a key that stands for another answer is told so.
    """
    store.insert(("asked-o2", "payment.asked", json.dumps({"order": "o2"})))
    relayed(store, author)
    items = Items(store.open(SETTINGS), folder=author)
    task_id = "receive-payment-o2-1"

    def given(number: int, *, is_paid: bool, key: str, is_message: bool) -> GivenAnswer:
        data = event("o2", 1, is_paid=is_paid, id_=f"evt_{number}")
        return GivenAnswer(task_id=task_id, data=data, key=key, is_message=is_message)

    first = given(1, is_paid=True, key="a", is_message=False)
    used = given(2, is_paid=False, key="a", is_message=False)
    person = given(3, is_paid=False, key="b", is_message=False)
    message = given(4, is_paid=False, key="c", is_message=True)
    same = given(5, is_paid=False, key="a", is_message=True)
    told = items.complete_many([first, used, person, message, same, first], **WHO)
    assert [KeyUsedAgain, AnsweredAlready, AnsweredAlready] == [type(one) for one in told[1:4]]
    assert ["paid"] * 3 == [getattr(told[place], "outcome", None) for place in (0, 4, 5)]
    assert [("1", "ann", "paid"), ("1", "ann", "refused")] == recorded(store, "o2")
    told = items.complete_many([used, person, message, same], **WHO)
    assert [KeyUsedAgain, AnsweredAlready, AnsweredAlready] == [type(one) for one in told[:3]]
    assert 2 == len(recorded(store, "o2"))

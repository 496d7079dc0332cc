"""How long a request waits, over all that it waits for."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.unit.todo.memory_items import item, office

from delta_outbox.core.settings import TodoSettings
from delta_outbox.todo.patience import limited, within


def test_all_that_a_request_awaits_has_one_limit() -> None:
    """What one wait has used up, the next ones do not have; outside of a request each has its own
    time.
    """

    async def asked() -> None:
        with limited(0.05):
            assert "now" == await within(60, asyncio.sleep(0, "now"))
            with pytest.raises(TimeoutError):
                await within(60, asyncio.sleep(3600))
            with pytest.raises(TimeoutError):
                await within(60, asyncio.sleep(0.01, "soon"))
        assert "soon" == await within(60, asyncio.sleep(0.01, "soon"))

    asyncio.run(asked())


def test_a_request_has_the_seconds_of_the_settings() -> None:
    """Whatever a request waits for, `answer_seconds` are all that it has."""
    settings = TodoSettings(answer_seconds=0.3)
    may_go = threading.Event()
    with office(settings, thread_seconds=3600) as desk:
        desk.items.add(item("review-o1"))
        desk.items.fails = lambda _: may_go.wait(5)
        told = desk.client.get("/items", headers=desk.key())
        may_go.set()
    assert 503 == told.status_code

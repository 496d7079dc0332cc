"""How many tasks may be claimed: as many as can be attempted at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from delta_outbox.testing.conformance.clock import ManualClock
from delta_outbox.workflow_engine.execution.tasks import Tasks
from delta_outbox.workflow_engine.hosts.call import TaskFacts

POST, MAIL, KEY, OTHER = "workflow:w/post", "workflow:w/mail", "workflow:w/key", "workflow:w/other"


def facts(category: str) -> TaskFacts:
    """Return what is known of a task of a third party."""
    return TaskFacts(category=category, third_party="p", asynchronous=False, can_look_up=False)


@pytest.mark.parametrize(
    ("unread", "types", "allowed"),
    [
        ({}, [POST, MAIL, POST, MAIL], [True, True, False, False]),
        ({}, [MAIL, KEY, MAIL, KEY, POST, KEY], [True, True, True, True, False, False]),
        ({MAIL: 1}, [POST, POST, KEY], [True, False, True]),
        ({POST: 1, MAIL: 4}, [POST], [False]),
        ({}, [OTHER, KEY], [False, True]),
    ],
)
def test_what_runs_in_the_same_places_shares_the_room(
    *, unread: dict[str, int], types: Sequence[str], allowed: Sequence[bool]
) -> None:
    """Two places are free for calls of black boxes and two for others, whichever tasks they are of;
    what was claimed and has not begun counts, and what no host knows has no room, which is told.
    """
    tasks = object.__new__(Tasks)
    known = {
        name.removeprefix("workflow:"): facts("idempotent" if name == KEY else "black_box")
        for name in (POST, MAIL, KEY)
    }
    hosts = SimpleNamespace(tasks=known, room=lambda *_: 2, problem=None)
    tasks._in_force = cast("Any", SimpleNamespace(hosts=hosts, problem=None))
    tasks._clock, tasks._waits = ManualClock(), {}
    tasks._items = set()
    tasks._unread = Counter(unread)
    assert list(allowed) == tasks.allowed(pa.table({"event_type": types})).tolist()
    assert (OTHER in types) == ("w.other is not there" in (tasks.problem or ""))

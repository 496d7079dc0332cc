"""What has happened to an item, as its commands and its delivery say it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.workflow_engine.derived_log import NOW, open_task

from delta_outbox.core.instants import iso_text
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.railway.routing import Place
from delta_outbox.workflow_engine.item_answers import winner
from delta_outbox.workflow_engine.item_deliveries import Delivery
from delta_outbox.workflow_engine.item_history import history

HOUR = timedelta(hours=1)
END = NOW + 9 * HOUR


def delivery(**stands: Any) -> Delivery:
    """Return where an item stands that was opened now, and expires nine hours later."""
    task = open_task(place=Place(task="ask", visits={"ask": 1}), task_id="ask-1", expires_at=END)
    open_: dict[str, Any] = {
        "arrival": 2,
        "lifecycle": 1,
        "state": State.CLAIMED,
        "attempts": 1,
        "until": END,
        "reason": Reason.CLAIMED,
        "outcome": None,
        "changed_at": NOW,
    }
    return Delivery(task=task, **{**open_, **stands})


def over(reason: Reason, outcome: str | None, *, after: timedelta) -> Delivery:
    """Return where an item stands that has ended."""
    state = State.DEAD if reason == Reason.OPERATOR else State.PUBLISHED
    ended: dict[str, Any] = {"state": state, "reason": reason, "outcome": outcome}
    return delivery(**ended, until=None, changed_at=NOW + after)


def command(kind: str, hours: float, by: str, **said: str) -> dict[str, Any]:
    """Return a command about the item, some hours after it was opened."""
    return {
        "command_id": f"{kind}-{hours}",
        "kind": kind,
        "requested_at": NOW + hours * HOUR,
        "actor": by,
        "arguments": json.dumps(said),
        "deadline": END,
    }


def told(found: Delivery, *commands: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Return what has happened, and who has done it."""
    return [(one.what, one.by) for one in history(found, commands, winner(found, commands))]


TAKEN = command("assign", 1, "ann", to="ann")
GIVEN = command("assign", 2, "boss", to="bob")
BACK = command("assign", 3, "bob", to="")
LATER = command("extend", 4, "boss", **{"from": iso_text(END), "until": iso_text(END + HOUR)})
ANSWER = command("complete", 5, "cleo", outcome="yes", data='{"secret": 1}')


def test_a_history_says_who_has_done_what() -> None:
    """Each change is told with who made it, in the order of the log; how an answer was worded is
    not, and of one that does not count neither what it would have come to.
    """
    later = command("complete", 6, "dan", outcome="no", data='{"secret": 2}')
    found = over(Reason.COMPLETED, "yes", after=5 * HOUR)
    its = [TAKEN, GIVEN, BACK, LATER, ANSWER, later]
    shown = history(found, its, winner(found, its))
    assert [
        ("opened", None),
        ("taken", "ann"),
        ("assigned", "boss"),
        ("released", "bob"),
        ("extended", "boss"),
        ("answered", "cleo"),
        ("answered_late", "dan"),
    ] == [(one.what, one.by) for one in shown]
    assert ["bob", iso_text(END + HOUR)] == [shown[2].to, shown[4].until]
    assert [None] * 5 + ["yes", None] == [one.outcome for one in shown]
    assert "secret" not in repr(shown)


@pytest.mark.parametrize(
    ("found", "ending"),
    [
        (over(Reason.EXPIRED, "too_late", after=9 * HOUR), [("expired", None)]),
        (over(Reason.UNCERTAIN, "unknown", after=9 * HOUR), [("ended", None)]),
        (delivery(until=NOW + 4 * HOUR), []),
    ],
)
def test_what_nobody_has_answered_in_time_ends_by_itself(
    found: Delivery, ending: list[tuple[str, str | None]]
) -> None:
    """An answer after the end is told as one that came too late, also before the end is on record;
    who takes the item after its end changes nothing.
    """
    late = command("complete", 10, "cleo", outcome="yes") | {"deadline": NOW + 4 * HOUR}
    its = [TAKEN, late]
    if found.is_over:
        its.append(command("assign", 11, "bob", to="bob"))
    assert [("opened", None), ("taken", "ann"), *ending, ("answered_late", "cleo")] == told(
        found, *its
    )


def test_a_kill_ends_a_history() -> None:
    """Who has cancelled an item is told, before and after the kill is applied."""
    kill = command("kill", 2, "boss")
    after = command("assign", 3, "bob", to="bob")
    expected = [("opened", None), ("taken", "ann"), ("cancelled", "boss")]
    assert expected == told(delivery(), TAKEN, kill, after)
    assert expected == told(over(Reason.OPERATOR, None, after=4 * HOUR), TAKEN, kill, after)


def test_what_was_written_by_hand_breaks_nothing() -> None:
    """A command that names nobody, or no instants, has changed nothing."""
    texts = (None, "", "[1]", "{", '{"to": 1}')
    odd = [command("assign", 1, "x") | {"arguments": text} for text in texts]
    bad = NOW + HOUR
    extends = [
        command("extend", 2, "x", **{"from": "soon", "until": iso_text(bad)}),
        command("extend", 3, "x", **{"from": iso_text(bad), "until": iso_text(END)}),  # too late
    ]
    assert [("opened", None)] == told(delivery(), *odd, *extends)
    assert [] == told(delivery(state=State.PENDING, attempts=0, until=None))

"""What pages say of items."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from delta_outbox.todo.desk import ItemSummary
from delta_outbox.todo.pages import wording
from delta_outbox.todo.pages.sessions import Receipt
from delta_outbox.workflow_engine.item_history import Happening

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


def summary(
    due: timedelta | None = None, end: timedelta | None = None, *, holder: str | None = None
) -> ItemSummary:
    """Return an item that is due, or ends, after some time."""
    return ItemSummary(
        task_id="review a/1",
        workflow="order_creation",
        instance="A-1",
        task="review",
        title="Review",
        visit=1,
        roles=("support",),
        opened_at=NOW,
        due_at=None if due is None else NOW + due,
        expires_at=None if end is None else NOW + end,
        assigned_to=holder,
        is_overdue=due is not None and due <= timedelta(),
    )


@pytest.mark.parametrize(
    ("item", "heading", "mark"),
    [
        (summary(timedelta()), "Overdue", "Overdue by less than a minute"),
        (summary(timedelta(minutes=-61)), "Overdue", "Overdue by 1 hour"),
        (summary(timedelta(days=-3)), "Overdue", "Overdue by 3 days"),
        (summary(timedelta(minutes=90)), "Within a day", "Due in 1 hour"),
        (summary(timedelta(days=2), timedelta(days=3)), "Later", "Due 30 November"),
        (summary(timedelta(days=40)), "Later", "Due 7 January 2027"),
        (summary(None, timedelta(seconds=90)), "Within a day", "Ends in 1 minute"),
        (summary(None, timedelta(days=1)), "Later", "Ends 29 November"),
        (summary(), "Without a date", ""),
    ],
)
def test_a_line_says_by_when(item: ItemSummary, heading: str, mark: str) -> None:
    """Each item stands below the heading of its time, and says it."""
    assert [
        (
            heading,
            [
                wording.Line(
                    address="/todo/item?id=review+a%2F1",
                    title="Review",
                    about="A-1 \N{MIDDLE DOT} Order creation",
                    mark=mark,
                    holder="",
                )
            ],
        )
    ] == list(wording.groups([item], NOW, "Ada"))


@pytest.mark.parametrize(
    ("holder", "line", "said", "button"),
    [
        (None, "", "Nobody takes care of this yet.", "Take it"),
        ("ada", "you", "You take care of this.", "Give it back"),
        ("Bob", "Bob", "Bob takes care of this. You may answer it all the same.", ""),
    ],
)
def test_who_holds_an_item_is_said(holder: str | None, line: str, said: str, button: str) -> None:
    """Whoever looks at an item is told who holds it, and is offered what can be done."""
    ((_, (shown,)),) = wording.groups([summary(holder=holder)], NOW, "Ada")
    found = wording.holding({"task_id": "a", "assigned_to": holder}, "Ada")
    assert (line, said, button) == (shown.holder, found.text, found.button)
    assert bool(button) == bool(found.action)


@pytest.mark.parametrize(
    ("happening", "said"),
    [
        ({"what": "opened"}, "Opened"),
        ({"what": "taken", "by": "Ada"}, "Taken by Ada"),
        ({"what": "released", "by": "Ada"}, "Given back by Ada"),
        ({"what": "assigned", "by": "Ada", "to": "Bob"}, "Given to Bob by Ada"),
        (
            {"what": "extended", "by": "Ada", "until": "2026-12-01T09:05:00.000000Z"},
            "Extended by Ada, until 1 December 2026, 09:05 UTC",
        ),
        ({"what": "answered", "by": "Ada", "outcome": "to_cancel"}, "Answered by Ada: To cancel"),
        ({"what": "answered_late", "by": "Ada"}, "Answered too late by Ada"),
        ({"what": "cancelled", "by": "Ada"}, "Cancelled by Ada"),
        ({"what": "expired", "outcome": "too_late"}, "Expired: Too late"),
    ],
)
def test_a_history_is_told_in_words(happening: dict[str, str], said: str) -> None:
    """Each line of a history says when, what and who."""
    told = {**asdict(Happening(at="2026-11-28T11:00:00Z", what="")), **happening}
    assert [("28 November 2026, 11:00 UTC", said)] == wording.happenings({"history": [told]})


@pytest.mark.parametrize(
    ("state", "outcome", "said"),
    [
        ("open", None, None),
        ("opening", None, "Not open yet"),
        ("ending", None, "This is about to end"),
        ("answered", None, "This is answered"),
        ("ended", "agreed_to_cancel", "This is closed"),
        ("ended", None, "This is closed"),
    ],
)
def test_a_page_says_first_how_its_item_stands(
    state: str, outcome: str | None, said: str | None
) -> None:
    """Whatever does not wait for an answer says why, and what came of it."""
    found = wording.told({"state": state, "outcome": outcome}, None)
    assert said == (found and found.heading)
    if state == "ended":
        assert found is not None
        assert ("Agreed to cancel" if outcome else "no outcome") in found.text


@pytest.mark.parametrize("state", ["open", "answered", "ended"])
@pytest.mark.parametrize("came", ["answered", "faster", "late"])
def test_what_came_of_the_own_answer_goes_before_how_the_item_stood(state: str, came: str) -> None:
    """What is read a moment too early never asks somebody again who has answered."""
    receipt = Receipt(item="x", came=came, outcome="" if came == "late" else "agreed_to_cancel")
    found = wording.told({"state": state, "outcome": None}, receipt)
    assert found is not None
    assert ("good" if came == "answered" else "bad") == found.look
    assert (came == "late") != ("Agreed to cancel" in found.text)


@pytest.mark.parametrize(
    ("value", "said"), [(None, "none"), ("", "none"), ([], "none"), (True, "yes"), (0, "0")]
)
def test_values_are_told_as_words(value: Any, said: str) -> None:
    """No page shows what only a program calls so."""
    assert said == wording.plain(value)


def test_instants_are_told_in_utc() -> None:
    """Below its heading an item says when it is due and when it ends."""
    document = {"due_at": "2026-11-28T11:00:00Z", "expires_at": "2026-12-01T09:05:00.000000Z"}
    expected = "Was due 28 November 2026, 11:00 UTC \N{MIDDLE DOT} Ends 1 December 2026, 09:05 UTC"
    assert expected == wording.about(document, NOW)
    assert "" == wording.about({"due_at": None, "expires_at": None}, NOW)

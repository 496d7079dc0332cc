"""What people read: it fits the terminal, and data cannot talk to the terminal."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from delta_outbox.cli.inspection import list_text, show_text, status_text
from delta_outbox.cli.outcome import document_of
from delta_outbox.cli.render import (
    Column,
    Rows,
    console_for,
    duration,
    facts,
    fitting,
    printable,
    sentence,
)

EVIL = "a\x1b[2Jb\rc\x07d\x9be\u202ef\u2028g\ud800h"


def drawn(*parts: object, width: int = 200) -> str:
    """Draw on a terminal without colours."""
    stream = io.StringIO()
    console = Console(
        file=stream, width=width, force_terminal=True, color_system=None, _environ={"TERM": "xterm"}
    )
    for part in parts:
        console.print(part)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (EVIL, r"a\x1b[2Jb\x0dc\x07d\x9be\u202ef\u2028g\ud800h"),
        ("Zürich 東京 🚀\u00a0x", "Zürich 東京 🚀\u00a0x"),
        (None, "-"),
        (True, "true"),
        (0.5, "0.5"),
        ({"k": "\x1b"}, '{"k": "\\u001b"}'),
        (["é"], '["é"]'),
    ],
)
def test_printable(value: object, expected: str) -> None:
    """Control and formatting characters become escapes; letters of all scripts stay."""
    assert expected == printable(value)


@given(st.text())
def test_nothing_printable_steers(text: str) -> None:
    """Whatever the data are, no control character is left."""
    assert not [char for char in printable(text) if ord(char) < 32 or 127 <= ord(char) < 160]


def test_no_view_lets_data_through() -> None:
    """Tables, facts and sentences escape what they are given, and markup stays text."""
    row = dict.fromkeys(("event_id", "event_type", "last_error"), f"{EVIL}[bold]x[/bold]")
    event: dict[str, object] = {**row, "deliveries": [{"destination": EVIL, "state": EVIL}] * 2}
    event |= {"headers": {EVIL: EVIL}, "payload": EVIL}
    transition = dict.fromkeys(
        ("occurred_at", "from_state", "to_state", "reason", "actor", "relay_id", "error"), EVIL
    )
    text = drawn(
        *list_text({"events": [row], "more": True}),
        *show_text({"event": event, "transitions": [transition]}),
        facts([(EVIL, EVIL)]),
        sentence(EVIL),
    )
    assert "[bold]x[/bold]" in text
    assert not [
        char for char in text if (ord(char) < 32 and char != "\n") or 127 <= ord(char) < 160
    ]


def test_columns_give_way() -> None:
    """A narrow terminal loses the columns that matter least, never those of rank 0."""
    columns = [Column(name="id"), Column(name="key", rank=2), Column(name="error", rank=1)]
    rows = [{"id": "x" * 10, "key": "y" * 10, "error": "z" * 10}]
    names = [[one.name for one in fitting(columns, rows, width)] for width in (34, 33, 21, 5)]
    assert [["id", "key", "error"], ["id", "error"], ["id"], ["id"]] == names


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Long values are folded, and an id stays complete."""
    rows = [{"event_id": "#" * 60, "state": "DEAD", "attempts": 3, "last_error": "long " * 50}]
    text = drawn(*list_text({"events": rows, "more": False}), width=width)
    assert all(len(line) <= width for line in text.splitlines())
    assert 60 == text.count("#")


def test_a_pipe_gets_whole_lines() -> None:
    """In a pipe one row is one line, without colours."""
    stream = io.StringIO()
    row = {"event_id": "e" * 500, "state": "DEAD", "last_error": "x" * 500}
    console_for(stream).print(Rows(columns=[Column(name=name) for name in row], rows=[row]))
    assert 2 == len(stream.getvalue().splitlines())
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, "-"),
        (0.04, "0.0 s"),
        (59.94, "59.9 s"),
        (60, "1 min 0 s"),
        (3599.9, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_duration(seconds: float | None, expected: str) -> None:
    """A duration has two units at most."""
    assert expected == duration(seconds)


def test_documents_are_ascii() -> None:
    """JSON keeps the data and holds no control character, whatever the locale."""
    text = document_of({"x": EVIL}, pretty=False)
    assert text.isascii()
    assert text.isprintable()


def test_status_says_what_shifts_the_clock() -> None:
    """An offset of the clock is shown; without one nothing is said of it."""
    document = {
        "counts": {"PENDING": 1, "CLAIMED": 0, "PUBLISHED": 2, "DEAD": 0},
        "oldest_pending_seconds": 61.0,
        "freshness": {"refreshed_at": "2026-11-01T12:00:00.000000Z"},
        "relays": [],
        "destinations": [],
        "policy": {"version": "a1500026e129", "problem": None},
        "home": "/home",
        "server": {"address": "sc://localhost:1", "pid": 7, "since": "2026-11-01T00:00:00.000000Z"},
        "storage": {"location": "file:/home/warehouse", "single_driver": False},
        "schema": "outbox",
        "settings": {"source": None, "destinations": {"default": "jsonl"}},
    }
    plain = drawn(*status_text(document))
    assert "1 min 1 s" in plain
    assert "sc://localhost:1 (process 7), up since 2026-11-01T00:00:00.000000Z" in plain
    assert "default (jsonl)" in plain
    assert "clock" not in plain
    assert "+3600 s" in drawn(*status_text({**document, "clock_offset_seconds": 3600.0}))


def test_status_says_which_destinations_are_held_back() -> None:
    """A destination that is paused or whose breaker is open is shown with the reason."""
    well = {"destination": "fine", "paused": False, "breaker": "closed"}
    document: dict[str, object] = {
        "counts": {"PENDING": 0, "CLAIMED": 0, "PUBLISHED": 0, "DEAD": 0},
        "oldest_pending_seconds": None,
        "freshness": None,
        "relays": [],
        "destinations": [well],
        "policy": {"version": "a1500026e129", "problem": None},
        "home": None,
        "server": None,
        "storage": {"location": "hdfs://host/outbox", "single_driver": True},
        "settings": {"source": None, "destinations": {}},
    }
    assert "fine" not in drawn(*status_text(document))
    document["destinations"] = [
        well,
        {**well, "destination": "shop", "paused": True, "pause_reason": "their maintenance"},
        {**well, "destination": "away", "breaker": "open", "breaker_error": "refused"},
    ]
    plain = drawn(*status_text(document))
    assert "fine" not in plain
    assert "their maintenance" in plain
    assert "refused" in plain


def test_status_says_why_newer_policies_are_not_in_force() -> None:
    """The version in force is shown, and a problem only if there is one."""
    document: dict[str, object] = {
        "counts": {"PENDING": 0, "CLAIMED": 0, "PUBLISHED": 0, "DEAD": 0},
        "oldest_pending_seconds": None,
        "freshness": None,
        "relays": [],
        "destinations": [],
        "policy": {"version": "a1500026e129", "problem": None},
        "home": None,
        "server": None,
        "storage": {"location": "hdfs://host/outbox", "single_driver": True},
        "schema": "outbox",
        "settings": {"source": None, "destinations": {"default": "jsonl"}},
    }
    plain = drawn(*status_text(document))
    assert "a1500026e129" in plain
    assert "problem" not in plain
    document["policy"] = {"version": None, "problem": "row 1 ('*'), column `ordering`"}
    assert "row 1 ('*'), column `ordering`" in drawn(*status_text(document))

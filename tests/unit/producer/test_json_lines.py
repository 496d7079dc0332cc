"""Reading JSON lines: what becomes of each field, and what is refused."""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.producer.event_lines import broken, line_of, read

from delta_outbox.core.errors import WrongUsage
from delta_outbox.core.settings import AppendSettings
from delta_outbox.producer.candidates import COLUMNS
from delta_outbox.producer.json_lines import read_file
from delta_outbox.producer.validation import validate

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
GOOD = b'{"event_id":"a","event_type":"t","payload":{}}'


def test_all_fields_become_columns() -> None:
    """Every column that a producer may give can stand in a line, in any order."""
    found = read(
        line_of(
            ordinal=5,
            metadata={"m": "1"},
            headers={"größe": "日本", "empty": ""},
            partition_key="p",
            ordering_key="k",
            available_at="2026-11-20T14:00:00.000001+02:00",
            created_at="2026-11-20T12:00:00Z",
        )
    )
    assert () == found.rejections
    assert list(COLUMNS) == found.events.column_names
    assert list(COLUMNS.values()) == found.events.schema.types
    assert {
        "event_id": "a",
        "event_type": "t",
        "payload": b"{}",
        "created_at": NOW,
        "ordering_key": "k",
        "partition_key": "p",
        "headers": [("größe", "日本"), ("empty", "")],
        "metadata": [("m", "1")],
        "available_at": NOW.replace(microsecond=1),
        "ordinal": 5,
    } == found.events.to_pylist()[0]


def test_columns_are_those_that_a_line_gives() -> None:
    """A column that no line gives, or only as null, is not given: the log's own may differ."""
    found = read(line_of(ordering_key=None), line_of(event_id="b", partition_key="p"))
    assert ["event_id", "event_type", "payload", "partition_key"] == found.events.column_names
    assert [None, "p"] == found.events["partition_key"].to_pylist()


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-20T12:00:00Z", NOW),
        ("2026-11-20 12:00:00+00:00", NOW),
        ("2026-11-20T05:30:00.5-06:30", NOW.replace(microsecond=500_000)),
        ("2026-11-20T12:00:00.123456789Z", NOW.replace(microsecond=123_456)),
    ],
)
def test_instants_have_an_offset(text: str, instant: datetime) -> None:
    """Instants are read with their offset, to the microsecond."""
    assert [instant] == read(line_of(created_at=text)).events["created_at"].to_pylist()


@pytest.mark.parametrize("name", ["created_at", "available_at"])
@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20T12:00:00",
        "2026-11-20",
        "soon",
        "",
        "2026-13-01T00:00:00Z",
        "0001-01-01T00:00+01",
    ],
)
def test_other_times_are_rejected(text: str, name: str) -> None:
    """A time without an offset means another instant elsewhere, so it is refused."""
    assert [(1, name, "timestamp")] == broken(line_of(**{name: text}))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("event_id", 1, "must be a text. Got: a number."),
        ("event_type", True, "must be a text. Got: true or false."),
        ("ordering_key", 1.5, "must be a text. Got: a number."),
        ("created_at", 1_700_000_000, "must be a text. Got: a number."),
        ("ordinal", "1", "must be a whole number of 64 bits. Got: a text."),
        ("ordinal", True, "must be a whole number of 64 bits. Got: true or false."),
        ("ordinal", 1.0, "must be a whole number of 64 bits. Got: a number."),
        ("ordinal", 2**63, "must be a whole number of 64 bits. Got: a number."),
        ("headers", [], "must be an object. Got: an array."),
        ("headers", {"a": 1}, "'a' must be a text. Got: a number."),
        ("metadata", {"a": None}, "'a' must be a text. Got: null."),
    ],
)
def test_wrong_types_are_rejected(name: str, value: Any, message: str) -> None:
    """A value of another type is refused with its kind, not with the value."""
    found = read(line_of(**{name: value})).rejections
    assert [(1, name, "type", message)] == [(r.line, r.field, r.rule, r.message) for r in found]


def test_unknown_fields_are_rejected() -> None:
    """A field that is no column of the log is refused by name."""
    assert [(1, "colour", "known_column"), (2, "appended_at", "known_column")] == broken(
        line_of(colour="red"), line_of(appended_at="2026-11-20T12:00:00Z")
    )


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (b"{", "json"),
        (b"nonsense", "json"),
        (GOOD + b" x", "json"),
        (b'{"a":1,}', "json"),
        (b'{"payload":NaN}', "json"),
        (b'{"payload":[-Infinity]}', "json"),
        (b'{"payload":01}', "json"),
        (b'{"payload":"a\tb"}', "json"),
        (b'{"payload":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "json"),
        (b'{"payload":[1e5,' + b"[" * 700 + b"]" * 700 + b"]}", "json"),
        (b"[1]", "json_object"),
        (b"null", "json_object"),
        (b'{"event_id":"a","event_id":"b"}', "unique_names"),
        (b'{"payload":[{"a":1,"a":2}]}', "unique_names"),
        (b'{"payload":"\xff"}', "utf8"),
        (b'{"payload":"\\ud800"}', "utf8"),
        (b'{"payload":{"\\udc00":1e999}}', "utf8"),
    ],
)
def test_what_is_not_clearly_json_is_rejected(line: bytes, rule: str) -> None:
    """A line that is no JSON object, or that readers understand differently, is refused alone."""
    found = read(GOOD, line, GOOD)
    assert [(2, "", rule)] == [(one.line, one.field, one.rule) for one in found.rejections]
    assert [1, 3] == found.lines.tolist()


def test_blank_lines_and_byte_order_mark_are_skipped() -> None:
    """Blank lines count but say nothing; a byte order mark and CR LF do no harm."""
    found = read(b"\xef\xbb\xbf" + GOOD + b"\r", b"", b" \t\r", GOOD, b"")
    assert ((), [1, 4]) == (found.rejections, found.lines.tolist())


def test_line_separators_inside_texts_do_not_end_a_line() -> None:
    """U+2028, U+0085 and their kind may stand in a JSON text."""
    text = "a\u2028b\u0085c"
    found = read(f'{{"event_id":"a","event_type":"t","payload":"{text}"}}')
    assert [text.encode()] == found.events["payload"].to_pylist()


def test_every_bad_line_is_reported_beside_the_rules_of_validation() -> None:
    """Reading and validating together report each bad line once, under its number in the file."""
    found = read(
        GOOD,
        "{",
        line_of(event_id="b", event_type="no good"),
        line_of(event_id="a", payload=1),
        line_of(event_id=None),
    )
    checked = validate(found.events, settings=AppendSettings(), now=NOW, lines=found.lines)
    assert [
        (2, ""),
        (3, "event_type"),
        (4, "event_id"),
        (5, "event_id"),
    ] == [(one.line, one.field) for one in sorted([*found.rejections, *checked.rejections])]


def test_required_field_that_no_line_gives_is_missed_in_each_line() -> None:
    """A file without any event type is told so line by line."""
    found = read(line_of(event_type=...), line_of(event_id="b", event_type=...))
    checked = validate(found.events, settings=AppendSettings(), now=NOW, lines=found.lines)
    assert [(1, "event_type", "required"), (2, "event_type", "required")] == [
        (one.line, one.field, one.rule) for one in checked.rejections
    ]


def test_empty_file_has_no_rows() -> None:
    """Nothing in, nothing out, and that is valid."""
    found = read(b"")
    assert (0, ()) == (found.events.num_rows, found.rejections)
    assert () == validate(found.events, settings=AppendSettings(), now=NOW).rejections


def test_many_lines_keep_their_order() -> None:
    """Parts that are turned into Arrow on the way make no difference."""
    count = 45_000  # two parts, and some
    lines = [line_of(event_id=f"e{number}") for number in range(count)]
    lines.append(line_of(event_id="last", ordering_key="k"))
    found = read(*lines)
    expected = [*(f"e{number}" for number in range(count)), "last"]
    assert expected == found.events["event_id"].to_pylist()
    assert [None] * count + ["k"] == found.events["ordering_key"].to_pylist()


def test_messages_never_hold_payloads_or_values() -> None:
    """Whatever is wrong with a line, the message does not quote payload or header values."""
    secret = "s3cret"
    found = read(
        f'{{"payload":"{secret}\x01"}}',
        f'{{"payload":{{"a":"{secret}","a":1}}}}',
        line_of(payload=secret, payload_base64=secret),
        line_of(payload=..., payload_base64=secret),
        line_of(payload=secret, headers=[secret]),
        line_of(payload=secret, headers={"a": [secret]}),
        f'["{secret}"]',
        f'"{secret}" {secret}',
    )
    assert 8 == len(found.rejections)
    assert not any(secret in one.message for one in found.rejections)


def test_file_and_standard_input_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is a file, `-` is standard input."""
    path = tmp_path / "events.jsonl"
    path.write_bytes(GOOD)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD)))
    assert read_file(str(path)).events.equals(read_file("-").events)


def test_missing_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be read is wrong usage, with the name."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WrongUsage, match=r"append: FILE .*nowhere\.jsonl.*No such file"):
        read_file("nowhere.jsonl")
    with pytest.raises(WrongUsage, match="directory"):
        read_file(str(tmp_path))

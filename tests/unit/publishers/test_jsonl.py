"""JSON lines in a folder."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime

import pytest

from delta_outbox.core.errors import BadSettings, PublisherUnavailable
from delta_outbox.publishers import Delivered, Event, EventBatch, Failed, NotSent
from delta_outbox.publishers.jsonl import JsonlPublisher, read_lines
from delta_outbox.publishers.registry import prepare_settings, probe


def _event(payload: bytes = b"{}", **fields) -> Event:
    given = {
        "event_id": "e1",
        "event_type": "order.created",
        "payload": payload,
        "created_at": datetime(2026, 1, 1, tzinfo=UTC),
        **fields,
    }
    return Event(**given)


def _batch(*events: Event, seconds: float = 30) -> EventBatch:
    return EventBatch(events, deadline=time.monotonic() + seconds)


@pytest.fixture
def publisher(tmp_path):
    """Open a publisher that writes below the test's folder."""
    one = JsonlPublisher()
    one.open({"path": str(tmp_path / "out")})
    yield one
    one.close()


def test_a_line_has_the_fields_of_the_contract(publisher, tmp_path):
    """A line holds id, type, key, headers, payload and lifecycle, and nothing else."""
    event = _event(b'{"n":1}', key="k", headers={"trace": "\u00fc", "none": None}, lifecycle=1)
    publisher.publish(_batch(event))
    [line] = read_lines(tmp_path / "out")
    assert line == {
        "event_id": "e1",
        "event_type": "order.created",
        "key": "k",
        "headers": {"trace": "\u00fc", "none": None},
        "payload": '{"n":1}',
        "lifecycle": 1,
    }


@pytest.mark.parametrize(
    ("payload", "field", "text"),
    [
        (b"", "payload", ""),
        ('ü\n"\u2028🚀'.encode(), "payload", 'ü\n"\u2028🚀'),
        (b"a\0b", "payload", "a\0b"),
        (b"\xff\x00", "payload_base64", "/wA="),
    ],
)
def test_payload_is_text_or_base64(publisher, tmp_path, payload, field, text):
    """Bytes that are UTF-8 are shown as text, all others as base64; one line either way."""
    publisher.publish(_batch(_event(payload)))
    [line] = read_lines(tmp_path / "out")
    assert {name: line[name] for name in line if name.startswith("payload")} == {field: text}


def test_receipts_find_their_lines(publisher, tmp_path):
    """A receipt names the file and the offset at which the event's line begins."""
    publisher.publish(_batch(_event()))
    results = publisher.publish(_batch(_event(event_id="e2"), _event(event_id="e3")))
    for result, event_id in zip(results, ["e2", "e3"], strict=True):
        receipt = json.loads(result.receipt)
        with (tmp_path / "out" / receipt["file"]).open("rb") as file:
            file.seek(receipt["offset"])
            assert json.loads(file.readline())["event_id"] == event_id


def test_every_open_has_a_file_of_its_own(tmp_path):
    """Writers never share a file, and one that delivers nothing leaves none."""
    for number in range(3):
        one = JsonlPublisher()
        one.open({"path": str(tmp_path)})
        if number:
            one.publish(_batch(_event()))
        one.close()
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


def test_a_torn_last_line_is_left_out(publisher, tmp_path):
    """A line counts when its newline is there."""
    publisher.publish(_batch(_event(), _event(event_id="e2")))
    [file] = (tmp_path / "out").glob("*.jsonl")
    file.write_bytes(file.read_bytes()[:-5])
    assert [line["event_id"] for line in read_lines(tmp_path / "out")] == ["e1"]


def test_nothing_is_written_after_the_deadline(publisher, tmp_path):
    """A passed deadline writes nothing and says so."""
    assert publisher.publish(_batch(_event(), seconds=-1)) == [NotSent()]
    assert list(read_lines(tmp_path)) == []


def test_delivered_means_on_the_disk(publisher, monkeypatch):
    """No event is delivered before the file is synced, once per call."""
    synced = []
    real = os.fsync
    publisher.publish(_batch(_event()))  # makes file and folder

    def fsync(file):
        synced.append(file)
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    results = publisher.publish(_batch(*[_event()] * 3000))
    assert [type(result) for result in results] == [Delivered] * 3000
    assert len(synced) == 1


def test_a_full_disk_takes_everything_back(publisher, tmp_path, monkeypatch):
    """When the disk fails in the middle, the lines of the call go, and the next call works."""
    publisher.publish(_batch(_event()))
    real = os.write
    calls = []

    def write(file, data):
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return real(file, data[:100])

    monkeypatch.setattr(os, "write", write)
    results = publisher.publish(_batch(_event(event_id="lost"), _event(event_id="lost")))
    monkeypatch.undo()
    assert [type(result) for result in results] == [Failed, Failed]
    assert "No space left" in results[0].error
    publisher.publish(_batch(_event(event_id="next")))
    assert [line["event_id"] for line in read_lines(tmp_path / "out")] == ["e1", "next"]


def test_a_folder_that_cannot_be_made_fails_events(tmp_path):
    """A path that is a file fails every event with a sentence."""
    (tmp_path / "file").write_text("")
    one = JsonlPublisher()
    one.open({"path": str(tmp_path / "file")})
    [result] = one.publish(_batch(_event()))
    assert isinstance(result, Failed)
    assert "cannot be written" in result.error


@pytest.mark.parametrize(("given", "expected"), [({}, "delivered"), ({"path": "a/b"}, "a/b")])
def test_path_is_below_the_home(tmp_path, given, expected):
    """A path that is not absolute means one below the home, `delivered` if none is given."""
    prepared = prepare_settings(JsonlPublisher, given, destination="d", home=tmp_path)
    assert prepared == {"path": str(tmp_path / expected)}


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"path": ""}, "must name a folder"), ({"path": 1}, "folder"), ({"pth": "x"}, "Got: pth")],
)
def test_bad_settings_are_one_sentence(tmp_path, settings, said):
    """A wrong path or setting is refused before anything is claimed."""
    with pytest.raises(BadSettings, match=said):
        prepare_settings(JsonlPublisher, settings, destination="d", home=tmp_path)


def test_probe_wants_a_folder(tmp_path):
    """A path below a file is found out before anything is claimed."""
    (tmp_path / "file").write_text("")
    with pytest.raises(PublisherUnavailable, match="cannot be written"):
        probe(JsonlPublisher, {"path": str(tmp_path / "file" / "x")}, destination="d")
    probe(JsonlPublisher, {"path": str(tmp_path / "new")}, destination="d")

"""An executor's slice: whatever the publisher does, every delivery gets one true answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from delta_outbox.lifecycle.results import Delivered, Failed, JsonText, Rejected, Result, Unknown
from delta_outbox.publishers.cloudevents.conversion import STRUCTURED_TYPE, CloudEventFormat
from delta_outbox.publishers.cloudevents.settings import CloudEventSettings
from delta_outbox.publishers.cloudevents.transport import Transport
from delta_outbox.publishers.protocol import EventBatch
from delta_outbox.relay.publish import slice as worker
from delta_outbox.relay.publish.deadline import Deadline
from delta_outbox.relay.publish.slice import Job, publish_slice

SENT: list[list[str]] = []  # the event ids of each call
CLOSED: list[str] = []
CONTENTS: list[tuple[bytes, Mapping[str, str | None] | None]] = []
FORMAT = CloudEventFormat(settings=CloudEventSettings(source="/shop"), transport=Transport.UNBOUND)
INPUT = pa.schema(
    [
        ("position", pa.int32()),
        ("destination", pa.string()),
        ("scope", pa.string()),
        ("event_id", pa.string()),
        ("event_type", pa.string()),
        ("key", pa.string()),
        ("ordering_key", pa.string()),
        ("partition_key", pa.string()),
        ("headers", pa.map_(pa.string(), pa.string())),
        ("payload", pa.binary()),
        ("created_at", pa.timestamp("us", "UTC")),
        ("available_at", pa.timestamp("us", "UTC")),
        ("appended_at", pa.timestamp("us", "UTC")),
        ("attempt", pa.int32()),
        ("lifecycle", pa.int32()),
        ("route", pa.string()),
        ("format", pa.string()),
    ]
)


class Steady:
    """Deliver all, but for payloads that say otherwise."""

    ordered: ClassVar[bool] = False

    def open(self, settings: Mapping[str, object]) -> None:
        if settings.get("closed"):
            raise ConnectionError("nobody is there")

    def publish(self, events: EventBatch) -> list[Result]:
        SENT.append([event.event_id for event in events])
        return [self.answer(event.payload) for event in events]

    def answer(self, payload: bytes) -> Result:
        answers: dict[bytes, Result] = {b"fail": Failed(error="busy", retry_after=3)}
        return answers.get(payload) or Delivered(receipt={"n": 1}, outcome="ok", outcome_data=[2])

    def close(self) -> None:
        CLOSED.append(type(self).__name__)


class Keeping(Steady):
    """Keep payload and headers of what was sent."""

    def publish(self, events: EventBatch) -> list[Result]:
        CONTENTS.extend((event.payload, event.headers) for event in events)
        return super().publish(events)


class Raising(Steady):
    """Send, then raise."""

    def publish(self, events: EventBatch) -> list[Result]:
        super().publish(events)
        raise OSError("broken pipe")


class Short(Steady):
    """Answer for one event less than given."""

    def publish(self, events: EventBatch) -> list[Result]:
        return super().publish(events)[:-1]


class Odd(Steady):
    """Answer with something that is no result."""

    def publish(self, events: EventBatch) -> list[Any]:
        return ["fine"] * len(events)


class Leaking(Steady):
    """Repeat settings, payload and headers in whatever is said."""

    def open(self, settings: Mapping[str, object]) -> None:
        self.password = settings["password"]
        if settings.get("closed"):
            raise ConnectionError(f"refused, password={self.password}")

    def publish(self, events: EventBatch) -> list[Result]:
        says = f"{self.password} {[(event.payload, event.headers) for event in events]}"
        if len(events) > 4:
            raise OSError(says)
        answers: list[Result] = [Failed(error=says), Rejected(error=says), Unknown(error=says)]
        receipt = Delivered(
            receipt={self.password: [f"by {self.password}", 7]}, outcome_data=JsonText("1")
        )
        return [*answers, receipt][: len(events)]


class Formless(Steady):
    """Give receipts that are no JSON."""

    def answer(self, payload: bytes) -> Result:
        receipts: dict[bytes, object] = {b"set": {1, 2}, b"half": "\ud800"}
        return Delivered(receipt=receipts[payload])


class Telling(Steady):
    """Deliver all, with receipts in JSON that are the payloads."""

    def answer(self, payload: bytes) -> Result:
        return Delivered(receipt=JsonText(payload.decode("utf-8", "surrogatepass")))


class Unclosable(Steady):
    """Raise at the end."""

    def close(self) -> None:
        raise OSError("too late")


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    SENT.clear()
    CLOSED.clear()
    CONTENTS.clear()


def rows(*given: dict[str, Any]) -> pa.RecordBatch:
    """Return deliveries of a slice as Spark hands them over."""
    full = [
        {
            "position": position,
            "destination": "d",
            "event_id": f"e{position}",
            "event_type": "x",
            "payload": b"p",
            "created_at": datetime(2026, 1, 1, tzinfo=UTC),
            "attempt": 1,
            "lifecycle": 0,
            "route": "x",
            **row,
        }
        for position, row in enumerate(given)
    ]
    return pa.RecordBatch.from_pylist(full, schema=INPUT)


def run(
    *batches: pa.RecordBatch,
    publisher: type[Steady] = Steady,
    budget: float = 60.0,
    attempt_number: int = 0,
    **settings: object,
) -> list[dict[str, Any]]:
    """Publish a slice and return its answers by position."""
    type_ = f"{__name__}:{publisher.__name__}"
    job = Job(
        claim_id="c",
        destinations={"d": (type_, settings), "fine": (f"{__name__}:Steady", {})},
        deadline=Deadline.after(60),
        budget=budget,
        payload_formats={"d": FORMAT},
    )
    answers = list(publish_slice(job, iter(batches), attempt_number=attempt_number))
    assert all(worker.RESULTS == batch.schema for batch in answers)
    found = [row for batch in answers for row in batch.to_pylist()]
    return sorted(found, key=lambda row: row["position"])


def codes(answers: list[dict[str, Any]]) -> str:
    """Return the answers in short."""
    return "".join(row["code"] for row in answers)


def test_everything_is_sent_and_answered():
    """Each delivery is sent once and its receipt and outcome come back as JSON."""
    answers = run(rows({}, {}, {}))
    assert "DDD" == codes(answers)
    assert [["e0", "e1", "e2"]] == SENT
    shown = [answers[0][name] for name in ("receipt", "outcome", "outcome_data")]
    assert ['{"n":1}', "ok", "[2]"] == shown
    assert ["Steady"] == CLOSED


def test_a_receipt_without_form_costs_nothing():
    """What was delivered stays delivered, whatever the publisher gave for a receipt."""
    answers = run(rows({"payload": b"set"}, {"payload": b"half"}), publisher=Formless)
    assert "DD" == codes(answers)
    receipts = ['"a set that has no form in JSON"', '"a str that has no form in JSON"']
    assert receipts == [row["receipt"] for row in answers]


def test_a_repeated_task_publishes_nothing():
    """A task that Spark starts again sends nothing and says that its whole slice crashed."""
    assert "CCC" == codes(run(rows({}, {}), rows({"position": 2}), attempt_number=1))
    assert [] == SENT


def test_a_publisher_that_raises_leaves_it_unknown():
    """After an exception nobody knows what was delivered, and what follows in the key waits."""
    answers = run(rows({"scope": "k"}, {"scope": "k"}, {}), publisher=Raising)
    assert "UNU" == codes(answers)
    assert [["e0", "e2"]] == SENT
    assert "OSError" in answers[0]["error"]


@pytest.mark.parametrize("publisher", [Short, Odd])
def test_wrong_answers_leave_it_unknown(publisher: type[Steady]):
    """Answers that do not match the events say nothing about any of them."""
    assert "UU" == codes(run(rows({}, {}), publisher=publisher))


def test_nothing_is_sent_after_the_deadline():
    """Past the deadline nothing is sent, whichever of the two clocks says so."""
    assert "NN" == codes(run(rows({}, {}), budget=0.0))
    late = Job(
        claim_id="c", destinations={"d": ("null", {})}, deadline=Deadline.after(-1), budget=60
    )
    (batch,) = publish_slice(late, [rows({})], attempt_number=0)
    assert ["N"] == batch["code"].to_pylist()
    assert [] == SENT


def test_after_a_failure_the_key_waits():
    """Later events of a key are not sent after one that failed, in this batch and the next."""
    first = rows({"scope": "k", "payload": b"fail"}, {"scope": "k"}, {"scope": "other"}, {})
    second = rows(
        {"position": 4, "event_id": "e4", "scope": "k"},
        {"position": 5, "event_id": "e5", "scope": "other"},
    )
    answers = run(first, second)
    assert "FNDDND" == codes(answers)
    assert 3 == answers[0]["retry_after"]
    assert [["e0", "e2", "e3"], ["e5"]] == SENT


def test_a_destination_that_does_not_open_is_said_to():
    """Where a publisher does not open nothing is sent there; other destinations go on."""
    answers = run(rows({}, {"destination": "fine"}, {}), closed=True)
    assert "ODO" == codes(answers)
    assert "nobody is there" in answers[0]["error"] or "ConnectionError" in answers[0]["error"]
    assert [["e1"]] == SENT


def test_a_destination_that_is_gone_fails_its_events():
    """Where the settings no longer have the destination of a first claim, the event fails, and can
    go on once they have it again; its key waits, and other destinations go on.
    """
    answers = run(rows({"destination": "gone", "scope": "k"}, {"scope": "k"}, {"scope": "other"}))
    assert "FND" == codes(answers)
    assert "the settings no longer have the destination 'gone'" == answers[0]["error"]
    assert [["e2"]] == SENT


def test_only_the_first_row_of_a_place_is_sent():
    """A later row of one id in one commit is passed over, also at the border of two batches."""
    answers = run(
        rows({}, {"position": 1}, {"position": 1}), rows({"position": 1}, {"position": 2})
    )
    assert [0, 1, 2] == [row["position"] for row in answers]
    assert [["e0", "e1"], ["e1"]] == SENT


SECRET = "hunter2,;and more"
CONTENT = {"payload": b'{"card": "4111-1111"}', "headers": [("authorization", "Bearer 9876543")]}


@pytest.mark.parametrize("deliveries", [4, 5])
def test_no_secret_and_no_content_is_answered(deliveries: int):
    """Whatever a publisher says or raises, no answer holds a secret of its settings, nor the
    payload or a header of an event in what is said of a failure.
    """
    answers = run(rows(*[CONTENT] * deliveries), publisher=Leaking, password=SECRET)
    assert ("FRUD" if deliveries == 4 else "UUUUU") == codes(answers)
    assert not any(
        part in str(answers) for part in ("hunter2", "and more", "4111-1111", "Bearer 9876543")
    )
    if deliveries == 4:
        assert ('{"***":["by ***",7]}', "1") == (answers[3]["receipt"], answers[3]["outcome_data"])
    (closed,) = run(rows(CONTENT), publisher=Leaking, password=SECRET, closed=True)
    assert "ConnectionError: refused, password=***" == closed["error"]


@pytest.mark.parametrize(
    ("told", "receipt"),
    [
        (b'{"by":"hunter2,;and more"}', '{"by":"***"}'),
        (b'{"n":2}', '{"n":2}'),
        ('"\u00e9"'.encode(), '"\u00e9"'),
        ('"\ud800"'.encode("utf-8", "surrogatepass"), '"a JsonText that has no form in JSON"'),
    ],
)
def test_each_receipt_of_many_is_looked_at(told: bytes, receipt: str):
    """Where all are delivered and all receipts are JSON already, a secret or a text without form in
    one of them is found as well, and the others stay as they are.
    """
    others = [{"payload": b'{"n":1}'}] * 3
    answers = run(rows(*others, {"payload": told}), publisher=Telling, password=SECRET)
    assert "DDDD" == codes(answers)
    assert ['{"n":1}'] * 3 + [receipt] == [row["receipt"] for row in answers]


@pytest.mark.parametrize("header", [("a", "b\r\nc: d"), ("a", "b\nc"), ("a", "\0"), ("a\r", "b")])
def test_a_header_that_breaks_its_line_is_never_sent(header: tuple[str, str]):
    """CR, LF or NUL in a header, which a plain insert can bring, is rejected before any publisher
    sees the event; its key waits, others go on.
    """
    answers = run(
        rows({"headers": [header], "scope": "k"}, {"scope": "k"}, {"headers": [("a", "")]})
    )
    assert "RND" == codes(answers)
    assert f"the header {header[0]!r} holds CR, LF or NUL, or is not UTF-8" == answers[0]["error"]
    assert [["e2"]] == SENT


def test_a_header_that_is_no_text_is_never_sent():
    """So it is for bytes that are not UTF-8, in name or value."""
    values = pa.array([b"a", b"\xff", b"b\xff", b"c"]).cast(pa.string(), safe=False)
    headers = pa.MapArray.from_arrays([0, 1, 2, 2], values[:2], values[2:])
    batch = rows({"scope": "k"}, {"scope": "l"}, {})
    answers = run(batch.set_column(batch.schema.get_field_index("headers"), "headers", headers))
    assert "RRD" == codes(answers)
    said = [
        f"the header {name} holds CR, LF or NUL, or is not UTF-8" for name in ("'a'", r"'\udcff'")
    ]
    assert said == [row["error"] for row in answers[:2]]
    assert [["e2"]] == SENT


def test_a_cloudevent_is_made_before_its_publisher_sees_it():
    """What a policy wants as a CloudEvent goes as one, and beside it what is raw goes as it is."""
    headers = [("content-type", "text/plain"), ("a", "b")]
    answers = run(
        rows({"format": "cloudevents-structured", "headers": headers}, {"headers": headers}),
        publisher=Keeping,
    )
    assert "DD" == codes(answers)
    (payload, made), raw = CONTENTS
    assert (b"p", dict(headers)) == raw
    assert {"content-type": STRUCTURED_TYPE, "a": "b"} == made
    envelope = json.loads(payload)
    assert ("e0", "/shop", "cA==") == tuple(envelope[n] for n in ("id", "source", "data_base64"))


def test_what_cannot_be_a_cloudevent_is_rejected_and_its_key_waits():
    """An event that its payload format cannot express is rejected with the reason, unsent."""
    odd = {"format": "cloudevents-structured", "headers": [("ce-id", "canary")], "scope": "k"}
    answers = run(rows({"scope": "k"}, odd, {"scope": "k"}, {"scope": "other"}))
    assert "DRND" == codes(answers)
    reason = "it has no form as a CloudEvent: its header 'ce-id' would pass for an attribute"
    assert reason == answers[1]["error"]
    assert {"e0", "e3"} == {event_id for call in SENT for event_id in call}


@pytest.mark.parametrize(
    ("destination", "format_"),
    [("fine", "cloudevents-structured"), ("d", "cloudevents-binary")],
)
def test_a_form_that_a_destination_lacks_fails_its_event(destination: str, format_: str):
    """Where a policy has changed since an event got its destination, which does not write what the
    policy wants, the event fails and can go on once the settings are mended; its key waits.
    """
    asked = {"destination": destination, "format": format_, "scope": "k"}
    answers = run(rows(asked, {"scope": "k"}, {"scope": "other"}))
    assert "FND" == codes(answers)
    assert f"the destination {destination!r} does not write {format_}" == answers[0]["error"]
    assert [["e2"]] == SENT


def test_closing_changes_no_answer():
    """A publisher that fails to close has delivered all the same."""
    assert "D" == codes(run(rows({}), publisher=Unclosable))


def test_an_empty_slice_is_answered():
    """A slice without rows has an answer without rows."""
    assert [] == run(rows())
    assert [] == run()
    assert [] == SENT

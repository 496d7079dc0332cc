"""What an executor does: publish its slice of a claim, once, in order, before the deadline."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from delta_outbox.event_files import UnreadableFile
from delta_outbox.failpoints import reach
from delta_outbox.publishers.cloudevents import CloudEventForm
from delta_outbox.publishers.cloudevents_transport import Mode
from delta_outbox.publishers.echo import without_echo
from delta_outbox.publishers.protocol import (
    Delivered,
    Event,
    EventBatch,
    Failed,
    NotSent,
    Publisher,
    Rejected,
    Result,
    Unknown,
    broken_header,
    to_json,
)
from delta_outbox.publishers.registry import find_publisher
from delta_outbox.publishers.scrub import describe
from delta_outbox.publishers.secrets import hiding, secrets_of, without_secrets
from delta_outbox.relay.calls import plan_calls
from delta_outbox.relay.contents import read_slice, with_contents
from delta_outbox.relay.deadline import Deadline
from delta_outbox.relay.garbage import seldom_collected
from delta_outbox.relay.modules import make_importable
from delta_outbox.relay.tracing import open_tracing

logger = logging.getLogger(__name__)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

DELIVERED: Final = "D"
FAILED: Final = "F"
REJECTED: Final = "R"
UNKNOWN: Final = "U"
NOT_SENT: Final = "N"
NOT_OPENED: Final = "O"  # the publisher did not open: not sent, and the relay says why
NOT_READ: Final = "W"  # its file could not be read by this worker: not sent, Spark is to be asked
CRASHED: Final = "C"

RESULTS: Final = pa.schema(
    [
        ("place", pa.int32()),
        ("code", pa.string()),
        ("error", pa.string()),
        ("retry_after", pa.float64()),
        ("receipt", pa.string()),
        ("outcome", pa.string()),
        ("outcome_data", pa.string()),
    ]
)
"""One row per delivery; place: its position in the claim."""

RESULTS_DDL: Final = (
    "place int, code string, error string, retry_after double, receipt string, outcome string, "
    "outcome_data string"
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What every slice of a claim needs to know.

    Args:
        claim_id: the claim.
        destinations: name to (publisher type, prepared settings).
        forms: name to the form of CloudEvents, for destinations that have one.
        deadline: after it nothing may be sent.
        budget: seconds that a slice may take from its own start, whatever the clocks say.
        folders: where publishers are imported from that a worker does not find by itself.
        tracing: whether publish attempts become spans; then rows have `metadata`.
        seat: who publishes; no other claim has it at the same time.
    """

    claim_id: str
    destinations: Mapping[str, tuple[str, Mapping[str, object]]] = field(repr=False)
    deadline: Deadline
    budget: float
    forms: Mapping[str, CloudEventForm] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    tracing: bool = False
    seat: str = "seat"

    def deadline_here(self) -> float:
        """Return the deadline in monotonic seconds of this process, the earlier of the two."""
        return time.monotonic() + min(self.budget, self.deadline.seconds_left())


def publish_slice(
    job: Job, batches: Iterable[pa.RecordBatch], *, attempt_number: int, part: int = 0
) -> Iterator[pa.RecordBatch]:
    """Publish the rows of one slice and return what became of each.

    Args:
        job: what holds for the whole claim.
        batches: rows in order of `place`, with payload; see `publishing.CONTENT`.
        attempt_number: of the task. Above 0 somebody has begun this slice before and nobody
            knows how far it came, so nothing is published (one publish per claim).
        part: number of the slice within its claim.
    """
    if attempt_number > 0:
        for batch in batches:
            yield _answers(
                [(place, CRASHED, "worker lost") for place in batch["place"].to_pylist()]
            )
        return
    make_importable(job.folders)
    work = _Slice(job, part=part)
    secrets = [one for _, settings in job.destinations.values() for one in secrets_of(settings)]
    with hiding(secrets), seldom_collected():
        try:
            for batch in batches:
                answers = work.publish(batch)
                reach("slice.answered")
                yield answers
        finally:
            work.close()


def publish_from_files(
    job: Job, path: str, *, attempt_number: int, part: int
) -> Iterator[pa.RecordBatch]:
    """Publish a slice whose contents this worker reads itself, as `publish_slice` does.

    Args:
        job: what holds for the whole claim.
        path: where `contents.written_slices` has written down what is to be sent.
        attempt_number: of the task.
        part: number of the slice within its claim.
    """
    rows = read_slice(path, part)
    if attempt_number > 0:
        yield from publish_slice(job, [rows], attempt_number=attempt_number, part=part)
        return
    answered = 0
    try:
        contents = with_contents(rows, traced=job.tracing)
        for answers in publish_slice(job, contents, attempt_number=0, part=part):
            answered += len(answers)
            yield answers
    except UnreadableFile as error:
        # What a file lacks it lacks for every worker that reads it, but Spark may know better.
        left = rows["place"].to_pylist()[answered:]
        yield _answers([(place, NOT_READ, f"cannot read {error}") for place in left])


class _Slice:
    """One slice at work: its publishers, and the keys that may go no further."""

    def __init__(self, job: Job, *, part: int) -> None:
        self._job = job
        self._seat = f"{job.seat}.{part}"
        self._deadline = job.deadline_here()
        self._publishers: dict[str, Publisher] = {}
        self._not_opened: dict[str, str] = {}
        self._blocked: dict[str, str] = {}  # scope -> the event that failed first
        self._last_place = -1
        self._tracing = open_tracing(job.destinations) if job.tracing else None

    def publish(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = [row for row in _rows(batch) if self._is_first(row["place"])]
        answers: list[tuple[Any, ...]] = []
        ordered = {name: self._ordered(name) for name in {row["destination"] for row in rows}}
        for call in plan_calls(
            [row["scope"] for row in rows],
            [row["event_id"] for row in rows],
            [row["destination"] for row in rows],
            ordered=ordered,
        ):
            sent = []
            for row in (rows[index] for index in call):
                if not self._may_go(row):
                    answers.append((row["place"], NOT_SENT, None))
                elif (name := broken_header(row["headers"] and dict(row["headers"]))) is not None:
                    said = f"the header {name!r} holds CR, LF or NUL"
                    answers.append((row["place"], REJECTED, said))
                    self._block([row])
                elif row["format"] is not None and (refused := self._reform(row)) is not None:
                    answers.append((row["place"], *refused))
                    self._block([row])
                else:
                    sent.append(row)
            if sent:
                answers += self._call(sent)
        return _answers(answers)

    def _reform(self, row: dict[str, Any]) -> tuple[str, str] | None:
        """Give a row payload and headers of a CloudEvent; return the answer if it can have none."""
        form, mode = self._job.forms.get(row["destination"]), Mode(row["format"])
        if form is None or mode not in form.transport.modes:
            # Its destination is that of its first claim, and the policy has changed since.
            return FAILED, f"the destination {row['destination']!r} does not write {mode}"
        try:
            made = form.write(self._event(row), mode)
        except ValueError as error:
            return REJECTED, f"it has no form as a CloudEvent: {error}"
        row["payload"], row["headers"] = made.payload, made.headers
        return None

    def _is_first(self, place: int) -> bool:
        """Pass over a later row of the same id in the same commit: the first one is the event."""
        first = place != self._last_place
        self._last_place = place
        return first

    def _ordered(self, destination: str) -> bool:
        publisher = self._publisher(destination)
        return bool(getattr(publisher, "ordered", False))

    def _publisher(self, destination: str) -> Publisher | None:
        """Return the open publisher of a destination, None if it does not open."""
        if destination in self._not_opened or destination not in self._job.destinations:
            return None
        if destination not in self._publishers:
            type_, settings = self._job.destinations[destination]
            try:
                publisher = find_publisher(type_, destination=destination)()
                publisher.open(settings)
            except Exception as error:  # noqa: BLE001 - anybody's code
                self._not_opened[destination] = describe(error)
                return None
            self._publishers[destination] = publisher
        return self._publishers[destination]

    def _call(self, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """Call a publisher once; whatever it does, every row gets an answer."""
        destination = rows[0]["destination"]
        if destination not in self._job.destinations:
            # That of its first claim, which neither policies nor settings name any more.
            self._block(rows)
            said = f"the settings no longer have the destination {destination!r}"
            return [(row["place"], FAILED, said) for row in rows]
        publisher = self._publisher(destination)
        if publisher is None:
            self._block(rows)
            return [(row["place"], NOT_OPENED, self._not_opened[destination]) for row in rows]
        if time.monotonic() >= self._deadline:
            self._block(rows)
            return [(row["place"], NOT_SENT, None) for row in rows]
        events = EventBatch(
            (self._event(row) for row in rows),
            deadline=self._deadline,
            destination=destination,
            seat=self._seat,
        )
        started = time.time_ns()
        try:
            results: list[Result] = publisher.publish(events)
        except Exception as error:  # noqa: BLE001 - anybody's code; how far it came nobody knows
            said = f"publisher raised {describe(error)}"
            for event in events:
                said = without_echo(said, event)
            results = [Unknown(error=said)] * len(rows)
        if len(results) != len(rows):
            wrong = f"publisher answered {len(results)} results for {len(rows)} events"
            results = [Unknown(error=wrong)] * len(rows)
        answers = []
        for row, event, result in zip(rows, events, results, strict=True):
            if not isinstance(result, Delivered):
                self._block([row])
            answers.append((row["place"], *_coded(result, event)))
        if self._tracing is not None:
            self._tracing.record(rows, events, results, started=started)
        return answers

    def _may_go(self, row: dict[str, Any]) -> bool:
        """Say whether nothing has failed in the scope; at another destination the very event that
        failed may go on.
        """
        first = self._blocked.get(row["scope"])
        return first is None or first == row["event_id"]

    def _block(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if row["scope"] is not None:
                self._blocked.setdefault(row["scope"], row["event_id"])

    def _event(self, row: dict[str, Any]) -> Event:
        return Event(
            event_id=row["event_id"],
            event_type=row["event_type"],
            key=row["key"],
            ordering_key=row["ordering_key"],
            partition_key=row["partition_key"],
            headers=None if row["headers"] is None else dict(row["headers"]),
            payload=row["payload"],
            created_at=row["created_at"],
            attempt=row["attempt"],
            lifecycle=row["lifecycle"],
            claim_id=self._job.claim_id,
            route=row["route"],
        )

    def close(self) -> None:
        """Close what was opened; by now every answer is given, so a failure changes none."""
        for publisher in self._publishers.values():
            with contextlib.suppress(Exception):
                publisher.close()


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows of a batch; it has few different instants, and to make one takes long."""
    instants: dict[int, datetime] = {}
    columns = []
    for column in batch.columns:
        if pa.types.is_timestamp(column.type):
            numbers = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
            for number in numbers.unique().drop_null().to_pylist():
                instants[number] = _EPOCH + timedelta(microseconds=number)
            columns.append([None if n is None else instants[n] for n in numbers.to_pylist()])
        else:
            columns.append(column.to_pylist())
    names = batch.schema.names
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _coded(result: object, event: Event) -> tuple[Any, ...]:
    match result:
        case Delivered():
            return (
                DELIVERED,
                None,
                None,
                _json_without_secrets(result.receipt),
                result.outcome,
                _json_without_secrets(result.outcome_data),
            )
        case Failed():
            return FAILED, without_echo(result.error, event), result.retry_after
        case Rejected():
            return REJECTED, without_echo(result.error, event)
        case Unknown():
            return UNKNOWN, result.error and without_echo(result.error, event)
        case NotSent():
            return NOT_SENT, None
        case _:
            return UNKNOWN, f"publisher answered {type(result).__name__}"


def _json_without_secrets(value: object) -> str | None:
    """Return a value as JSON text; secrets in force become `***` within its texts.

    What has no such form costs its event nothing: it was delivered.
    """
    try:
        text = to_json(value)
        (text or "").encode()
    except (TypeError, ValueError, RecursionError):
        text = to_json(f"a {type(value).__name__} that has no form in JSON")
    if text is None or without_secrets(text) == text:
        return text
    return to_json(_without_secrets(json.loads(text)))


def _without_secrets(value: object) -> object:
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, list):
        return [_without_secrets(one) for one in value]
    if isinstance(value, dict):
        return {without_secrets(name): _without_secrets(one) for name, one in value.items()}
    return value


def _answers(answers: list[tuple[Any, ...]]) -> pa.RecordBatch:
    width = len(RESULTS)
    padded = [(*answer, *(None,) * (width - len(answer))) for answer in answers]
    columns = list(zip(*padded, strict=True)) or [()] * width
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, RESULTS, strict=True)],
        schema=RESULTS,
    )

"""Publishes a slice of a claim in a worker: once, in order, before the deadline."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from delta_outbox.core.failpoints import reach
from delta_outbox.core.redaction import describe
from delta_outbox.core.secrets import hiding, secrets_of, without_secrets
from delta_outbox.delta.files.event_files import UnreadableFile
from delta_outbox.lifecycle.results import (
    Delivered,
    Failed,
    JsonText,
    NotSent,
    Rejected,
    Result,
    Unknown,
    to_json,
)
from delta_outbox.publishers.cloudevents.conversion import CloudEventFormat
from delta_outbox.publishers.cloudevents.transport import Mode
from delta_outbox.publishers.echo import without_echo
from delta_outbox.publishers.protocol import Event, EventBatch, Publisher, header_fault
from delta_outbox.publishers.registry import find_publisher
from delta_outbox.relay.publish.calls import plan_calls
from delta_outbox.relay.publish.contents import read_slice, with_contents
from delta_outbox.relay.publish.deadline import Deadline
from delta_outbox.relay.publish.garbage_collection import seldom_collected
from delta_outbox.relay.publish.publisher_modules import make_importable
from delta_outbox.relay.publish.rows import Rows, rows_of
from delta_outbox.relay.publish.tracing import open_tracing

logger = logging.getLogger(__name__)

DELIVERED: Final = "D"
FAILED: Final = "F"
REJECTED: Final = "R"
UNKNOWN: Final = "U"
NOT_SENT: Final = "N"
NOT_OPENED: Final = "O"  # the publisher did not open: not sent, and the relay says why
NOT_READ: Final = "W"  # its file could not be read by this worker: not sent, Spark is to be asked
CRASHED: Final = "C"
_JSON_ALREADY: Final = {JsonText, type(None)}

RESULTS: Final = pa.schema(
    [
        ("position", pa.int32()),
        ("code", pa.string()),
        ("error", pa.string()),
        ("retry_after", pa.float64()),
        ("receipt", pa.string()),
        ("outcome", pa.string()),
        ("outcome_data", pa.string()),
    ]
)
"""One row per delivery; position: in the claim."""

RESULTS_DDL: Final = (
    "position int, code string, error string, retry_after double, receipt string, outcome string, "
    "outcome_data string"
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What every slice of a claim needs to know.

    Args:
        claim_id: the claim.
        destinations: name to (publisher type, prepared settings).
        payload_formats: name to the format of CloudEvents, for destinations that have one.
        deadline: after it nothing may be sent.
        budget: seconds that a slice may take from its own start, whatever the clocks say.
        folders: where publishers are imported from that a worker does not find by itself.
        tracing: whether publish attempts become spans; then rows have `metadata`.
        producer_slot: who publishes; no other claim has it at the same time.
        unbegun: a file on this machine that is removed before anything is sent.
    """

    claim_id: str
    destinations: Mapping[str, tuple[str, Mapping[str, object]]] = field(repr=False)
    deadline: Deadline
    budget: float
    payload_formats: Mapping[str, CloudEventFormat] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    tracing: bool = False
    producer_slot: str = "slot"
    unbegun: str | None = None

    def deadline_here(self) -> float:
        """Return the deadline in monotonic seconds of this process, the earlier of the two."""
        return time.monotonic() + min(self.budget, self.deadline.seconds_left())


def publish_slice(
    job: Job, batches: Iterable[pa.RecordBatch], *, attempt_number: int, part: int = 0
) -> Iterator[pa.RecordBatch]:
    """Publish the rows of one slice and return what became of each.

    Args:
        job: what holds for the whole claim.
        batches: rows in order of `position`, with payload, as `contents.with_contents` yields them.
        attempt_number: of the task. Above 0 somebody has begun this slice before and nobody
            knows how far it came, so nothing is published (one publish per claim).
        part: number of the slice within its claim.
    """
    if attempt_number > 0:
        for batch in batches:
            answers = _Answers()
            answers.add_all(batch["position"].to_pylist(), CRASHED, "worker lost")
            yield answers.as_batch()
        return
    make_importable(job.folders)
    work = _Slice(job, part=part)
    secrets = [one for _, settings in job.destinations.values() for one in secrets_of(settings)]
    with hiding(secrets), seldom_collected():
        try:
            for batch in batches:
                if job.unbegun is not None:
                    Path(job.unbegun).unlink(missing_ok=True)
                answers = work.publish(batch)
                reach("slice.answered")
                yield answers
        finally:
            work.close()


def task_numbers() -> tuple[int, int]:
    """Return which attempt of its task this worker makes, and of which slice."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (0, 0) if context is None else (context.attemptNumber(), context.partitionId())


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
        left = _Answers()
        left.add_all(rows["position"].to_pylist()[answered:], NOT_READ, f"cannot read {error}")
        yield left.as_batch()


class _Slice:
    """One slice at work: its publishers, and the keys that may go no further."""

    def __init__(self, job: Job, *, part: int) -> None:
        self._job = job
        self._slot = f"{job.producer_slot}.{part}"
        self._deadline = job.deadline_here()
        self._publishers: dict[str, Publisher] = {}
        self._not_opened: dict[str, str] = {}
        self._blocked: dict[str, str] = {}  # scope -> the event that failed first
        self._last_position = -1
        self._tracing = open_tracing(job.destinations) if job.tracing else None

    def publish(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = rows_of(self._firsts(batch), claim_id=self._job.claim_id)
        answers = _Answers()
        ordered = {name: self._ordered(name) for name in set(rows.destinations)}
        for call in plan_calls(rows.scopes, rows.event_ids, rows.destinations, ordered=ordered):
            sent = self._sendable(rows, call, answers)
            if sent:
                self._call(rows, sent, answers)
        return answers.as_batch()

    def _sendable(self, rows: Rows, call: list[int], answers: _Answers) -> list[int]:
        """Return what of a call may be sent; whatever may not is answered."""
        if rows.are_plain and not self._blocked:
            return call
        sent = []
        for row in call:
            event, position, format_ = rows.events[row], rows.positions[row], rows.formats[row]
            if not self._may_go(rows.scopes[row], event):
                answers.add(position, NOT_SENT)
            elif (fault := rows.unfit.get(row) or header_fault(event.headers)) is not None:
                answers.add(position, REJECTED, fault)
                self._block(rows, [row])
            elif format_ is not None and (refused := self._convert(rows, row, format_)) is not None:
                answers.add(position, *refused)
                self._block(rows, [row])
            else:
                sent.append(row)
        return sent

    def _convert(self, rows: Rows, row: int, format_: str) -> tuple[str, str] | None:
        """Give a row payload and headers of a CloudEvent; return the answer if it can have none."""
        destination = rows.destinations[row]
        payload_format, mode = self._job.payload_formats.get(destination), Mode(format_)
        if payload_format is None or mode not in payload_format.transport.modes:
            # Its destination is that of its first claim, and the policy has changed since.
            return FAILED, f"the destination {destination!r} does not write {mode}"
        try:
            made = payload_format.write(rows.events[row], mode)
        except ValueError as error:
            return REJECTED, f"it has no form as a CloudEvent: {error}"
        rows.events[row] = replace(rows.events[row], payload=made.payload, headers=made.headers)
        return None

    def _firsts(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Leave out later rows of the same id in the same commit: the first one is the event."""
        positions = batch["position"].to_numpy()
        first = np.diff(positions, prepend=positions.dtype.type(self._last_position)) != 0
        if positions.size:
            self._last_position = int(positions[-1])
        return batch if first.all() else batch.filter(pa.array(first))

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

    def _call(self, rows: Rows, call: list[int], answers: _Answers) -> None:
        """Call a publisher once; whatever it does, every row gets an answer."""
        destination = rows.destinations[call[0]]
        positions = [rows.positions[row] for row in call]
        if destination not in self._job.destinations:
            # That of its first claim, which neither policies nor settings name any more.
            self._block(rows, call)
            message = f"the settings no longer have the destination {destination!r}"
            answers.add_all(positions, FAILED, message)
            return
        publisher = self._publisher(destination)
        if publisher is None:
            self._block(rows, call)
            answers.add_all(positions, NOT_OPENED, self._not_opened[destination])
            return
        if time.monotonic() >= self._deadline:
            self._block(rows, call)
            answers.add_all(positions, NOT_SENT)
            return
        events = EventBatch(
            [rows.events[row] for row in call],
            deadline=self._deadline,
            destination=destination,
            producer_slot=self._slot,
        )
        started = time.time_ns()
        try:
            results: list[Result] = publisher.publish(events)
        except Exception as error:  # noqa: BLE001 - anybody's code; how far it came nobody knows
            message = f"publisher raised {describe(error)}"
            for event in events:
                message = without_echo(message, event)
            results = [Unknown(error=message)] * len(call)
        if len(results) != len(call):
            wrong = f"publisher answered {len(results)} results for {len(call)} events"
            results = [Unknown(error=wrong)] * len(call)
        if set(map(type, results)) == {Delivered}:
            answers.add_delivered(positions, cast("list[Delivered]", results))
        else:
            for row, position, event, result in zip(call, positions, events, results, strict=True):
                if not isinstance(result, Delivered):
                    self._block(rows, [row])
                answers.add(position, *_coded(result, event))
        if self._tracing is not None:
            traced = [{"destination": destination, "metadata": rows.metadata[row]} for row in call]
            self._tracing.record(traced, events, results, started=started)

    def _may_go(self, scope: str | None, event: Event) -> bool:
        """Say whether nothing has failed in the scope; at another destination the very event that
        failed may go on.
        """
        first = None if scope is None else self._blocked.get(scope)
        return first is None or first == event.event_id

    def _block(self, rows: Rows, call: Iterable[int]) -> None:
        for row in call:
            scope = rows.scopes[row]
            if scope is not None:
                self._blocked.setdefault(scope, rows.events[row].event_id)

    def close(self) -> None:
        """Close what was opened; by now every answer is given, so a failure changes none."""
        for publisher in self._publishers.values():
            with contextlib.suppress(Exception):
                publisher.close()


class _Answers:
    """The answers of a batch, by the columns of `RESULTS`."""

    def __init__(self) -> None:
        self._columns: tuple[list[Any], ...] = tuple([] for _ in RESULTS)

    def add(
        self,
        position: int,
        code: str,
        error: str | None = None,
        retry_after: float | None = None,
        receipt: str | None = None,
        outcome: str | None = None,
        outcome_data: str | None = None,
    ) -> None:
        answer = (position, code, error, retry_after, receipt, outcome, outcome_data)
        for column, value in zip(self._columns, answer, strict=True):
            column.append(value)

    def add_all(self, positions: list[int], code: str, error: str | None = None) -> None:
        for position in positions:
            self.add(position, code, error)

    def add_delivered(self, positions: list[int], results: list[Delivered]) -> None:
        count = len(positions)
        nothing = [None] * count
        answers: tuple[list[Any], ...] = (
            positions,
            [DELIVERED] * count,
            nothing,
            nothing,
            _texts([result.receipt for result in results]),
            [result.outcome for result in results],
            _texts([result.outcome_data for result in results]),
        )
        for column, values in zip(self._columns, answers, strict=True):
            column += values

    def as_batch(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [
                pa.array(column, field.type)
                for column, field in zip(self._columns, RESULTS, strict=True)
            ],
            schema=RESULTS,
        )


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


def _texts(values: list[object]) -> list[str | None]:
    """Return what `_json_without_secrets` says of each value."""
    if set(map(type, values)) <= _JSON_ALREADY:
        texts = cast("list[str | None]", values)
        # All at once: a secret that is in one of them is in all of them together.
        whole = "\n".join(filter(None, texts))
        if whole.isascii() and without_secrets(whole) == whole:
            return texts
    return [_json_without_secrets(value) for value in values]


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

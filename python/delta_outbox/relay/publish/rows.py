"""The rows of a slice, by columns, and the events that they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from itertools import pairwise, repeat, starmap
from typing import Any, Final, cast

import pyarrow as pa

from delta_outbox.core.arrow import invalid_utf8, nearest, out_of_range, rows_where, shared_texts
from delta_outbox.publishers.protocol import Event

INSTANTS: Final = ("created_at", "available_at", "appended_at")
"""The instants of an event's row; only a log of format 1 holds any that an outbox does not know."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BREAKS: Final = (b"\r", b"\n", b"\0")  # in UTF-8 these bytes are part of no other character

Texts = Mapping[str, str | None]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Deliveries of a slice, in order; each column has a value per delivery.

    Args:
        positions: of the deliveries in their claim.
        destinations: by name.
        scopes: their order scopes, None where one neither waits nor blocks.
        events: what a publisher is to see.
        formats: of the payload, None if it goes as it is.
        metadata: of the events, if publish attempts become spans; else empty.
        unfit: row to why its event can be sent nowhere, one sentence.
        are_plain: nothing is unfit, every header may be sent, and every payload goes as it is.
    """

    positions: list[int]
    destinations: Sequence[str]
    scopes: Sequence[str | None]
    events: list[Event]
    formats: list[str | None]
    metadata: Sequence[Texts | None]
    unfit: Mapping[int, str]
    are_plain: bool

    @property
    def event_ids(self) -> list[str]:
        """Return the events of the deliveries."""
        return [event.event_id for event in self.events]


def rows_of(batch: pa.RecordBatch, *, claim_id: str) -> Rows:
    """Read a batch.

    Args:
        batch: as `slice.publish_slice` gets it.
        claim_id: of all of it.
    """
    formats = batch["format"]
    columns: dict[str, Iterable[object]] = {"claim_id": repeat(claim_id, batch.num_rows)}
    columns |= {name: shared_texts(batch[name]) for name in _FEW}
    unfit = _unfit(batch)
    return Rows(
        positions=batch["position"].to_pylist(),
        destinations=cast("list[str]", shared_texts(batch["destination"])),
        scopes=shared_texts(batch["scope"]),
        events=events_of(
            *(columns[name] if name in columns else _values(batch[name]) for name in _FIELDS)
        ),
        formats=formats.to_pylist(),
        metadata=_mappings(batch["metadata"]) if "metadata" in batch.schema.names else [],
        unfit=unfit,
        are_plain=formats.null_count == len(formats)
        and not (unfit or _may_be_broken(batch["headers"])),
    )


def events_of(*columns: Iterable[object]) -> list[Event]:
    """Return events by columns: what `Event(...)` makes of each row, in a sixth of the time.

    A frozen dataclass sets each of its fields by a call. Here they are set before the event is one:
    it becomes an event by its class, which has the same slots.

    Args:
        columns: a value per event; one for each field of `Event`, in their order.

    Raises:
        ValueError: not every column has as many values.
    """
    made: list[Any] = list(starmap(_Draft, zip(*columns, strict=True)))
    for one in made:
        one.__class__ = Event
    return made


_FIELDS: Final = tuple(field.name for field in fields(Event))
_FEW: Final = ("event_type", "key", "ordering_key", "partition_key", "route")


class _Draft:
    __slots__ = _FIELDS

    def __init__(
        self,
        event_id: str,
        event_type: str,
        key: str | None,
        ordering_key: str | None,
        partition_key: str | None,
        headers: Texts | None,
        payload: bytes,
        created_at: datetime,
        attempt: int,
        lifecycle: int,
        claim_id: str,
        route: str,
    ) -> None:
        self.event_id = event_id
        self.event_type = event_type
        self.key = key
        self.ordering_key = ordering_key
        self.partition_key = partition_key
        self.headers = headers
        self.payload = payload
        self.created_at = created_at
        self.attempt = attempt
        self.lifecycle = lifecycle
        self.claim_id = claim_id
        self.route = route


def _values(column: pa.Array) -> Sequence[object]:
    if pa.types.is_map(column.type):
        return _mappings(column)
    if pa.types.is_timestamp(column.type):
        return _instants(column)
    values: list[object] = column.to_pylist()
    return values


def _mappings(column: pa.MapArray) -> Sequence[Texts | None]:
    names = cast("list[str]", shared_texts(column.keys))
    pairs = list(zip(names, shared_texts(column.items), strict=True))
    ends = column.offsets.to_pylist()
    mappings: list[Texts | None] = [dict(pairs[first:end]) for first, end in pairwise(ends)]
    if not column.null_count:
        return mappings
    there = column.is_valid().to_pylist()
    return [one if is_there else None for one, is_there in zip(mappings, there, strict=True)]


def _instants(column: pa.Array) -> list[datetime | None]:
    """Return the instants of a column: it has few different ones, and to make one takes long."""
    numbers = nearest(column.cast(pa.timestamp("us", tz="UTC"))).cast(pa.int64())
    instants: dict[int | None, datetime | None] = {None: None}
    for number in numbers.unique().drop_null().to_pylist():
        instants[number] = _EPOCH + timedelta(microseconds=number)
    return [instants[number] for number in numbers.to_pylist()]


def _unfit(batch: pa.RecordBatch) -> dict[int, str]:
    """Return the rows with an instant that an outbox does not know, and what is wrong with each."""
    found: dict[int, str] = {}
    for name in INSTANTS:
        for row in rows_where(out_of_range(batch[name].cast(pa.timestamp("us", tz="UTC")))):
            found.setdefault(
                int(row), f"its {name} is not between the years 1 and 9999 (UTC): append it anew"
            )
    return found


def _may_be_broken(headers: pa.MapArray) -> bool:
    """Say whether a header may hold CR, LF or NUL, as there is such a byte, or is no text."""
    parts = [part for part in (headers.keys, headers.items) if len(part)]
    texts = [buffer.to_pybytes() for part in parts if (buffer := part.buffers()[-1]) is not None]
    return any(byte in text for text in texts for byte in _BREAKS) or any(
        invalid_utf8(part).any() for part in parts
    )

"""The stage of a scenario: events with names of their own, calls, and what arrived of them."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, get_args

from delta_outbox.lifecycle.results import Delivered, Result
from delta_outbox.publishers.protocol import Event, EventBatch, Publisher
from delta_outbox.testing.publishers.adapter import Adapter, Arrival, Capability, capabilities

EVENT_TYPE: Final = "kit.event"
LARGE_MESSAGE: Final = 60_000  # bytes; no greeting of a transport is as long
RESULTS: Final = get_args(Result)
_LOOK: Final = 0.05  # seconds between two looks at the destination
_RESCUE: Final = 1.0  # seconds after which a call that does not end is helped by a thaw


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of `publish`.

    Args:
        events: what was given.
        answer: what came back, whatever it is.
        seconds: how long it took.
    """

    events: tuple[Event, ...]
    answer: object
    seconds: float

    @property
    def results(self) -> tuple[Any, ...]:
        """Return the results, none where the answer is no list."""
        return tuple(self.answer) if isinstance(self.answer, list) else ()

    @property
    def pairs(self) -> tuple[tuple[Event, Any], ...]:
        """Return events with their results, as many as there are of both."""
        return tuple(zip(self.events, self.results, strict=False))

    @property
    def pairs_by_id(self) -> tuple[tuple[str, Any], ...]:
        """Return delivery ids with their results."""
        return tuple((event.delivery_id, result) for event, result in self.pairs)

    def ids(self, *kinds: type) -> tuple[str, ...]:
        """Return the delivery ids of events with results of some kinds, of all without any.

        Args:
            kinds: classes of results.
        """
        if not kinds:
            return tuple(event.delivery_id for event in self.events)
        return tuple(event.delivery_id for event, result in self.pairs if type(result) in kinds)


class Stage:
    """An adapter, and a name of its own for everything that a scenario does with it.

    Args:
        adapter: of the publisher under test.
    """

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.capabilities = capabilities(adapter)
        self.prefix = f"kit-{uuid.uuid4().hex[:12]}-"
        # What no receipt, no error and no sentence may repeat.
        self.content = f"content{uuid.uuid4().hex}"
        self._publishers: list[Publisher] = []

    def has(self, *wanted: Capability) -> bool:
        """Say whether something can be asked.

        Args:
            wanted: capabilities, all of them.
        """
        return self.capabilities.issuperset(wanted)

    def event(self, name: str, *, key: str | None = None, **fields: Any) -> Event:
        """Make an event.

        Args:
            name: its short name.
            key: its key and scope of order, one of its own if left out.
            fields: other fields.
        """
        given: dict[str, Any] = {
            "event_id": self.prefix + name,
            "event_type": EVENT_TYPE,
            "key": self.prefix + (key or f"key-{name}"),
            "ordering_key": self.prefix + (key or f"key-{name}"),
            "headers": {"kit": self.content},
            "payload": f'{{"name":"{name}","content":"{self.content}"}}'.encode(),
            "created_at": datetime(2026, 1, 1, tzinfo=UTC),
            "claim_id": self.prefix + "claim",
            "route": self.adapter.route,
            **fields,
        }
        return Event(**given)

    def events(self, count: int, name: str = "e") -> list[Event]:
        """Make events with a key each.

        Args:
            count: how many.
            name: short name, to be numbered.
        """
        return [self.event(f"{name}{number}") for number in range(count)]

    def open(self) -> Publisher:
        """Open an instance that is closed after the scenario."""
        publisher = self.adapter.publisher()
        self._publishers.append(publisher)
        publisher.open(self.adapter.settings)
        return publisher

    def publish(
        self, publisher: Publisher, events: Sequence[Event], *, seconds: float | None = None
    ) -> Call:
        """Call `publish`.

        Args:
            publisher: an open instance.
            events: what to send.
            seconds: until the deadline; as long as an answer may take if left out.
        """
        started = time.monotonic()
        limit = self.adapter.answer_seconds if seconds is None else seconds
        answer = publisher.publish(EventBatch(events, deadline=started + limit))
        return Call(events=tuple(events), answer=answer, seconds=time.monotonic() - started)

    def arrivals(self, *calls: Call) -> tuple[Arrival, ...]:
        """Return what has arrived of this scenario, and wait for what is said to be Delivered.

        Args:
            calls: whose events are waited for.
        """
        wanted = {one for call in calls for one in call.ids(Delivered)}
        until = time.monotonic() + self.adapter.answer_seconds
        while time.monotonic() < until:
            if wanted <= {one.delivery_id for one in self.adapter.received()}:
                break
            time.sleep(_LOOK)
        time.sleep(self.adapter.settle_seconds)
        return tuple(
            one for one in self.adapter.received() if one.delivery_id.startswith(self.prefix)
        )

    @contextlib.contextmanager
    def frozen(self, seconds: float) -> Iterator[threading.Event]:
        """Freeze the destination for a block; a publisher that waits for ever is helped out of it.

        It is given what says whether that was needed.

        Args:
            seconds: that the block should last at most.
        """
        helped = threading.Event()

        def help_out() -> None:
            helped.set()
            self.adapter.thaw()

        rescue = threading.Timer(seconds + self.adapter.grace_seconds + _RESCUE, help_out)
        self.adapter.freeze()
        rescue.start()
        try:
            yield helped
        finally:
            rescue.cancel()
            rescue.join()
            if not helped.is_set():
                self.adapter.thaw()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the destination for a block."""
        self.adapter.stop()
        try:
            yield
        finally:
            self.adapter.start()

    def close(self) -> None:
        """Close what was opened."""
        for publisher in self._publishers:
            with contextlib.suppress(Exception):  # scenarios that are about it close by themselves
                publisher.close()


def by_id(arrivals: Sequence[Arrival]) -> Mapping[str, Sequence[Arrival]]:
    """Return arrivals by delivery id, in order.

    Args:
        arrivals: in order.
    """
    found: dict[str, list[Arrival]] = {}
    for one in arrivals:
        found.setdefault(one.delivery_id, []).append(one)
    return found

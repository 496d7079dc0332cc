"""Says which events may be in a pipeline together without risking the order of a key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from delta_outbox.publishers.protocol import Event

_CLOSED: Final = ""  # no route is empty


class KeyRounds:
    """Cut a batch into rounds; a round begins when every result of the last one is known.

    A later event of a key must not be delivered when an earlier one was not. In a Kafka pipeline
    that needs two things. The broker refuses a gap only where it has accepted something of the same
    producer before: without that it takes any first sequence number, also the one behind a batch
    that it has just refused (seen with Kafka 4.1 and gapless guarantee on, one request in flight
    or five). So the first event of a key and topic travels alone, and its successors follow in
    one pipeline once it is confirmed. And where the successor goes to another topic, nothing
    orders the two: it waits for the next round.

    Args:
        events: all events of the call, in order.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._scopes = [event.ordered_key for event in events]
        self._routes = [event.route for event in events]
        self._blocked: set[str] = set()
        self._confirmed: dict[str, str] = {}  # key -> topic of its last confirmed event

    def cut(
        self, waiting: Iterable[int], *, one_per_key: bool
    ) -> tuple[list[int], list[int], list[int]]:
        """Return the events of the next round, those that wait, and those that must not be sent.

        Args:
            waiting: positions of events without a result, ascending.
            one_per_key: do not pipeline within a key at all.
        """
        taken: list[int] = []
        left: list[int] = []
        behind_blocked: list[int] = []
        pipelines: dict[str, str] = {}
        scopes, routes, blocked, confirmed = (
            self._scopes,
            self._routes,
            self._blocked,
            self._confirmed,
        )
        for position in waiting:
            key = scopes[position]
            if key is None:
                taken.append(position)
            elif key in blocked:
                behind_blocked.append(position)
            elif (pipeline := pipelines.get(key)) is None:
                taken.append(position)
                route = routes[position]
                pipelined = not one_per_key and confirmed.get(key) == route
                pipelines[key] = route if pipelined else _CLOSED
            elif pipeline == routes[position]:
                taken.append(position)
            else:
                pipelines[key] = _CLOSED
                left.append(position)
        return taken, left, behind_blocked

    def confirm(self, position: int) -> None:
        """Note that an event was delivered: its key may be pipelined in its topic.

        Args:
            position: of the event.
        """
        key = self._scopes[position]
        if key is not None:
            self._confirmed[key] = self._routes[position]

    def block(self, position: int) -> None:
        """Note that an event was not delivered: nothing of its key may follow.

        Args:
            position: of the event.
        """
        key = self._scopes[position]
        if key is not None:
            self._blocked.add(key)

    def forget_confirmed(self) -> None:
        """Start the pipelines anew: another producer is unknown to the broker."""
        self._confirmed.clear()

"""Cuts the deliveries of a slice into calls of a publisher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def plan_calls(
    scopes: Sequence[str | None],
    event_ids: Sequence[str],
    destinations: Sequence[str],
    *,
    ordered: Mapping[str, bool],
) -> Iterator[list[int]]:
    """Cut deliveries into calls so that nothing of a key is sent before its predecessor's result.

    One destination whose publisher keeps order gets all of them in one call. Otherwise they go in
    rounds: the first event of every key, then the second, and so on; a round has one call for
    each destination. So no call of a publisher without order holds two events of one key, and an
    event waits for its predecessor at every destination.

    Args:
        scopes: the order scope of each delivery, None if it neither waits nor blocks.
        event_ids: the event of each delivery; deliveries of one event share a round.
        destinations: the destination of each delivery.
        ordered: whether the publisher of a destination keeps order within a call.

    Yields:
        The positions of each call, in order.
    """
    if len(ordered) == 1 and all(ordered.values()):
        if scopes:
            yield list(range(len(scopes)))
        return
    rounds: dict[int, dict[str, list[int]]] = {}
    latest: dict[str, tuple[str, int]] = {}  # scope -> (event, its round)
    for place, (scope, event_id, destination) in enumerate(
        zip(scopes, event_ids, destinations, strict=True)
    ):
        number = 0
        if scope is not None:
            event, last = latest.get(scope, ("", -1))
            number = last if event == event_id else last + 1
            latest[scope] = (event_id, number)
        rounds.setdefault(number, {}).setdefault(destination, []).append(place)
    for number in sorted(rounds):
        yield from rounds[number].values()

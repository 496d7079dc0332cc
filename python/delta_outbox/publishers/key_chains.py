"""Orders the events of a call by key, for publishers that wait for each answer."""

from __future__ import annotations

from collections.abc import Sequence

from delta_outbox.publishers.protocol import Event


def key_chains(events: Sequence[Event]) -> list[list[int]]:
    """Return the positions of events that must follow each other, in order of the first of each.

    Only a key that is the ordering key is one of order; any other merely places the event.

    Args:
        events: all events of the call, in order.
    """
    chains: list[list[int]] = []
    by_key: dict[str, list[int]] = {}
    for position, event in enumerate(events):
        key = event.ordered_key
        if key is None:
            chains.append([position])
        elif (chain := by_key.get(key)) is not None:
            chain.append(position)
        else:
            by_key[key] = [position]
            chains.append(by_key[key])
    return chains

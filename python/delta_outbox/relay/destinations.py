"""The destinations of a relay, checked before anything is claimed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from delta_outbox.core.errors import PublisherUnavailable, UnknownDestination
from delta_outbox.core.settings import Settings
from delta_outbox.publishers.registry import find_publisher, prepare_settings, probe


def prepare_destinations(
    names: Iterable[str],
    settings: Settings,
    *,
    home: Path,
    tolerates: Callable[[str, str], bool] = lambda _destination, _cause: False,
) -> dict[str, tuple[str, Mapping[str, object]]]:
    """Return destinations by name: publisher type and prepared settings.

    Args:
        names: of the destinations.
        settings: where the destinations are described.
        home: the folder that relative paths of the settings start from.
        tolerates: says of a destination that does not answer, and of the cause, whether the relay
            can go on without it.

    Raises:
        UnknownDestination: the settings do not have one of them.
        BadSettings: a setting breaks a rule.
        UnknownPublisher: no publisher has this type.
        PublisherUnavailable: the destination does not answer, and that is not tolerated.
    """
    prepared: dict[str, tuple[str, Mapping[str, object]]] = {}
    for name in sorted(names):
        described = settings.publishers.get(name)
        if described is None:
            raise UnknownDestination(destination=name, known=settings.publishers)
        publisher = find_publisher(described.type, destination=name)
        ready = prepare_settings(publisher, described.settings, destination=name, home=home)
        try:
            probe(publisher, ready, destination=name)
        except PublisherUnavailable as error:
            if not tolerates(name, error.cause):
                raise
        prepared[name] = (described.type, ready)
    return prepared

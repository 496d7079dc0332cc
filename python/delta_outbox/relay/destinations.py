"""The destinations of a relay, checked before anything is claimed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from delta_outbox.errors import UnknownDestination
from delta_outbox.policy import PolicySet
from delta_outbox.publishers.registry import find_publisher, prepare_settings, probe
from delta_outbox.relay.forms import CLOUDEVENTS
from delta_outbox.settings import Settings


def prepare_destinations(
    policies: PolicySet, settings: Settings, *, home: Path
) -> dict[str, tuple[str, Mapping[str, object]]]:
    """Return the destinations that the policies name: publisher type and prepared settings.

    Args:
        policies: the delivery policies.
        settings: where the destinations are described.
        home: the folder that relative paths of the settings start from.

    Raises:
        UnknownDestination: a policy names one that the settings do not have.
        BadSettings: a setting breaks a rule.
        UnknownPublisher: no publisher has this type.
        PublisherUnavailable: the destination does not answer.
    """
    prepared: dict[str, tuple[str, Mapping[str, object]]] = {}
    for name in sorted(policies.destinations):
        described = settings.publishers.get(name)
        if described is None:
            raise UnknownDestination(destination=name, known=settings.publishers)
        publisher = find_publisher(described.type, destination=name)
        own = {key: value for key, value in described.settings.items() if key != CLOUDEVENTS}
        ready = prepare_settings(publisher, own, destination=name, home=home)
        probe(publisher, ready, destination=name)
        prepared[name] = (described.type, ready)
    return prepared

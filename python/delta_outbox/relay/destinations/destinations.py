"""The destinations of a relay: those of the policies in force, and those that open deliveries keep
from former policies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Set
from pathlib import Path

from delta_outbox.core.errors import PublisherUnavailable, UnknownDestination
from delta_outbox.core.settings import Settings
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.publishers.cloudevents.conversion import CloudEventFormat
from delta_outbox.publishers.registry import find_publisher, prepare_settings, probe
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.destinations.payload_formats import (
    payload_format_of,
    prepare_payload_formats,
)
from delta_outbox.relay.publish.producer_slots import ProducerSlots
from delta_outbox.relay.publish.publishing import Publishing
from delta_outbox.relay.publish.tracing import check_tracing
from delta_outbox.relay.publish.workers import Workers
from delta_outbox.store.store import Store


class Destinations:
    """The destinations of one relay, each checked before anything is claimed for it.

    Args:
        outbox: the store.
        isolation: what each destination may be asked, and whether one may be missing.
        forget_plan: called when what is planned may have been made for others.
    """

    def __init__(
        self,
        outbox: Store,
        isolation: Isolation,
        *,
        forget_plan: Callable[[], None],
    ) -> None:
        self._outbox = outbox
        self._isolation = isolation
        self._forget_plan = forget_plan
        self._is_prepared = False
        parallelism = outbox.settings.relay.parallelism or os.cpu_count() or 1
        folder = outbox.home.scratch if outbox.home else None
        self.workers = Workers(outbox.spark, parallelism=parallelism, folder=folder)
        self.publishing = Publishing(
            outbox.spark,
            outbox.tables,
            outbox.statements,
            parallelism=parallelism,
            tracing=outbox.settings.relay.tracing,
            slots=ProducerSlots(outbox.worker_id),
            workers=self.workers,
            folder=folder,
        )

    def prepare(self) -> None:
        """Read the policies, and check the destinations that they name for the first time.

        Raises:
            PublisherUnavailable: a destination does not answer.
            UnknownDestination: a policy names a destination that the settings do not have.
        """
        if self._is_prepared:
            self._outbox.policies()
        else:
            self._outbox.watch_policies(self._prepare_for)
            self._is_prepared = True

    def prepare_former(self, claimed_for: Set[str]) -> bool:
        """Check destinations that open deliveries have and the policies no longer name; say whether
        there are any. One that the settings no longer have either fails its deliveries.

        Args:
            claimed_for: the destinations of what was claimed before.
        """
        described = self._outbox.settings.publishers
        former = (claimed_for - self.publishing.destinations.keys()) & described.keys()
        if former:
            payload_formats = {name: payload_format_of(name, described[name]) for name in former}
            self._take(
                former,
                {
                    name: payload_format
                    for name, payload_format in payload_formats.items()
                    if payload_format is not None
                },
            )
            self._forget_plan()  # it may not have been made for several destinations
        return bool(former)

    def check_opened(self) -> None:
        """Stop if a destination is not there.

        Raises:
            PublisherUnavailable: its publisher did not open; nothing was sent to it.
        """
        while self.publishing.not_opened:
            destination, cause = self.publishing.not_opened.popitem()
            if not self._isolation.tolerates(destination, cause):
                raise PublisherUnavailable(destination=destination, cause=cause)
            self._forget_plan()

    def _prepare_for(self, policies: PolicySet) -> None:
        """Check the destinations of policies before they are put into force."""
        settings = self._outbox.settings
        payload_formats = prepare_payload_formats(policies, settings)
        if not policies.destinations <= self.publishing.destinations.keys():
            if settings.relay.tracing:
                check_tracing()
            self._take(policies.destinations, payload_formats)
        self._forget_plan()  # it was made by other policies

    def _take(self, names: Iterable[str], payload_formats: Mapping[str, CloudEventFormat]) -> None:
        """Check destinations, and publish to them as well from now on."""
        prepared = prepare_destinations(
            names,
            self._outbox.settings,
            home=self._outbox.folder,
            tolerates=self._isolation.tolerates,
        )
        self._isolation.know(prepared)
        self.publishing.add(prepared, payload_formats)


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

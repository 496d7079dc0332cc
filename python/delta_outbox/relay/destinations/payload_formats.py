"""The formats of CloudEvents that policies ask for, checked before anything is claimed."""

from __future__ import annotations

from delta_outbox.core.errors import BadPolicy, BadSettings, UnknownDestination
from delta_outbox.core.secrets import cause_to_show, secrets_of, without_secrets
from delta_outbox.core.settings import PublisherSettings, Settings
from delta_outbox.lifecycle.policy import DeliveryPolicy, PolicySet
from delta_outbox.lifecycle.policy_columns import PayloadFormat
from delta_outbox.publishers.cloudevents.conversion import CloudEventFormat
from delta_outbox.publishers.cloudevents.settings import CLOUDEVENTS, parse_cloudevents
from delta_outbox.publishers.cloudevents.transport import Transport
from delta_outbox.publishers.registry import find_publisher, transport_of


def prepare_payload_formats(policies: PolicySet, settings: Settings) -> dict[str, CloudEventFormat]:
    """Return the format of CloudEvents of each destination whose settings have one.

    Args:
        policies: the delivery policies.
        settings: where the destinations are described.

    Raises:
        UnknownDestination: a policy names one that the settings do not have.
        BadSettings: the table of a destination breaks a rule, or is missing.
        BadPolicy: a policy asks for CloudEvents where the publisher does not carry them.
    """
    transports: dict[str, Transport | None] = {}
    payload_formats: dict[str, CloudEventFormat] = {}
    for name in sorted(policies.destinations):
        described = settings.publishers.get(name)
        if described is None:
            raise UnknownDestination(destination=name, known=settings.publishers)
        transport = transport_of(find_publisher(described.type, destination=name))
        transports[name] = transport
        payload_format = _payload_format(name, described, transport)
        if payload_format is not None:
            payload_formats[name] = payload_format
    problems = [
        problem
        for number, policy in enumerate(policies.policies, start=1)
        for name in policy.destinations
        if (problem := _problem(number, policy, name, transports[name])) is not None
    ]
    if problems:
        raise BadPolicy(problems)
    for policy in policies.policies:
        for name in policy.destinations:
            if policy.format is not PayloadFormat.RAW and name not in payload_formats:
                raise BadSettings(
                    f"publishers.{name}: the policy {policy.event_type!r} asks for "
                    f"{policy.format}, so a table `{CLOUDEVENTS}` with `source` must be given."
                )
    return payload_formats


def payload_format_of(name: str, described: PublisherSettings) -> CloudEventFormat | None:
    """Return the format of CloudEvents of a destination; None if its settings have none.

    Args:
        name: of the destination.
        described: its settings.

    Raises:
        BadSettings: its table breaks a rule, or its publisher does not carry CloudEvents.
    """
    return _payload_format(
        name, described, transport_of(find_publisher(described.type, destination=name))
    )


def _payload_format(
    name: str, described: PublisherSettings, transport: Transport | None
) -> CloudEventFormat | None:
    if CLOUDEVENTS not in described.settings:
        return None
    if transport is None:
        raise BadSettings(
            f"publishers.{name}: the type {described.type!r} does not carry CloudEvents, so "
            f"`{CLOUDEVENTS}` must not be given."
        )
    secrets = secrets_of(described.settings)
    try:
        settings = parse_cloudevents(described.settings[CLOUDEVENTS])
    except ValueError as error:
        message = without_secrets(str(error), secrets)
        raise BadSettings(f"publishers.{name}: {message}") from cause_to_show(error, secrets)
    return CloudEventFormat(settings=settings, transport=transport)


def _problem(
    number: int, policy: DeliveryPolicy, name: str, transport: Transport | None
) -> str | None:
    modes = () if transport is None else transport.modes
    allowed = (PayloadFormat.RAW, *modes)
    if policy.format in allowed:
        return None
    return (
        f"row {number} ({policy.event_type!r}), column `format`: must be {' or '.join(allowed)} "
        f"at the destination {name!r}. Got: {policy.format!s}"
    )

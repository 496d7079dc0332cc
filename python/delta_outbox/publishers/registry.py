"""Finds the publisher for the `type` of a destination, and checks its settings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import ClassVar, Final, cast

from delta_outbox.core.errors import (
    BadSettings,
    OutboxError,
    PublisherUnavailable,
    UnknownPublisher,
)
from delta_outbox.core.redaction import describe, scrub
from delta_outbox.core.secrets import cause_to_show, hiding, secrets_of, without_secrets
from delta_outbox.publishers.cloudevents.settings import CLOUDEVENTS
from delta_outbox.publishers.cloudevents.transport import Transport
from delta_outbox.publishers.protocol import Publisher

ENTRY_POINT_GROUP: Final = "delta_outbox.publishers"
BUILT_IN: Final[Mapping[str, str]] = {
    "http": "delta_outbox.publishers.http.publisher:HttpPublisher",
    "jsonl": "delta_outbox.publishers.jsonl:JsonlPublisher",
    "kafka": "delta_outbox.publishers.kafka.publisher:KafkaPublisher",
    "memory": "delta_outbox.publishers.memory:MemoryPublisher",
    "nats": "delta_outbox.publishers.nats.publisher:NatsPublisher",
    "null": "delta_outbox.publishers.null:NullPublisher",
    "rabbitmq": "delta_outbox.publishers.rabbitmq.publisher:RabbitPublisher",
    "redis": "delta_outbox.publishers.redis.publisher:RedisPublisher",
    "sqs": "delta_outbox.publishers.sqs.publisher:SqsPublisher",
}
EXTRAS: Final[Mapping[str, str]] = {
    "boto3": "sqs",
    "botocore": "sqs",
    "h11": "http",
    "hiredis": "redis",
    "nats": "nats",
    "pika": "rabbitmq",
}
"""Library to the extra of this package that brings it."""
_METHODS: Final = ("open", "publish", "close")


class PublisherNotLoaded(OutboxError):
    """The code of a publisher cannot be used: install it, or correct it."""

    code: ClassVar[str] = "PUBLISHER_NOT_LOADED"
    remedy = "Install the package that holds the publisher where relay and executors run."


def known_types() -> list[str]:
    """Return the built-in types and those of installed packages, sorted."""
    return sorted({*BUILT_IN, *(point.name for point in entry_points(group=ENTRY_POINT_GROUP))})


def find_publisher(type_: str, *, destination: str) -> type[Publisher]:
    """Return the class behind a `type`; a built-in wins over an entry point of its name.

    Args:
        type_: a built-in, an entry point, or `package.module:Class`.
        destination: whose settings name it.

    Raises:
        UnknownPublisher: no publisher has this name.
        PublisherNotLoaded: it cannot be imported, or is no publisher.
    """
    where = BUILT_IN.get(type_, type_ if ":" in type_ else None)
    if where is None:
        points = entry_points(group=ENTRY_POINT_GROUP, name=type_)
        if not points:
            raise UnknownPublisher(destination=destination, type_=type_, known=known_types())
        where = next(iter(points)).value
    return _checked(_imported(where, destination), where, destination)


def is_ordered(publisher: type[Publisher]) -> bool:
    """Return whether a call may hold two events of one key.

    Args:
        publisher: the class.
    """
    return getattr(publisher, "ordered", False) is True


def transport_of(publisher: type[Publisher]) -> Transport | None:
    """Return how it carries CloudEvents, None if it does not.

    Args:
        publisher: the class.
    """
    transport = getattr(publisher, "cloudevents", None)
    return transport if isinstance(transport, Transport) else None


def prepare_settings(
    publisher: type[Publisher], settings: Mapping[str, object], *, destination: str, home: Path
) -> dict[str, object]:
    """Return settings that mean the same in every process, or say what is wrong with them.

    A publisher class may offer `prepare(settings, home)`, which fills in what depends on the home
    or the working folder, and `validate(settings)`, which raises ValueError or TypeError with one
    sentence. Neither connects to anything.

    Args:
        publisher: the class.
        settings: the table `[publishers.<destination>]` without `type`. Its table `cloudevents` is
            the relay's, and no publisher sees it.
        destination: its name.
        home: the folder of the outbox.

    Raises:
        BadSettings: a setting breaks a rule.
    """
    prepared = {name: value for name, value in settings.items() if name != CLOUDEVENTS}
    secrets = secrets_of(settings)
    try:
        with hiding(secrets):
            if prepare := getattr(publisher, "prepare", None):
                prepared = dict(prepare(prepared, home))
            if validate := getattr(publisher, "validate", None):
                validate(prepared)
    except OutboxError:
        raise
    except Exception as error:  # noqa: BLE001 - anybody's code, wrapped once, here
        is_sentence = isinstance(error, ValueError | TypeError)
        message = (
            without_secrets(str(error), secrets)
            if is_sentence
            else describe(error, secrets=secrets)
        )
        cause = cause_to_show(error, secrets)
        raise BadSettings(f"publishers.{destination}: {message}") from cause
    return prepared


def probe(
    publisher: type[Publisher],
    settings: Mapping[str, object],
    *,
    destination: str,
    timeout: float = 10.0,
) -> None:
    """Raise if the destination does not answer; a publisher without `probe` is taken as well.

    Args:
        publisher: the class.
        settings: its prepared settings.
        destination: its name.
        timeout: seconds to wait for an answer.

    Raises:
        PublisherUnavailable: it does not answer.
    """
    ask = getattr(publisher, "probe", None)
    if ask is None:
        return
    secrets = secrets_of(settings)
    try:
        with hiding(secrets):
            ask(settings, timeout)
    except OutboxError:
        raise
    except Exception as error:  # noqa: BLE001 - anybody's code, wrapped once, here
        is_sentence = isinstance(error, ConnectionError)
        message = scrub(error, secrets=secrets) if is_sentence else describe(error, secrets=secrets)
        cause = cause_to_show(error, secrets)
        raise PublisherUnavailable(destination=destination, cause=message) from cause


def _imported(where: str, destination: str) -> object:
    module, _, attribute = where.partition(":")
    try:
        return EntryPoint(name=attribute, value=where, group=ENTRY_POINT_GROUP).load()
    except (AttributeError, ValueError, TypeError) as error:
        if _is_missing_class(module):
            raise PublisherNotLoaded(
                f"publishers.{destination}: the module {module!r} has no {attribute!r}.",
                remedy="Correct `type`: it must be `package.module:Class`.",
            ) from error
        raise PublisherNotLoaded(
            f"publishers.{destination}: {where!r} cannot be imported: {describe(error)}"
        ) from error
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS or where not in BUILT_IN.values():
            raise _not_imported(module, destination, error) from error
        raise PublisherNotLoaded(
            f"publishers.{destination}: the Python package {library!r} is missing.",
            remedy=f"Install it where relay and executors run: "
            f"pip install 'delta-outbox[{EXTRAS[library]}]'.",
        ) from error
    except Exception as error:  # importing runs anybody's code
        raise _not_imported(module, destination, error) from error


def _not_imported(module: str, destination: str, error: Exception) -> PublisherNotLoaded:
    return PublisherNotLoaded(
        f"publishers.{destination}: the module {module!r} cannot be imported: {describe(error)}"
    )


def _is_missing_class(module: str) -> bool:
    try:
        importlib.import_module(module)
    except Exception:  # noqa: BLE001 - then the module itself is the trouble
        return False
    return True


def _checked(found: object, where: str, destination: str) -> type[Publisher]:
    if not inspect.isclass(found):
        raise PublisherNotLoaded(
            f"publishers.{destination}: {where!r} must be a class.",
            remedy="Correct `type`: it must be `package.module:Class`.",
        )
    missing = [name for name in _METHODS if not callable(getattr(found, name, None))]
    if missing:
        raise PublisherNotLoaded(
            f"publishers.{destination}: the class {where!r} must have the methods "
            f"{', '.join(_METHODS)}. Missing: {', '.join(missing)}.",
            remedy="Add the methods, or name another class.",
        )
    return cast("type[Publisher]", found)

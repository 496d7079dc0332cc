"""Settings of the Kafka publisher: the client's own names, from an allow-list."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from delta_outbox.core.globs import glob_to_regex
from delta_outbox.core.secrets import secrets_of
from delta_outbox.core.settings import dotted
from delta_outbox.publishers.kafka.delivery import ExactlyOnce, parse_delivery

# Whatever could weaken the promises (acknowledgement, order, deadline, peer verification), load
# code or start commands is not on the list.
ALLOWED: Final = frozenset(
    """
    acks batch.num.messages batch.size bootstrap.servers broker.address.family client.dns.lookup
    client.id compression.codec compression.level compression.type connections.max.idle.ms
    enable.idempotence enable.ssl.certificate.verification linger.ms message.max.bytes
    metadata.max.age.ms partitioner queue.buffering.max.kbytes queue.buffering.max.messages
    queue.buffering.max.ms reconnect.backoff.max.ms reconnect.backoff.ms request.required.acks
    retry.backoff.max.ms retry.backoff.ms
    sasl.kerberos.keytab sasl.kerberos.principal sasl.kerberos.service.name
    sasl.mechanism sasl.mechanisms sasl.oauthbearer.client.id sasl.oauthbearer.client.secret
    sasl.oauthbearer.extensions sasl.oauthbearer.method sasl.oauthbearer.scope
    sasl.oauthbearer.token.endpoint.url sasl.password sasl.username
    security.protocol socket.connection.setup.timeout.ms socket.keepalive.enable
    ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.cipher.suites
    ssl.crl.location ssl.curves.list ssl.endpoint.identification.algorithm ssl.key.location
    ssl.key.password ssl.key.pem ssl.keystore.location ssl.keystore.password ssl.sigalgs.list
    """.split()  # noqa: SIM905 - a column of a hundred quotes is harder to check than this
)

# name -> (the only values it may have, why)
_FIXED: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    "acks": (frozenset({"all", "-1"}), "published means acknowledged by all in-sync replicas"),
    "request.required.acks": (frozenset({"all", "-1"}), "as for acks"),
    "enable.idempotence": (frozenset({"true"}), "a retry inside the client must not duplicate"),
    "enable.ssl.certificate.verification": (
        frozenset({"true"}),
        "the broker's certificate is always verified; name its authority in ssl.ca.location",
    ),
    "ssl.endpoint.identification.algorithm": (
        frozenset({"https"}),
        "the broker's host name is always verified",
    ),
    # Random placement of keys would break their order; murmur2 is where Java's producers put them.
    "partitioner": (
        frozenset({"murmur2", "murmur2_random", "consistent", "fnv1a", "fnv1a_random"}),
        "events of a key must share a partition",
    ),
}
_RESERVED: Final[Mapping[str, str]] = {
    "message.timeout.ms": "it follows from the lease of the claim",
    "delivery.timeout.ms": "it follows from the lease of the claim",
    "max.in.flight": "it belongs to the promise of order",
    "max.in.flight.requests.per.connection": "it belongs to the promise of order",
    "enable.gapless.guarantee": "it belongs to the promise of order",
    "allow.auto.create.topics": "a misspelt route must not create a topic",
    "transactional.id": "it follows from `transactional_id_prefix` and who sends",
    "transaction.timeout.ms": "it follows from the lease of the claim",
    "isolation.level": "it belongs to the promise of `delivery`",
}
_DEFAULTS: Final[Mapping[str, str | int]] = {
    "client.id": "delta-outbox",
    "compression.type": "lz4",
    "linger.ms": 5,
    "partitioner": "murmur2_random",
    # Half of it passes between the two connections that each claim makes; the client's is 100.
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 1000,  # the client's 10 s would outlast most claims
}
DEFAULT_MESSAGE_MAX_BYTES: Final = 1_000_000  # librdkafka's default
_MAX_LINGER: Final = 500  # ms; it must stay far below any publish deadline
_SERVER: Final = re.compile(
    r"(?:[A-Za-z0-9_]+://)?(?:\[[0-9A-Fa-f:.]+\]|[^\s:,/@\[\]]+)(?::\d{1,5})?"
)
_USER: Final = re.compile(r"[^\s,'\"/]*@")
_INTERNAL: Final = "__"  # Kafka's own topics begin so
_CONNECTION: Final = (
    *("bootstrap.", "broker.", "client.", "connections.", "enable.ssl.", "metadata."),
    *("reconnect.", "retry.", "sasl.", "security.", "socket.", "ssl."),
)


@dataclass(frozen=True, kw_only=True)
class KafkaSettings:
    """Checked settings.

    Args:
        client: the configuration of the client, without what the publisher adds.
        topics: globs of the topics that may be written.
        exactly_once: how `delivery = "exactly_once"` is done; None for at least once.
        secrets: values that must never be shown.
    """

    client: Mapping[str, str | int | float | bool] = field(repr=False)
    topics: tuple[str, ...]
    exactly_once: ExactlyOnce | None = None
    secrets: tuple[str, ...] = field(repr=False, default=())

    @property
    def bootstrap(self) -> str:
        """Return the addresses of the brokers."""
        return str(self.client["bootstrap.servers"])

    @property
    def connection(self) -> Mapping[str, str | int | float | bool]:
        """Return what of the configuration concerns connections: all that a reader needs."""
        return {name: value for name, value in self.client.items() if name.startswith(_CONNECTION)}

    @property
    def message_max_bytes(self) -> int:
        """Return the size above which the client refuses a message."""
        return int(self.client.get("message.max.bytes", DEFAULT_MESSAGE_MAX_BYTES))

    def allows(self, topic: str) -> bool:
        """Return whether the topic is on the allow-list.

        As a shell hides dot files, a glob finds Kafka's internal topics only if it names their
        first two characters. The marker topic is never among them.

        Args:
            topic: the rendered route.
        """
        if self.exactly_once is not None and topic == self.exactly_once.marker_topic:
            return False
        return any(
            re.match(glob_to_regex(glob), topic)
            for glob in self.topics
            if glob.startswith(_INTERNAL) or not topic.startswith(_INTERNAL)
        )


def parse_settings(settings: Mapping[str, object]) -> KafkaSettings:
    """Check the settings of a destination of type `kafka`.

    Args:
        settings: names of the Kafka client, `topics`: a list of topics or shell globs, and those
            of `kafka_delivery`.

    Raises:
        ValueError: one sentence about the first setting that breaks a rule.
    """
    flat = dotted(settings)
    topics = _topics(flat.pop("topics", None))
    exactly_once = parse_delivery(flat)
    for name, value in flat.items():
        _check(name, value)
    _check_bootstrap(flat.get("bootstrap.servers"))
    # Two names of one option: the user's must win over the default of the other.
    defaults = {k: v for k, v in _DEFAULTS.items() if not _ALIASES.get(k, set()) & flat.keys()}
    client = {**defaults, **{name: _scalar(name, value) for name, value in flat.items()}}
    return KafkaSettings(
        client=client, topics=topics, exactly_once=exactly_once, secrets=secrets_of(flat)
    )


_ALIASES: Final[Mapping[str, set[str]]] = {
    "compression.type": {"compression.codec"},
    "linger.ms": {"queue.buffering.max.ms"},
}


def _topics(value: object) -> tuple[str, ...]:
    globs = [value] if isinstance(value, str) else value
    if (
        not isinstance(globs, list | tuple)
        or not globs
        or not all(isinstance(glob, str) and glob for glob in globs)
    ):
        raise ValueError(
            "kafka: `topics` must list the topics that may be written, shell globs allowed, for "
            f'example ["order.*"]; ["*"] allows all but internal ones. Got: {value!r}.'
        )
    for glob in globs:
        try:
            glob_to_regex(glob)
        except ValueError as error:
            raise ValueError(f"kafka: `topics` has the glob {glob!r}, but {error}.") from error
    return tuple(globs)


def _check(name: str, value: object) -> None:
    if name in _RESERVED:
        raise ValueError(f"kafka: `{name}` cannot be set: {_RESERVED[name]}.")
    if name not in ALLOWED:
        close = difflib.get_close_matches(name, ALLOWED, n=1)
        hint = f" Did you mean `{close[0]}`?" if close else ""
        raise ValueError(f"kafka: `{name}` is not among the settings that can be given.{hint}")
    text = str(_scalar(name, value)).lower()
    allowed, why = _FIXED.get(name, (None, ""))
    if allowed is not None and text not in allowed:
        shown = " or ".join(sorted(allowed))
        raise ValueError(f"kafka: `{name}` must be {shown}: {why}. Got: {value!r}.")
    if name in ("linger.ms", "queue.buffering.max.ms") and not _is_number(text, _MAX_LINGER):
        raise ValueError(f"kafka: `{name}` must be from 0 to {_MAX_LINGER} ms. Got: {value!r}.")


def _is_number(text: str, most: float) -> bool:
    try:
        return 0 <= float(text) <= most
    except ValueError:
        return False


def _scalar(name: str, value: object) -> str | int | float | bool:
    if not isinstance(value, str | int | float | bool):
        kind = type(value).__name__
        raise TypeError(f"kafka: `{name}` must be a string, a number or a boolean. Got: a {kind}.")
    return value


def _check_bootstrap(value: object) -> None:
    servers = value.split(",") if isinstance(value, str) else []
    if not servers or not all(_SERVER.fullmatch(server.strip()) for server in servers):
        raise ValueError(
            "kafka: `bootstrap.servers` must be HOST:PORT, several joined by commas. "
            f"Got: {'nothing' if value is None else _USER.sub('***@', repr(value))}."
        )

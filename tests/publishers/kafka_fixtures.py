"""A real Kafka for the whole run, started where a test asks for it, and what its tests share."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trustme
from confluent_kafka import Message
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from tests.publishers.proxy import Proxy

from delta_outbox.demo.kafka_reader import consume_all
from delta_outbox.demo.kafka_server import KafkaServer
from delta_outbox.publishers import Delivered, Event, Result, Unknown
from delta_outbox.publishers.kafka.publisher import KafkaPublisher
from delta_outbox.runtime.spark_settings import SHORT_LIVED

USER, PASSWORD = "outbox", "canary-of-the-broker"

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="session")
def network() -> Iterator[Proxy]:
    """Open the way to the broker on which things go wrong; all is well unless a test says so."""
    with Proxy() as proxy:
        yield proxy


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """Return the authority that has certified the broker, for the name `localhost` only."""
    return trustme.CA()


@pytest.fixture(scope="session")
def kafka(
    network: Proxy, authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaServer]:
    """Start one broker for all tests; none may leave it stopped. Its JVM is started often and lives
    for a minute or two, in which an optimising compiler does not pay off.
    """
    keys = tmp_path_factory.mktemp("kafka-tls") / "broker.pem"
    certificate = authority.issue_cert("localhost")
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    chain = [one.bytes() for one in certificate.cert_chain_pems]
    # Java reads keys in this form only.
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    keys.write_bytes(b"".join([key.private_bytes(*form), *chain]))
    secure = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'user_{USER}="{PASSWORD}";'
        ),
        "scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", " ".join(SHORT_LIVED))
        with KafkaServer(settings=AUTHORIZER, proxy_port=network.port, secure=secure) as server:
            network.target = server.behind_proxy
            yield server


@pytest.fixture(scope="session")
def scram(kafka: KafkaServer) -> None:
    """Let the user log in by SCRAM as well; PLAIN is in the broker's own file."""
    mechanism = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wanted = UserScramCredentialUpsertion(USER, mechanism, PASSWORD.encode())
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.alter_user_scram_credentials([wanted])[USER].result(timeout=30)


@pytest.fixture
def proxy(network: Proxy, kafka: KafkaServer) -> Iterator[Proxy]:
    """Give a test the way to the broker to disturb, and mend it afterwards."""
    yield network
    network.heal()


@pytest.fixture
def running(kafka: KafkaServer) -> Iterator[KafkaServer]:
    """Give a test the broker to stop or freeze, and start it again afterwards."""
    yield kafka
    if kafka.pid is not None:
        kafka.resume()
    kafka.start()


@pytest.fixture(scope="session")
def new_topic(kafka: KafkaServer) -> Callable[..., str]:
    """Create a topic with a name of its own."""
    numbers = itertools.count()

    def create(partitions: int = 3, **config: str) -> str:
        name = f"test.{next(numbers)}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        kafka.create_topic(name, partitions, config=settings)
        return name

    return create


@pytest.fixture(scope="session")
def forbid_writing(kafka: KafkaServer) -> Callable[[str], None]:
    """Let everybody see a topic and nobody write to it."""

    def forbid(topic: str) -> None:
        def rule(operation: AclOperation, verdict: AclPermissionType) -> AclBinding:
            kind, pattern = ResourceType.TOPIC, ResourcePatternType.LITERAL
            return AclBinding(kind, topic, pattern, "User:ANONYMOUS", "*", operation, verdict)

        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        rules = [
            rule(AclOperation.WRITE, AclPermissionType.DENY),
            rule(AclOperation.DESCRIBE, AclPermissionType.ALLOW),
            rule(AclOperation.READ, AclPermissionType.ALLOW),
        ]
        for created in admin.create_acls(rules).values():
            created.result(timeout=30)

    return forbid


@pytest.fixture
def publisher(kafka: KafkaServer) -> Iterator[Callable[..., KafkaPublisher]]:
    """Open publishers that are closed after the test."""
    opened: list[KafkaPublisher] = []

    def open_one(**settings: Any) -> KafkaPublisher:
        one = KafkaPublisher()
        given = {key.replace("_", "."): value for key, value in settings.items()}
        one.open({"bootstrap.servers": kafka.bootstrap, "topics": ["*"], **given})
        opened.append(one)
        return one

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture(scope="session")
def read(kafka: KafkaServer) -> Callable[[str], list[Message]]:
    """Read a topic with a consumer of its own."""
    return lambda topic: list(consume_all(kafka.bootstrap, topic))


@pytest.fixture(scope="session")
def check_answers(read: Callable[[str], list[Message]]) -> Callable[..., set[str]]:
    """Compare what a publisher said with what is in the topics; return the ids that are.

    Delivered is there exactly once, Unknown may be, nothing else is; what is there is in order
    within its key, and no event of a key was delivered after one that was not.
    """

    def check(events: list[Event], results: list[Result]) -> set[str]:
        said = {event.event_id: type(result) for event, result in zip(events, results, strict=True)}
        place = {event.event_id: number for number, event in enumerate(events)}
        found: list[str] = []
        for topic in {event.route for event in events}:
            by_key: dict[bytes | None, list[int]] = defaultdict(list)
            for message in read(topic):
                header = dict(message.headers() or [])["outbox-event-id"]
                assert isinstance(header, bytes)
                event_id = header.decode()
                if event_id in said:
                    found.append(event_id)
                    by_key[message.key()].append(place[event_id])
            for key, places in by_key.items():
                assert key is None or places == sorted(places)
        assert len(found) == len(set(found))
        assert {name for name, kind in said.items() if kind is Delivered} <= set(found)
        assert {said[name] for name in found} <= {Delivered, Unknown}
        stopped: set[str] = set()
        for event in events:
            if event.ordering_key is not None:
                delivered = said[event.event_id] is Delivered
                assert not (delivered and event.ordering_key in stopped)
                if not delivered:
                    stopped.add(event.ordering_key)
        return set(found)

    return check

"""Settings of a Kafka destination."""

from __future__ import annotations

import pytest

from delta_outbox.core.errors import BadSettings
from delta_outbox.publishers.kafka.publisher import KafkaPublisher
from delta_outbox.publishers.kafka.settings import parse_settings
from delta_outbox.publishers.registry import prepare_settings

LEAST = {"bootstrap.servers": "localhost:9092", "topics": ["flight.*"]}


def _message(settings, tmp_path):
    with pytest.raises(BadSettings) as caught:
        prepare_settings(KafkaPublisher, settings, destination="default", home=tmp_path)
    return str(caught.value)


@pytest.mark.parametrize(
    "further",
    [
        {},
        {"acks": "all", "enable.idempotence": True, "linger.ms": 50, "batch.size": 100_000},
        {"acks": -1, "compression.type": "zstd", "compression.level": 3},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
        | {"sasl.username": "me", "sasl.password": "s3cret-value"},
        {"security.protocol": "ssl", "enable.ssl.certificate.verification": "true"},
        {"bootstrap.servers": "[::1]:9092, kafka-1.example.org:9093,broker"},
        {"topics": "one.topic"},
    ],
)
def test_good_settings_pass(tmp_path, further):
    """The client's own names are taken as they are."""
    given = {**LEAST, **further}
    assert prepare_settings(KafkaPublisher, given, destination="default", home=tmp_path) == given


def test_unquoted_names_mean_the_same(tmp_path):
    """TOML reads an unquoted dotted name as a table; it means the setting all the same."""
    nested = {"bootstrap": {"servers": "localhost:9092"}, "topics": ["*"]}
    prepare_settings(KafkaPublisher, nested, destination="default", home=tmp_path)
    assert parse_settings(nested).bootstrap == "localhost:9092"


@pytest.mark.parametrize(
    ("further", "said"),
    [
        ({"bootstrap.servers": None}, "`bootstrap.servers` must be a string"),
        ({"bootstrap.servers": ""}, "`bootstrap.servers` must be HOST:PORT"),
        ({"bootstrap.servers": "a b:9092"}, "`bootstrap.servers` must be HOST:PORT"),
        ({"bootstrap.servers": "me:hunter2@b:9092"}, "Got: '***@b:9092'."),
        ({"topics": []}, "`topics` must list the topics"),
        ({"topics": [1]}, "`topics` must list the topics"),
        ({"topics": ["a["]}, "`topics` has the glob 'a[', but a `[` needs its `]`"),
        ({"acks": "1"}, "`acks` must be -1 or all: published means acknowledged"),
        ({"enable.idempotence": False}, "`enable.idempotence` must be true"),
        ({"enable.ssl.certificate.verification": False}, "certificate is always verified"),
        ({"ssl.endpoint.identification.algorithm": "none"}, "host name is always verified"),
        ({"partitioner": "random"}, "events of a key must share a partition"),
        ({"transactional.id": "x"}, "`transactional.id` cannot be set"),
        ({"message.timeout.ms": 5}, "it follows from the lease"),
        ({"max.in.flight": 5}, "promise of order"),
        ({"plugin.library.paths": "x.so"}, "not among the settings that can be given"),
        ({"sasl.kerberos.kinit.cmd": "rm"}, "not among the settings that can be given"),
        ({"bootstrap.server": "x"}, "Did you mean `bootstrap.servers`?"),
        ({"linger.ms": 60_000}, "`linger.ms` must be from 0 to 500 ms"),
        ({"client.id": ["a"]}, "`client.id` must be a string"),
        ({"compression.type": "lzma"}, "the client refuses the settings"),
        ({"batch.size": "many"}, "the client refuses the settings"),
    ],
)
def test_bad_settings_are_one_sentence(tmp_path, further, said):
    """A setting that breaks a rule is refused before anything is claimed, with the reason."""
    message = _message({**LEAST, **further}, tmp_path)
    assert said in message
    assert message.startswith("publishers.default: kafka: ")


@pytest.mark.parametrize("missing", ["bootstrap.servers", "topics"])
def test_what_must_be_given(tmp_path, missing):
    """Addresses and topics have no default."""
    settings = {name: value for name, value in LEAST.items() if name != missing}
    assert f"`{missing}` must" in _message(settings, tmp_path)


def test_no_secret_is_shown(tmp_path):
    """Neither a message nor a representation holds a password."""
    secret = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    secret |= {"sasl.username": "user-name", "sasl.password": "s3cret-value"}
    assert "s3cret-value" not in repr(parse_settings({**LEAST, **secret}))
    wrong = {**LEAST, **secret, "ssl.key.location": "/nowhere", "security.protocol": "SASL_SSL"}
    assert "s3cret-value" not in _message(wrong, tmp_path)


@pytest.mark.parametrize(
    ("globs", "topic", "allowed"),
    [
        (["flight.*"], "flight.departed", True),
        (["flight.*"], "flights", False),
        (["flight.?", "order"], "order", True),
        (["order"], "order.created", False),
        (["*"], "anything", True),
        (["*"], "__consumer_offsets", False),
        (["__mine"], "__mine", True),
        (["Flight"], "flight", False),
    ],
)
def test_allow_list(globs, topic, allowed):
    """A glob has to match the whole name, and never finds internal topics by a wildcard."""
    assert parse_settings({**LEAST, "topics": globs}).allows(topic) is allowed


def test_an_alias_replaces_the_default():
    """The older name of an option is not overruled by our default for the newer one."""
    client = parse_settings({**LEAST, "compression.codec": "none"}).client
    assert "compression.type" not in client
    assert client["compression.codec"] == "none"

"""Settings of exactly-once delivery to Kafka, and the record of a transaction."""

from __future__ import annotations

import pytest

from delta_outbox.core.errors import BadSettings
from delta_outbox.publishers.kafka.marker import MAX_MARKER_BYTES, Marker, fitting
from delta_outbox.publishers.kafka.publisher import KafkaPublisher
from delta_outbox.publishers.kafka.settings import parse_settings
from delta_outbox.publishers.registry import prepare_settings

LEAST = {"bootstrap.servers": "localhost:9092", "topics": ["*"]}
EXACTLY = {**LEAST, "delivery": "exactly_once", "marker_topic": "outbox.markers"}


def test_at_least_once_is_the_default():
    """Without the setting nothing is transactional, and nobody is asked about lost claims."""
    for settings in (LEAST, {**LEAST, "delivery": "at_least_once"}):
        assert parse_settings(settings).exactly_once is None
        assert KafkaPublisher.recovery(settings) is None


def test_exactly_once_has_names_of_its_own():
    """The names of transactions and readers begin with the prefix; three replicas are the default;
    the client is given none of our settings.
    """
    parsed = parse_settings({**EXACTLY, "transactional_id_prefix": "team-a"})
    assert parsed.exactly_once is not None
    assert parsed.exactly_once.marker_replication == 3
    assert parsed.exactly_once.transactional_id("relay.0.1", "orders") == "team-a.relay.0.1.orders"
    assert parsed.exactly_once.group.startswith("team-a.")
    assert not {"delivery", "marker_topic", "transactional_id_prefix"} & parsed.client.keys()
    assert KafkaPublisher.recovery(EXACTLY) is not None


def test_no_event_goes_to_the_marker_topic():
    """Whatever the globs, an event cannot forge a marker."""
    assert not parse_settings(EXACTLY).allows("outbox.markers")
    assert parse_settings(LEAST).allows("outbox.markers")


@pytest.mark.parametrize(
    ("further", "said"),
    [
        ({"delivery": "exactly-once"}, "`delivery` must be at_least_once or exactly_once"),
        ({"delivery": "exactly_once"}, "needs `marker_topic`, a topic of its own"),
        ({"marker_topic": "m"}, '`marker_topic` needs `delivery = "exactly_once"`'),
        ({**EXACTLY, "marker_topic": "a b"}, "needs `marker_topic`, a topic of its own"),
        ({**EXACTLY, "marker_replication": 0}, "`marker_replication` must be a whole number"),
        ({**EXACTLY, "marker_replication": True}, "`marker_replication` must be a whole number"),
        ({**EXACTLY, "transactional_id_prefix": ""}, "`transactional_id_prefix` must be 1 to 100"),
        ({**EXACTLY, "transactional.id": "x"}, "it follows from `transactional_id_prefix`"),
        ({**EXACTLY, "transaction.timeout.ms": 1}, "it follows from the lease"),
        ({**EXACTLY, "isolation.level": "read_uncommitted"}, "the promise of `delivery`"),
    ],
)
def test_bad_settings_are_one_sentence(tmp_path, further, said):
    """A setting that breaks a rule is refused before anything is claimed, with the reason."""
    given = {**LEAST, **further}
    with pytest.raises(BadSettings) as caught:
        prepare_settings(KafkaPublisher, given, destination="orders", home=tmp_path)
    assert said in str(caught.value)


def test_a_marker_is_read_as_it_was_written():
    """Ids of any content survive; what is no marker is none."""
    marker = Marker(
        claim_id="c", destination="d", transactional_id="t", deliveries=['a"b', "é:1", "\0"]
    )
    assert marker == Marker.parse(b"c", marker.value())
    for value in (None, b"", b"{}", b"[]", b"\xff", marker.value().replace(b'["', b'[1,"')):
        assert Marker.parse(b"c", value) is None


@pytest.mark.parametrize("name", ["x" * 36, "é" * 200, "\0" * 255])
def test_a_marker_stays_below_what_a_broker_takes(name):
    """A transaction holds as many events as its marker has room for, and never none."""
    count = fitting([name] * 100_000, message_max_bytes=1_000_000)
    marker = Marker(claim_id="c", destination="d", transactional_id="t", deliveries=[name] * count)
    assert 0.98 * MAX_MARKER_BYTES < len(marker.value()) <= MAX_MARKER_BYTES
    assert 1 == fitting([name], message_max_bytes=1)
    assert 7 == fitting([name] * 7, message_max_bytes=1_000_000)

"""Kafka behind TLS and a login: a broker whose certificate and password are checked for real."""

from __future__ import annotations

import traceback

import pytest
import trustme
from tests.publishers.kafka_fixtures import PASSWORD, USER

from delta_outbox.core.errors import BadSettings, PublisherUnavailable
from delta_outbox.publishers import Delivered, Failed
from delta_outbox.publishers.kafka.publisher import KafkaPublisher
from delta_outbox.publishers.registry import prepare_settings, probe

WRONG = "canary-of-somebody-else"


@pytest.fixture(scope="module")
def login(kafka, scram, authority, tmp_path_factory):
    """Return the settings with which an honest user gets in."""
    file = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    return {
        "topics": ["*"],
        "bootstrap.servers": f"localhost:{kafka.secure_port}",
        "broker.address.family": "v4",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(file),
    }


def refusal(settings):
    """Return what the check before the claim says; neither it nor its trace has a password."""
    with pytest.raises(PublisherUnavailable) as caught:
        probe(KafkaPublisher, settings, destination="orders", timeout=5)
    trace = "".join(traceback.format_exception(caught.value))
    assert not any(secret in trace for secret in (PASSWORD, WRONG))
    said = str(caught.value)
    assert "\n" not in said
    return said


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_the_right_password_publishes(
    login, new_topic, new_event, publish, read, publisher, mechanism
):
    """With the right authority and password a broker takes events, by either mechanism."""
    topic = new_topic()
    settings = {**login, "sasl.mechanism": mechanism}
    probe(KafkaPublisher, settings, destination="orders", timeout=10)
    one = publisher(**{name.replace(".", "_"): value for name, value in settings.items()})
    assert [type(result) for result in publish(one, [new_event(topic)])] == [Delivered]
    assert [message.value() for message in read(topic)] == [b"{}"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_one_sentence_before_anything_is_claimed(login, mechanism):
    """A wrong password ends in one sentence that says so and does not hold it."""
    said = refusal({**login, "sasl.mechanism": mechanism, "sasl.password": WRONG})
    assert "'orders' is unavailable" in said
    assert "uthentication failed" in said


def test_a_password_that_became_wrong_fails_events(login, new_topic, new_event, publish, publisher):
    """Where a password is changed while a relay runs, events fail and the sentence hides it."""
    settings = {**login, "sasl.password": WRONG}
    one = publisher(**{name.replace(".", "_"): value for name, value in settings.items()})
    [result] = publish(one, [new_event(new_topic())], seconds=5)
    assert isinstance(result, Failed)
    assert "uthentication failed" in result.error
    assert WRONG not in result.error


def test_an_authority_that_did_not_certify_the_broker_is_refused(login, tmp_path):
    """A certificate of another authority is no broker's, whatever the password."""
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    assert "certificate verify failed" in refusal({**login, "ssl.ca.location": str(other)})


def test_without_an_authority_a_broker_of_ones_own_is_refused(login):
    """Where no authority is named, those of the system decide, and ours is not among them."""
    settings = {name: value for name, value in login.items() if name != "ssl.ca.location"}
    assert "certificate verify failed" in refusal(settings)


def test_a_name_that_the_certificate_lacks_is_refused(login, kafka):
    """The certificate is for `localhost`; the same broker under another name is not trusted."""
    other = {**login, "bootstrap.servers": f"127.0.0.1:{kafka.secure_port}"}
    assert "certificate verify failed" in refusal(other)


@pytest.mark.parametrize(
    "off",
    [
        {"enable.ssl.certificate.verification": False},
        {"enable.ssl.certificate.verification": "false"},
        {"ssl.endpoint.identification.algorithm": "none"},
        {"ssl.endpoint.identification.algorithm": ""},
    ],
)
def test_verification_cannot_be_switched_off(login, tmp_path, off):
    """No setting makes an unverified connection: it is refused, and says what is done instead."""
    with pytest.raises(BadSettings, match="always verified"):
        prepare_settings(KafkaPublisher, {**login, **off}, destination="orders", home=tmp_path)

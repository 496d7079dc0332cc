"""Settings of SQS, credentials and the question whether it answers."""

from __future__ import annotations

import time

import pytest
from tests.publishers.sqs_fixtures import ACCESS
from tests.publishers.sqs_server import refusal
from tests.publishers.timing import GRACE

from delta_outbox.core.errors import BadSettings
from delta_outbox.publishers import Delivered, Failed
from delta_outbox.publishers.registry import find_publisher, prepare_settings
from delta_outbox.publishers.sqs.client import SqsClients
from delta_outbox.publishers.sqs.publisher import SqsPublisher
from delta_outbox.publishers.sqs.settings import parse_settings


def test_an_endpoint_of_the_environment(monkeypatch):
    """An endpoint that stands in the environment is not used: it might not be https."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:1")
    clients = SqsClients(parse_settings(ACCESS))
    client = clients.before(time.monotonic() + 10)
    assert client is not None
    assert client.meta.endpoint_url == "https://sqs.eu-west-1.amazonaws.com"
    clients.close()


def test_credentials_of_the_environment(
    moto, new_sqs_queue, new_event, publish, monkeypatch, tmp_path
):
    """Without credentials in the settings the SDK's own search finds them; with none at all every
    event fails with that reason.
    """
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    queue = new_sqs_queue()
    settings = {"region": "eu-west-1", "endpoint_url": moto.url}
    one = SqsPublisher()
    one.open(settings)
    [result] = publish(one, [new_event(queue)])
    assert type(result) is Failed
    assert "Unable to locate credentials" in result.error
    one.close()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret of the environment")
    one = SqsPublisher()
    one.open(settings)
    assert [type(result) for result in publish(one, [new_event(queue)])] == [Delivered]
    one.close()


def test_probe(moto, running_moto):
    """A probe says nothing where SQS answers, else one sentence with the place, in time."""
    good = {**ACCESS, "endpoint_url": moto.url}
    SqsPublisher.probe(good, 10)
    with pytest.raises(ConnectionError, match=r"127\.0\.0\.1:1"):
        SqsPublisher.probe({**good, "endpoint_url": "http://127.0.0.1:1"}, 10)
    running_moto.pause()
    start = time.monotonic()
    with pytest.raises(ConnectionError, match="did not answer"):
        SqsPublisher.probe(good, 1)
    assert time.monotonic() - start < 1 + GRACE


def test_wrong_credentials(front, moto, new_sqs_queue, open_sqs, new_event, publish):
    """Where SQS does not know the key, events fail and no sentence holds the secret."""
    front.answer = lambda _: refusal(403, "InvalidClientTokenId")
    one = open_sqs(endpoint_url=front.url, secret_access_key="wrong secret")
    [result] = publish(one, [new_event(new_sqs_queue())])
    assert type(result) is Failed
    assert "InvalidClientTokenId" in result.error
    assert "wrong secret" not in result.error


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"region": None}, "`region` must be a text"),
        ({"secret_access_key": ""}, "`secret_access_key` must be a text"),
        ({"access_key_id": "x"}, "belong together"),
        ({"session_token": "x"}, "belongs to an `access_key_id`"),
        ({"profile": "missing"}, "missing"),
        ({"endpoint_url": "http://sqs.example"}, "must be https://"),
        ({"endpoint_url": "https://u:p@sqs.example"}, "must be https://"),
        ({"endpoint_url": "https://sqs.example/path"}, "must be https://"),
        ({"endpoint_url": "ftp://127.0.0.1"}, "must be https://"),
        ({"endpoint_url": "http://127.0.0.1.example"}, "must be https://"),
        ({"ca_file": "/no/such/file"}, "`ca_file` cannot be read: No such file"),
        ({"max_message_bytes": 1_048_577}, "from 1024 to 1048576"),
        ({"concurrency": 0}, "`concurrency` must be a whole number from 1 to 64"),
        ({"verify": False}, "`verify` is not among the settings"),
        ({"regoin": "x"}, "Did you mean `region`?"),
    ],
)
def test_wrong_settings(settings, sentence, tmp_path):
    """A wrong setting is one sentence with the rule, found without a connection."""
    publisher = find_publisher("sqs", destination="d")
    for good in (
        {"region": "eu-west-1"},
        {"region": "eu-west-1", "endpoint_url": "https://sqs.example:8443/"},
        {"region": "eu-west-1", "endpoint_url": "http://[::1]:9324", "concurrency": "3"},
    ):
        prepare_settings(publisher, good, destination="d", home=tmp_path)
    with pytest.raises(BadSettings) as raised:
        prepare_settings(
            publisher, {"region": "eu-west-1", **settings}, destination="d", home=tmp_path
        )
    assert sentence in str(raised.value)
    assert ":p@" not in str(raised.value)

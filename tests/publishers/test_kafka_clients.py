"""How soon a new client can send, as the client library's own log tells it."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from delta_outbox.publishers.kafka.client import KafkaClient
from delta_outbox.publishers.kafka.settings import parse_settings

CLIENTS = 10  # without a second question, every third waits


@pytest.fixture
def make(kafka, new_topic):
    """Make clients that tell what they do; they are given up after the test."""
    made = []
    markers = {"delivery": "exactly_once", "marker_topic": new_topic(), "marker_replication": 1}
    given = {"bootstrap.servers": kafka.bootstrap, "topics": ["*"], **markers}
    settings = parse_settings(given)
    settings = replace(settings, client={**settings.client, "debug": "eos"})

    def make_one(transactional_id=None):
        client = KafkaClient(settings, timeout=30, careful=False, transactional_id=transactional_id)
        made.append(client)
        return client

    yield make_one
    for client in made:
        client.abandon()


@pytest.fixture
def said(caplog):
    """Return what the library has said, and forget it."""
    caplog.set_level(logging.DEBUG, "delta_outbox.publishers.librdkafka")

    def lines(client):
        client.poll(0)
        found = caplog.text
        caplog.clear()
        return found

    return lines


def test_a_client_asks_for_its_producer_id_before_it_sends(make, new_topic, said):
    """It does not wait for the library's timer, half a second later."""
    topic = new_topic()
    for _ in range(CLIENTS):
        client = make()
        assert client.topic_error(topic, timeout=30) is None
        assert "Acquiring ProducerId" in said(client)


def test_transactions_do_not_wait_for_a_timer(make, said):
    """Who coordinates them is asked as soon as there is a broker that can be asked."""
    make("first").init_transactions(timeout=30)  # its broker makes a topic for them
    for number in range(CLIENTS):
        client = make(f"relay.{number}")
        said(client)
        client.init_transactions(timeout=30)
        lines = said(client)
        assert "Acquired PID" in lines
        assert "Coordinator query timer" not in lines

"""The publisher kit on Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.publishers.kafka_adapter import KafkaAdapter
from tests.publishers.proxy import Proxy

from delta_outbox.demo.kafka_server import KafkaServer
from delta_outbox.testing.publishers import NAMES, Finding, Verdict, check


@pytest.fixture(scope="module")
def findings(
    kafka: KafkaServer, network: Proxy, new_topic: Callable[..., str]
) -> Iterator[dict[str, Finding]]:
    """Run the kit once; the broker is left running."""
    small = new_topic(partitions=1, max_message_bytes="20000")
    adapter = KafkaAdapter(kafka, network, topic=new_topic(), small=small)
    yield {finding.name: finding for finding in check(adapter)}
    adapter.close()
    kafka.start()


@pytest.mark.parametrize("name", NAMES)
def test_kafka_keeps_the_rules(findings: dict[str, Finding], name: str):
    """What every publisher must keep, Kafka keeps."""
    findings[name].demand()


def test_everything_is_asked_of_kafka(findings: dict[str, Finding]):
    """No check is left out."""
    assert [] == [str(one) for one in findings.values() if one.verdict is Verdict.NOT_ASKED]

"""The publisher kit on RabbitMQ."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.publishers.rabbitmq_adapter import RabbitAdapter
from tests.publishers.rabbitmq_server import RabbitServer

from delta_outbox.testing.publishers import NAMES, Capability, Finding, check
from delta_outbox.testing.publishers.adapter import capabilities


@pytest.fixture(scope="module")
def adapter(rabbit: RabbitServer, new_queue: Callable[..., str]) -> Iterator[RabbitAdapter]:
    """Let the kit write to a queue."""
    one = RabbitAdapter(rabbit, queue=new_queue())
    yield one
    one.close()


@pytest.fixture(scope="module")
def findings(adapter: RabbitAdapter) -> dict[str, Finding]:
    """Run the kit once."""
    return {finding.name: finding for finding in check(adapter)}


@pytest.mark.parametrize("name", NAMES)
def test_rabbitmq_keeps_the_rules(findings: dict[str, Finding], name: str):
    """What every publisher must keep, RabbitMQ keeps."""
    findings[name].demand()


def test_everything_is_asked(adapter: RabbitAdapter):
    """No rule is left out for want of a capability."""
    assert set(Capability) == capabilities(adapter)

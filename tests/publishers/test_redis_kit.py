"""The publisher kit on Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.publishers.redis_adapter import ChannelAdapter, StreamAdapter
from tests.publishers.redis_server import RedisServer

from delta_outbox.testing.publishers import NAMES, Finding, Verdict, check


@pytest.fixture(scope="module", params=[StreamAdapter, ChannelAdapter])
def adapter(
    request: pytest.FixtureRequest, redis_server: RedisServer
) -> Iterator[StreamAdapter | ChannelAdapter]:
    """Let the kit write to streams, and to channels."""
    one = request.param(redis_server)
    yield one
    one.close()


@pytest.fixture(scope="module")
def findings(adapter: StreamAdapter | ChannelAdapter) -> dict[str, Finding]:
    """Run the kit once."""
    return {finding.name: finding for finding in check(adapter)}


@pytest.mark.parametrize("name", NAMES)
def test_redis_keeps_the_rules(findings: dict[str, Finding], name: str):
    """What every publisher must keep, Redis keeps."""
    findings[name].demand()


def test_everything_is_asked_of_redis(findings: dict[str, Finding]):
    """No check is left out."""
    assert [] == [str(one) for one in findings.values() if one.verdict is Verdict.NOT_ASKED]

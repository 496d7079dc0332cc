"""The publisher kit on NATS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.publishers.nats_adapter import PASSWORD, USER, USERS, CoreAdapter, StreamAdapter
from tests.publishers.nats_server import NatsServer

from delta_outbox.testing.publishers import NAMES, Finding, Verdict, check


@pytest.fixture(scope="module", params=[StreamAdapter, CoreAdapter])
def adapter(request: pytest.FixtureRequest) -> Iterator[StreamAdapter | CoreAdapter]:
    """Let the kit write to a stream, and to whoever listens."""
    with NatsServer(USERS, user=USER, password=PASSWORD) as server:
        one = request.param(server)
        yield one
        one.close()


@pytest.fixture(scope="module")
def findings(adapter: StreamAdapter | CoreAdapter) -> dict[str, Finding]:
    """Run the kit once."""
    return {finding.name: finding for finding in check(adapter)}


@pytest.mark.parametrize("name", NAMES)
def test_nats_keeps_the_rules(findings: dict[str, Finding], name: str):
    """What every publisher must keep, NATS keeps."""
    findings[name].demand()


def test_everything_is_asked_of_nats(findings: dict[str, Finding]):
    """No check is left out."""
    assert [] == [str(one) for one in findings.values() if one.verdict is Verdict.NOT_ASKED]

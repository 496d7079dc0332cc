"""The publisher kit on webhooks."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest
import trustme
from tests.publishers.http_adapter import HttpAdapter, PercentAdapter
from tests.publishers.http_server import Receiver

from delta_outbox.testing.publishers import NAMES, Capability, Finding, check
from delta_outbox.testing.publishers.adapter import capabilities


@pytest.fixture(scope="module", params=[HttpAdapter, PercentAdapter])
def adapter(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HttpAdapter]:
    """Let the kit post to a receiver, with headers of either form."""
    authority = trustme.CA()
    ca_file = tmp_path_factory.mktemp("authority") / "ca.pem"
    authority.cert_pem.write_to_path(ca_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with Receiver(context=context) as receiver:
        one = request.param(receiver, ca_file)
        yield one
        one.close()


@pytest.fixture(scope="module")
def findings(adapter: HttpAdapter) -> dict[str, Finding]:
    """Run the kit once."""
    return {finding.name: finding for finding in check(adapter)}


@pytest.mark.parametrize("name", NAMES)
def test_http_keeps_the_rules(findings: dict[str, Finding], name: str):
    """What every publisher must keep, webhooks keep."""
    findings[name].demand()


def test_everything_is_asked(adapter: HttpAdapter):
    """No rule is left out for want of a capability."""
    assert set(Capability) == capabilities(adapter)

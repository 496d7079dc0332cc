"""Hosts that several tests share, and a third party with a ledger."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.workflow_engine.hosts.host_requests import setup
from tests.unit.workflow_engine.hosts.ledger import Ledger, ledger

from delta_outbox.workflow_engine.hosts.places import HostLimits
from delta_outbox.workflow_engine.hosts.pool import HostPool


@pytest.fixture(scope="module")
def hosts() -> Iterator[HostPool]:
    """Yield hosts that are ended afterwards."""
    made = HostPool(setup(), limits=HostLimits(shared_hosts=1, hosts=2, in_loops=2000))
    yield made
    made.close()


@pytest.fixture(scope="module")
def third_party() -> Iterator[Ledger]:
    """Yield a process that writes down what it was asked for."""
    with ledger() as found:
        yield found

"""The RabbitMQ of the tests is alone with them."""

from __future__ import annotations

import ipaddress

import psutil
import pytest
from tests.publishers.rabbitmq_server import RabbitServer

pytestmark = pytest.mark.rest


def test_it_listens_on_loopback_only_and_leaves_nothing():
    """A node and its epmd listen on loopback alone, and both end with their owner's leave."""
    with RabbitServer() as server:
        processes = [psutil.Process(server.pid), psutil.Process(server.epmd_pid)]
        listening = [
            ipaddress.ip_address(connection.laddr.ip)
            for process in processes
            for connection in process.net_connections(kind="inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        processes += processes[0].children(recursive=True)
        folder = server.folder
    assert len(listening) >= 4
    assert all(address.is_loopback for address in listening)
    assert not [process for process in processes if _runs(process)]
    assert not folder.exists()


def _runs(process: psutil.Process) -> bool:
    """Tell whether a process does more than wait for its parent to look at its end."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

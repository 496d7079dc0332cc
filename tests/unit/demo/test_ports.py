"""Ports for the servers that the demo and the tests start."""

from __future__ import annotations

import contextlib
import socket

import pytest

from delta_outbox.demo import ports


def test_ports_differ_and_are_not_those_of_outgoing_connections():
    """Each may be listened on, and no client is given one of them by its system."""
    found = ports.free_ports(20)
    assert len(set(found)) == 20
    assert max(found) < 32_768
    with contextlib.ExitStack() as stack:
        for port in found:
            stack.enter_context(socket.create_server(("127.0.0.1", port)))


def test_a_port_that_somebody_has_is_not_given():
    """Of two ports of which one is listened on, the other comes; more there are not."""
    one, other = ports.free_ports(2)
    with socket.create_server(("127.0.0.1", one)):
        assert [other] == ports.free_ports(1, among=(one, other))
        with pytest.raises(OSError, match="fewer than 2 are free"):
            ports.free_ports(2, among=(one, other))

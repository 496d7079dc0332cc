"""Connections that bring no request."""

from __future__ import annotations

import contextlib
import socket
from urllib.parse import urlsplit

import pytest
from tests.unit.todo.memory_items import office

from delta_outbox.todo import server

ASKED = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost:", ASKED, ASKED + b"GET /"])
def test_who_says_nothing_is_let_go(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who connects and sends no request, or only a part of one, keeps no connection; nor does
    anybody who was answered and sends no other.
    """
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(server, "KEEP_ALIVE_SECONDS", 3600)
    with office() as desk:
        port = urlsplit(str(desk.client.base_url)).port or 0
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(sent)
            came = bytearray()
            with contextlib.suppress(TimeoutError):
                while piece := connection.recv(4096):
                    came += piece
                came += b"; closed"
    assert came.endswith(b"; closed")
    assert came.startswith(b"HTTP/1.1 200") == sent.startswith(ASKED)

"""Questions to the process that serves a home."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from delta_outbox.demo.ports import free_ports
from delta_outbox.runtime.questions import answering, ask
from delta_outbox.runtime.served_home import Served

SERVED = Served(
    address="sc://localhost:15002",
    token="a-token-of-forty-three-characters-0123456789",
    pid=1,
    since=datetime(2026, 11, 1, tzinfo=UTC),
    home=Path("/home"),
)


def said_back(question: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer with the question; some questions have no answer."""
    if question.get("fails"):
        raise RuntimeError
    return {"said": question}


def test_a_question_has_its_answer() -> None:
    """What is asked arrives, and so does its answer, of any length; nobody else is asked."""
    with answering(SERVED.token, said_back) as port:
        server = replace(SERVED, questions_port=port)
        long = {"words": ["list"] * 10_000, "é": "\x1b"}
        assert {"said": long} == ask(server, long)
    assert ask(server, long) is None


def test_no_answer_without_the_token() -> None:
    """Whoever does not know the token gets no answer, nor does a question that makes no sense; the
    next one does.
    """
    with answering(SERVED.token, said_back) as port:
        server = replace(SERVED, questions_port=port)
        assert ask(replace(server, token="guessed-guessed-guessed"), {}) is None
        for line in (b"\n", b"{}\n", b'{"token": 1}\n', b"\xff\n", b"GET / HTTP/1.1\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port or 0)) as stranger:
                stranger.sendall(line)
                assert b"" == stranger.recv(1)
        assert ask(server, {"fails": True}) is None
        assert {"said": {}} == ask(server, {})


def test_nobody_answers() -> None:
    """A server that answers no questions, or has ended, is no error: the command does it itself."""
    for port in (None, *free_ports(1)):
        assert ask(replace(SERVED, questions_port=port), {}) is None

"""NATS that refuses: no stream, a full one, rights, certificates."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import socket
import threading

import nkeys
import pytest
from tests.publishers.nats_server import NatsServer
from tests.publishers.proxy import Proxy
from tests.publishers.redis_server import make_certificates

from delta_outbox.core.errors import PublisherUnavailable
from delta_outbox.publishers import Delivered, Failed, NotSent, Unknown
from delta_outbox.publishers.nats.publisher import NatsPublisher
from delta_outbox.publishers.registry import probe

USERS = """
authorization {
  users: [
    {user: all, password: "right-word"}
    {user: some, password: "right-word", permissions: {publish: {deny: ["s.Secret.>"]}}}
    {user: deaf, password: "right-word", permissions: {subscribe: {deny: ["_INBOX.>"]}}}
  ]
}
"""


@pytest.fixture(scope="module")
def server():
    """Start a server with users for the tests of this file."""
    with NatsServer(USERS, user="all", password="right-word") as one:
        one.add_stream("s", "s.>")
        yield one


@pytest.fixture
def publisher(server):
    """Open publishers that are closed after the test."""
    opened = []

    def open_one(user="all", **settings):
        one = NatsPublisher()
        login = {} if user is None else {"username": user, "password": "right-word"}
        one.open({"servers": [server.url], "subjects": ["*"], **login, **settings})
        opened.append(one)
        return one

    yield open_one
    for one in opened:
        one.close()


def test_a_subject_without_a_stream_fails(server, publisher, new_event, publish):
    """Nobody has the subject: the event fails and says what to do; then the stream is made."""
    one = publisher()
    results = publish(one, [new_event("later.a", "k"), new_event("later.a", "k"), new_event("s.a")])
    said = "no stream has the subject 'later.a': create one, or correct the route"
    assert [Failed(error=said), NotSent()] == results[:2]
    assert Delivered is type(results[2])
    server.add_stream("later", "later.>")
    assert [Delivered] == [type(result) for result in publish(one, [new_event("later.a", "k")])]


def test_a_full_stream_fails(server, publisher, new_event, publish):
    """A stream that refuses new messages says so, and nothing overtakes what it refused."""
    server.add_stream("full", "full.>", max_msgs=2, discard="new")
    results = publish(publisher(), [new_event("full.a", "k") for _ in range(4)])
    assert [Delivered, Delivered, Failed, NotSent] == [type(result) for result in results]
    assert results[2].error == "JetStream: maximum messages exceeded (10077)"


def test_another_stream_than_the_one_expected_fails(publisher, new_event, publish):
    """With `stream` set, a subject that another stream has is a fault of the configuration."""
    [result] = publish(publisher(stream="other"), [new_event("s.a")])
    assert result == Failed(error="JetStream: expected stream does not match (10060)")
    assert [Delivered] == [type(r) for r in publish(publisher(stream="s"), [new_event("s.a")])]


def test_an_answer_of_somebody_else_is_unknown(server, publisher, new_event, publish):
    """A service that answers on the subject is no stream: whether one has the event is unknown."""

    async def answer(client, _):
        async def reply(message):
            await message.respond(b"hello")

        await client.subscribe("service", cb=reply)
        await client.flush()
        return await asyncio.to_thread(publish, publisher(), [new_event("service")])

    [result] = server.ask(answer)
    assert isinstance(result, Unknown)
    assert "does something else answer there?" in str(result.error)


@pytest.mark.parametrize("mode", ["jetstream", "core"])
def test_a_right_that_is_missing_fails_its_events(publisher, new_event, publish, mode):
    """What the user may not publish has failed at once; the others of the call are delivered."""
    one = publisher("some", mode=mode)
    routes = ["s.a", "s.Secret.a", "s.Secret.a", "s.b"]
    results = publish(one, [new_event(route) for route in routes], seconds=5)
    assert [Delivered, Failed, Failed, Delivered] == [type(result) for result in results]
    assert results[1].error == "the user may not publish to 's.Secret.a': give it the right"
    results = publish(one, [new_event("s.Secret.a", "k"), new_event("s.a", "k")])
    assert [Failed, NotSent] == [type(result) for result in results]


def test_core_says_delivered_only_behind_the_messages(server, publisher, new_event, publish):
    """On a slow way the question whether messages were processed does not overtake them."""
    with Proxy() as proxy:
        proxy.target = server.port
        proxy.bytes_per_second = 4_000_000
        one = publisher("some", mode="core", servers=f"nats://{proxy.address}")
        events = [new_event("s.a", payload=b"x" * 9000) for _ in range(600)]
        results = publish(one, [*events, new_event("s.Secret.a")])
    assert [Delivered] * 600 == [type(result) for result in results[:-1]]
    assert isinstance(results[-1], Failed)


def test_an_inbox_that_is_missing_is_said_at_once(publisher, new_event, publish):
    """A user who may not hear the answers publishes nothing; a prefix of its own is the remedy."""
    for _ in range(50):
        [result] = publish(publisher("deaf"), [new_event("s.a")])
        assert isinstance(result, Failed)
        assert "permissions violation for subscription" in result.error
    one = publisher("deaf", inbox_prefix="answers.outbox")
    assert [Delivered] == [type(result) for result in publish(one, [new_event("s.a")])]


def test_a_wrong_password_fails(server, publisher, new_event, publish):
    """Who may not log in publishes nothing; neither error nor `probe` tells the password."""
    for login in ({"username": "all", "password": "wrong-word"}, {}, {"token": "wrong-word"}):
        [result] = publish(publisher(None, **login), [new_event("s.a")])
        assert isinstance(result, Failed)
        assert "Authorization Violation" in result.error
        assert "wrong-word" not in result.error
        settings = {"servers": server.url, "subjects": "*", **login}
        with pytest.raises(PublisherUnavailable, match="Authorization Violation"):
            probe(NatsPublisher, settings, destination="default")


def test_a_server_without_jetstream_fails(new_event, publish):
    """Where there is no JetStream, an event has failed, not vanished."""
    with NatsServer("accounts: {A: {users: [{user: a, password: a}]}}") as plain:
        one = NatsPublisher()
        one.open({"servers": plain.url, "subjects": "*", "username": "a", "password": "a"})
        [result] = publish(one, [new_event("s.a")])
        one.close()
        assert isinstance(result, Failed)


def test_an_nkey_logs_in(tmp_path, new_event, publish):
    """A seed in a file signs the server's challenge; the seed is never sent."""
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    pair = nkeys.from_seed(bytearray(seed))
    public = pair.public_key.decode()
    file = tmp_path / "seed"
    file.write_bytes(seed)
    users = f"authorization {{users: [{{nkey: {public}}}]}}"
    with NatsServer(users, nkeys_seed=str(file)) as guarded:
        guarded.add_stream("s", "s.>")
        one = NatsPublisher()
        one.open({"servers": guarded.url, "subjects": "*", "nkey_seed_file": str(file)})
        results = publish(one, [new_event("s.a")])
        one.close()
        assert [Delivered] == [type(result) for result in results]


def test_a_certificate_is_always_verified(tmp_path, new_event, publish):
    """With TLS a server is taken only with the certificate of the authority that was named."""
    authority, certificate, key = make_certificates(tmp_path)
    tls = f'tls {{cert_file: "{certificate}", key_file: "{key}"}}'
    with NatsServer(tls) as secure:
        settings = {"servers": f"tls://127.0.0.1:{secure.port}", "subjects": "*", "mode": "core"}
        with pytest.raises(PublisherUnavailable, match="certificate verify failed"):
            probe(NatsPublisher, settings, destination="default")
        one = NatsPublisher()
        one.open({**settings, "ca_file": str(authority)})
        results = publish(one, [new_event("s.a", payload=b"x" * 2000) for _ in range(2000)])
        one.close()
        assert {Delivered} == {type(result) for result in results}


@pytest.mark.parametrize(
    "login", [{"username": "me", "password": "the-word"}, {"token": "the-word"}]
)
def test_no_secret_is_told_in_the_clear(login):
    """Somebody in between who says that the server has no TLS learns nothing."""
    heard = bytearray()
    info = {"server_id": "x", "max_payload": 1024, "headers": True, "auth_required": True}

    def listen(listener):
        connection, _ = listener.accept()
        with connection, contextlib.suppress(ConnectionResetError):
            connection.sendall(f"INFO {json.dumps(info)}\r\n".encode())
            connection.settimeout(3)
            while data := connection.recv(4096):
                heard.extend(data)
                connection.sendall(b"PONG\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        between = threading.Thread(target=listen, args=(listener,))
        between.start()
        settings = {
            "servers": f"tls://127.0.0.1:{listener.getsockname()[1]}",
            "subjects": "*",
            **login,
        }
        with pytest.raises(PublisherUnavailable, match="the server offers no TLS"):
            probe(NatsPublisher, settings, destination="default")
        between.join()
    assert b"the-word" not in heard
    assert base64.b64encode(b"the-word") not in heard

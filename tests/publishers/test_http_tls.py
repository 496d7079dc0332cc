"""Encrypted webhooks: the server is verified, and the address is the one that was checked."""

from __future__ import annotations

import socket
import ssl
import threading
import time

import pytest
import trustme
from tests.publishers.http_server import SECRET, RawServer, Receiver, read_request, reset
from tests.publishers.timing import GRACE

from delta_outbox.publishers import Delivered, Failed, Unknown
from delta_outbox.publishers.http.publisher import HttpPublisher

NAME = "hooks.example.com"


@pytest.fixture(scope="module")
def authority():
    """Make a certificate authority that nobody else trusts."""
    return trustme.CA()


@pytest.fixture
def ca_file(authority, tmp_path):
    """Write the authority's certificate to a file."""
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    return str(file)


@pytest.fixture
def server_context(authority):
    """Make the TLS side of a server for some names."""

    def make(*names):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(*names).configure_cert(context)
        return context

    return make


@pytest.fixture
def send(publish, ca_file):
    """Publish events to a URL with the test's authority trusted."""

    def call(url, *events, **settings):
        one = HttpPublisher()
        given = {"url": url, "secrets": [SECRET], "ca_file": ca_file, **settings}
        one.open({name: value for name, value in given.items() if value is not None})
        try:
            return publish(one, list(events))
        finally:
            one.close()

    return call


@pytest.fixture
def names(monkeypatch):
    """Answer look-ups of names as a test says, one list of addresses after the other.

    The servers are real; a name server of one's own would need the whole machine's.
    """
    answers: list[list[str]] = []
    asked: list[str] = []

    def look_up(host, port, **_):
        asked.append(host)
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        families = [socket.AF_INET6 if ":" in ip else socket.AF_INET for ip in found]
        return [
            (family, socket.SOCK_STREAM, 6, "", (ip, port))
            for family, ip in zip(families, found, strict=True)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return answers, asked


def test_an_encrypted_webhook_arrives(server_context, send, new_event):
    """A server whose certificate the authority vouches for gets its events, large ones too."""
    with Receiver(context=server_context("localhost", "127.0.0.1")) as receiver:
        payloads = [b"x" * 3_000_000, bytes(range(256)), b""]
        for host in ("localhost", "127.0.0.1"):
            url = f"https://{host}:{receiver.port}"
            results = send(url, *[new_event("r", "k", payload=one) for one in payloads])
            assert [type(result) for result in results] == [Delivered] * 3
        assert [request.body for request in receiver.requests] == payloads * 2
        assert len({request.connection for request in receiver.requests}) == 2


@pytest.mark.parametrize(
    ("certified", "trusted", "reason"),
    [
        ("localhost", False, "certificate is refused: unable to get local issuer certificate"),
        ("other.example.com", True, "certificate is refused: Hostname mismatch"),
    ],
)
def test_a_server_that_is_not_verified_gets_nothing(
    server_context, send, new_event, certified, trusted, reason
):
    """A certificate of a stranger, or for another name, has failed: nothing was sent."""
    with Receiver(context=server_context(certified)) as receiver:
        trust = {} if trusted else {"ca_file": None}
        [result] = send(f"https://localhost:{receiver.port}", new_event("r"), **trust)
        assert isinstance(result, Failed)
        assert reason in result.error
        assert receiver.requests == []


def test_a_server_without_tls_gets_nothing(send, new_event):
    """A server that does not speak TLS, or breaks off in its greeting, has failed."""
    with Receiver() as receiver:
        [result] = send(f"https://localhost:{receiver.port}", new_event("r"), timeout_seconds=2)
        assert isinstance(result, Failed)
        assert receiver.requests == []
    with RawServer(lambda connection, _: reset(connection)) as server:
        [result] = send(f"https://localhost:{server.port}", new_event("r"))
        assert isinstance(result, Failed)


def test_a_greeting_that_never_ends_has_failed(send, new_event):
    """A server that takes the connection and says nothing has failed within the limit."""
    with RawServer(lambda connection, _: time.sleep(5)) as server:
        [result] = send(f"https://127.0.0.1:{server.port}", new_event("r"), timeout_seconds=0.5)
        assert result == Failed(
            error=f"127.0.0.1:{server.port} cannot be reached: no answer in time"
        )


def test_old_tls_is_refused(server_context, send, new_event):
    """A server that speaks nothing newer than TLS 1.1 gets nothing."""
    context = server_context("localhost")
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1 is deprecated"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with Receiver(context=context) as receiver:
        [result] = send(f"https://localhost:{receiver.port}", new_event("r"))
        assert isinstance(result, Failed)
        assert "TLS failed" in result.error


def test_a_client_certificate_is_shown(authority, server_context, send, new_event, tmp_path):
    """A server that asks for a certificate gets ours; without one the event is not delivered."""
    context = server_context("localhost")
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    ours = authority.issue_cert("relay.example.com")
    certificate, key = tmp_path / "client.pem", tmp_path / "client.key"
    ours.cert_chain_pems[0].write_to_path(str(certificate))
    ours.private_key_pem.write_to_path(str(key))
    with Receiver(context=context) as receiver:
        url = f"https://localhost:{receiver.port}"
        files = {"client_certificate_file": str(certificate), "client_key_file": str(key)}
        [result] = send(url, new_event("r"), **files)
        assert type(result) is Delivered
        [result] = send(url, new_event("r"))
        # TLS 1.3: the server says so only after the request may have been sent.
        assert type(result) in (Failed, Unknown)
        assert len(receiver.requests) == 1


def test_a_reset_after_an_encrypted_request_is_unknown(server_context, send, new_event):
    """A request that may have arrived and was not answered is unknown under TLS too."""
    context = server_context("localhost")

    def serve(connection, _):
        encrypted = context.wrap_socket(connection, server_side=True)
        read_request(encrypted)
        reset(encrypted)

    with RawServer(serve) as server:
        [result] = send(f"https://localhost:{server.port}", new_event("r"))
        assert type(result) is Unknown
        assert server.connections == 1


def test_the_address_is_pinned_and_the_name_verified(server_context, send, new_event, names):
    """A name is asked for once per connection; the connection goes to the address that was checked
    while the certificate is held against the name, and `Host` says the name.
    """
    answers, asked = names
    # Whoever asks twice is led elsewhere, as by a name server that rebinds.
    answers += [["127.0.0.1"], ["127.0.0.2"]]
    with Receiver(context=server_context(NAME)) as receiver:
        url = f"https://{NAME}:{receiver.port}"
        events = [new_event("r", "k") for _ in range(20)]
        results = send(url, *events, allow_private=True)
        assert {type(result) for result in results} == {Delivered}
        assert asked == [NAME]
        assert receiver.requests[0].by_name["host"] == f"{NAME}:{receiver.port}"


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["::1"],
        ["10.0.0.1"],
        ["169.254.169.254"],
        ["fe80::1"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["0.0.0.0"],
        ["8.8.8.8", "127.0.0.1"],
    ],
)
def test_a_name_for_a_private_address_is_refused(
    server_context, send, new_event, names, addresses, monkeypatch
):
    """A name that stands for an address of this machine or network, be it one of several, fails
    before a connection is tried.
    """
    names[0].append(addresses)
    tried = []
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: tried.append(address))
    [result] = send(f"https://{NAME}", new_event("r"))
    assert isinstance(result, Failed)
    assert "which is refused" in result.error
    assert tried == []


@pytest.mark.parametrize("address", ["0.0.0.0", "::ffff:127.0.0.1", "224.0.0.1", "ff02::1"])
def test_what_is_no_host_is_refused_even_if_private_is_allowed(send, new_event, names, address):
    """No setting lets an event go to a group, to nowhere or to a disguised address."""
    names[0].append([address])
    [result] = send(f"https://{NAME}", new_event("r"), allow_private=True)
    assert isinstance(result, Failed)
    assert "which is refused" in result.error


def test_localhost_is_this_machine(send, new_event, names):
    """A resolver that sends localhost elsewhere is not believed: http is allowed only to here."""
    names[0].append(["8.8.8.8"])
    [result] = send("http://localhost:80", new_event("r"), ca_file=None)
    assert isinstance(result, Failed)
    assert "not on this machine" in result.error


def test_every_address_of_a_name_is_tried(server_context, send, new_event, names):
    """An address where nobody listens is passed over for the next one of the name."""
    names[0].append(["::1", "127.0.0.3", "127.0.0.1"])
    with Receiver(context=server_context(NAME)) as receiver:
        [result] = send(f"https://{NAME}:{receiver.port}", new_event("r"), allow_private=True)
        assert type(result) is Delivered


def test_a_look_up_that_hangs_has_failed(send, new_event, monkeypatch):
    """A resolver that does not answer costs the limit of one request, not the call."""
    released = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: released.wait() and [])
    start = time.monotonic()
    results = send(f"https://{NAME}", *[new_event("r") for _ in range(500)], timeout_seconds=0.5)
    assert time.monotonic() - start < 0.5 + GRACE
    released.set()
    assert set(results) == {Failed(error=f"{NAME}:443 cannot be resolved: no answer in time")}

"""Settings of an HTTP destination."""

from __future__ import annotations

import base64

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.settings import FromEnvironment
from delta_outbox.publishers.http.publisher import HttpPublisher
from delta_outbox.publishers.http.settings import parse_settings
from delta_outbox.publishers.registry import prepare_settings

SECRET = "whsec_" + base64.b64encode(b"canary-canary-canary-canary-").decode()
LEAST = {"url": "https://hooks.example.com/in", "secrets": [SECRET]}


def _message(settings, tmp_path):
    with pytest.raises(BadSettings) as caught:
        prepare_settings(HttpPublisher, settings, destination="hook", home=tmp_path)
    return str(caught.value)


@pytest.mark.parametrize(
    "further",
    [
        {},
        {"secrets": SECRET},
        {"secrets": [SECRET.rstrip("=")]},
        {"secrets": [SECRET, "whsec_" + base64.b64encode(b"x" * 64).decode()]},
        {"url": "http://localhost:8080"},
        {"url": "http://127.0.0.1"},
        {"url": "http://[::1]:1/x/?token=y"},
        {"url": "https://[2606:4700::1111]:8443/a%20b"},
        {"url": "https://xn--bcher-kva.example/"},
        {"url": "https://10.0.0.1/", "allow_private": True},
        {"headers": {"Authorization": "Bearer x", "X-Tenant": ""}},
        {"concurrency": 64, "timeout_seconds": 300, "append_route": False},
        {"concurrency": FromEnvironment("8"), "allow_private": FromEnvironment("true")},
        {"content_type": "application/avro; v=1", "header_values": "percent"},
    ],
)
def test_good_settings_pass(tmp_path, further):
    """What the page of the publisher lists is taken as it is."""
    given = {**LEAST, **further}
    assert prepare_settings(HttpPublisher, given, destination="hook", home=tmp_path) == given


@pytest.mark.parametrize(
    ("further", "rule"),
    [
        ({"topic": "x"}, "`topic` is not among the settings"),
        ({"timeout": 1}, "Did you mean `timeout_seconds`?"),
        ({"verify": False}, "`verify` is not among the settings"),
        ({"url": None}, "must be an https URL"),
        ({"url": "ftp://example.com"}, "must be https://HOST"),
        ({"url": "hooks.example.com"}, "must be https://HOST"),
        ({"url": "https:///x"}, "must be https://HOST"),
        ({"url": "https://example.com:0"}, "must be https://HOST"),
        ({"url": "https://example.com:99999"}, "its host or port cannot be read"),
        ({"url": "https://[::1"}, "its host or port cannot be read"),
        ({"url": "https://me:canary@example.com"}, "must not hold a user"),
        ({"url": "https://example.com/#canary"}, "must not have a fragment"),
        ({"url": "https://example.com/ü"}, "must be percent-encoded ASCII"),
        ({"url": "https://example.com/a b"}, "must be percent-encoded ASCII"),
        ({"url": "https://exam\nple.com/"}, "must be percent-encoded ASCII"),
        ({"url": "https://example.com/%zz"}, "must be percent-encoded ASCII"),
        ({"url": "https://example.com/a/../b"}, "must not hold //"),
        ({"url": "https://example.com/%2e%2E/b"}, "must not hold //"),
        ({"url": "https://example.com//b"}, "must not hold //"),
        ({"url": "http://example.com"}, "must begin with https://"),
        ({"url": "http://10.0.0.1", "allow_private": True}, "must begin with https://"),
        ({"url": "https://exa_mple..com"}, "must be a name in ASCII"),
        ({"url": "https://2130706433"}, "must be a name in ASCII"),
        ({"url": "https://127.1"}, "must be a name in ASCII"),
        ({"url": "https://0x7f.0.0.1"}, "must be a name in ASCII"),
        ({"url": "https://0177.0.0.1"}, "must be a name in ASCII"),
        ({"url": "https://[fe80::1%25eth0]"}, "must be a name in ASCII"),
        ({"url": "https://10.0.0.1"}, "10.0.0.1 is not public; `allow_private = true` takes it"),
        ({"url": "https://169.254.169.254"}, "is not public"),
        ({"url": "https://[fd00::1]"}, "is not public"),
        ({"url": "https://[::ffff:127.0.0.1]"}, "an IPv4 address written as IPv6"),
        ({"url": "https://0.0.0.0", "allow_private": True}, "is no address of a host"),
        ({"url": "https://224.0.0.1", "allow_private": True}, "is no address of a host"),
        ({"allow_private": "yes"}, "`allow_private` must be true or false"),
        ({"append_route": 1}, "`append_route` must be true or false"),
        ({"sign": False}, "`secrets` must not be given with `sign = false`"),
        ({"secrets": []}, "`secrets` must hold the secret"),
        ({"secrets": [1]}, "must be a list of secrets"),
        ({"secrets": [SECRET, SECRET]}, "must not repeat"),
        ({"secrets": [SECRET, "canary"]}, "secret 2 of `secrets` must be whsec_"),
        ({"secrets": [SECRET.removeprefix("whsec_")]}, "secret 1 of `secrets` must be whsec_"),
        ({"secrets": ["whsec_canary!"]}, "secret 1 of `secrets` must be whsec_"),
        ({"secrets": ["whsec_" + base64.b64encode(b"x" * 23).decode()]}, "24 to 64 random bytes"),
        ({"secrets": ["whsec_" + base64.b64encode(b"x" * 65).decode()]}, "24 to 64 random bytes"),
        ({"headers": "x"}, "`headers` must be a table"),
        ({"headers": {"a b": "canary"}}, "has the name 'a b'"),
        ({"headers": {"Host": "canary"}}, "must not hold 'Host'"),
        ({"headers": {"Content-Type": "canary"}}, "from `content_type`"),
        ({"headers": {"webhook-id": "canary"}}, "must not hold 'webhook-id'"),
        ({"headers": {"outbox-event-id": "canary"}}, "must not hold 'outbox-event-id'"),
        ({"headers": {"A": "canary", "a": "canary"}}, "twice"),
        ({"headers": {"a": "canary\r\nb: c"}}, "the value of 'a' in `headers` must be printable"),
        ({"headers": {"a": 1}}, "the value of 'a' in `headers` must be printable"),
        ({"content_type": ""}, "`content_type` must be a text"),
        ({"content_type": "a\nb"}, "`content_type` must be a media type"),
        ({"header_values": "utf-8"}, "`header_values` must be plain or percent"),
        ({"concurrency": 0}, "`concurrency` must be a whole number from 1 to 64"),
        ({"concurrency": 65}, "`concurrency` must be a whole number from 1 to 64"),
        ({"concurrency": True}, "`concurrency` must be a whole number from 1 to 64"),
        ({"timeout_seconds": 0}, "`timeout_seconds` must be from 0.1 to 300 seconds"),
        ({"timeout_seconds": float("nan")}, "`timeout_seconds` must be from 0.1 to 300 seconds"),
        ({"timeout_seconds": "10 s"}, "`timeout_seconds` must be from 0.1 to 300 seconds"),
        ({"ca_file": 1}, "`ca_file` must be a text"),
        ({"ca_file": "missing.pem"}, "`ca_file` cannot be read: No such file"),
        ({"url": "http://localhost", "ca_file": "x"}, "`ca_file` needs TLS"),
        ({"client_certificate_file": "missing.pem"}, "`client_certificate_file` cannot be read"),
        ({"client_key_file": __file__}, "needs `client_certificate_file` beside it"),
        ({"ca_file": __file__}, "is no PEM of its kind"),
    ],
)
def test_wrong_settings_are_one_sentence(tmp_path, further, rule):
    """Each rule has its sentence, which shows neither secret nor header nor credentials."""
    said = _message({**LEAST, **further}, tmp_path)
    assert said.startswith("publishers.hook: http: ")
    assert rule in said
    assert "canary" not in said
    assert SECRET not in said


def test_settings_show_no_secret():
    """The parsed settings, as a trace might print them, hold neither key nor header nor path."""
    given = {**LEAST, "url": "https://example.com/canary?canary", "headers": {"x": "canary"}}
    assert "canary" not in repr(parse_settings(given))


def test_an_encrypted_key_is_a_sentence(tmp_path):
    """A key with a password is refused rather than asked about on a terminal."""
    leaf = trustme.CA().issue_cert("x.example.com")
    leaf.cert_chain_pems[0].write_to_path(str(tmp_path / "c.pem"))
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    (tmp_path / "k.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    files = {"client_certificate_file": "c.pem", "client_key_file": "k.pem"}
    assert "the key is encrypted" in _message({**LEAST, **files}, tmp_path)

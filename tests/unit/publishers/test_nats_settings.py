"""Settings of a NATS destination, and what the answers of streams mean."""

from __future__ import annotations

import json

import pytest

from delta_outbox.core.errors import BadSettings
from delta_outbox.publishers import Delivered, Failed, Rejected, Unknown
from delta_outbox.publishers.nats.errors import result_of
from delta_outbox.publishers.nats.publisher import NatsPublisher
from delta_outbox.publishers.nats.settings import parse_settings
from delta_outbox.publishers.registry import prepare_settings

LEAST = {"servers": ["nats://localhost"], "subjects": ["flight.*"]}


def _message(settings, tmp_path):
    with pytest.raises(BadSettings) as caught:
        prepare_settings(NatsPublisher, settings, destination="default", home=tmp_path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("further", "address", "is_tls"),
    [
        ({}, "nats://localhost:4222", False),
        ({"servers": "nats://a:1, nats://[::1]:2"}, "nats://a:1, nats://[::1]:2", False),
        ({"servers": ["tls://a"]}, "tls://a:4222", True),
        (
            {"tls": True, "username": "me", "password": "s3cret-value"},
            "nats://localhost:4222",
            True,
        ),
        ({"mode": "core", "token": "s3cret-value"}, "nats://localhost:4222", False),
        ({"stream": "s", "max_in_flight": 10}, "nats://localhost:4222", False),
        ({"nkey_seed_file": __file__, "inbox_prefix": "a.b"}, "nats://localhost:4222", False),
    ],
)
def test_good_settings_pass(tmp_path, further, address, is_tls):
    """Servers are URLs without users; the port has a default."""
    given = {**LEAST, **further}
    assert given == prepare_settings(NatsPublisher, given, destination="default", home=tmp_path)
    parsed = parse_settings(given)
    assert (address, is_tls) == (parsed.address, parsed.tls is not None)
    assert "s3cret" not in repr(parsed)


@pytest.mark.parametrize(
    ("further", "said"),
    [
        ({"subject": "*"}, "`subject` is not among the settings that can be given. Did you mean"),
        ({"allow_reconnect": True}, "`allow_reconnect` is not among the settings"),
        ({"mode": "stream"}, "`mode` must be jetstream or core. Got: 'stream'."),
        ({"mode": "core", "stream": "s"}, "`stream` belongs to mode jetstream"),
        ({"subjects": []}, "`subjects` must list the subjects"),
        ({"servers": []}, "`servers` must list URLs"),
        ({"servers": ["a:1"]}, "`servers` must be nats://HOST:PORT"),
        ({"servers": ["ws://a:1"]}, "`servers` must be nats://HOST:PORT"),
        ({"servers": [7]}, "`servers` must be nats://HOST:PORT"),
        ({"servers": ["nats://a:0"]}, "`servers` must be nats://HOST:PORT"),
        ({"servers": ["nats://a:1/x"]}, "`servers` must be nats://HOST:PORT"),
        ({"servers": ["nats://a", "tls://b"]}, "must all be nats:// or all be tls://"),
        ({"username": "me"}, "`username` and `password` need each other"),
        ({"username": "me", "password": "x", "token": "y"}, "there is one way to log in"),
        ({"credentials_file": "/no/file"}, "`credentials_file` cannot be read: No such file"),
        ({"max_in_flight": 0}, "`max_in_flight` must be a whole number from 1"),
        ({"inbox_prefix": "a.*"}, "`inbox_prefix` must be a subject without wildcards"),
        ({"ca_file": __file__}, "`ca_file` needs TLS"),
        ({"tls": True, "ca_file": __file__}, "is no PEM of its kind"),
    ],
)
def test_bad_settings_are_refused(tmp_path, further, said):
    """Each wrong setting is refused with the rule, before anything connects."""
    assert said in _message({**LEAST, **further}, tmp_path)


def test_a_server_holds_no_password(tmp_path):
    """The servers are shown in errors, so a password in one is refused and not repeated."""
    said = _message({**LEAST, "servers": ["nats://me:hunter2@a"]}, tmp_path)
    assert "`servers` must not hold users: set `username` and `password`." in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("globs", "subject", "expected"),
    [
        (["*"], "order.created", True),
        (["*"], "$JS.API.STREAM.DELETE.s", False),
        (["*"], "_INBOX.x", False),
        (["$KV.*"], "$KV.bucket.key", True),
        (["order.*"], "orders.x", False),
    ],
)
def test_internal_subjects_must_be_named(globs, subject, expected):
    """No glob finds a subject of the server itself unless it names its first character."""
    assert expected == parse_settings({**LEAST, "subjects": globs}).allows(subject)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            {"stream": "s", "seq": 7, "duplicate": True},
            Delivered(receipt='{"stream":"s","seq":7,"duplicate":true}'),
        ),
        (
            {"error": {"err_code": 10054, "description": "message size exceeds"}},
            Rejected(error="JetStream: message size exceeds (10054)"),
        ),
        (
            {"error": {"err_code": 10077, "description": "maximum bytes exceeded"}},
            Failed(error="JetStream: maximum bytes exceeded (10077)"),
        ),
        (
            {"error": {"err_code": 10077, "description": "write failed: disk"}},
            Unknown(error="JetStream: write failed: disk (10077)"),
        ),
        (
            {"error": {"err_code": 10071, "description": "wrong last sequence: 3"}},
            Failed(error="JetStream: wrong last sequence: 3 (10071)"),
        ),
        ({"error": {"err_code": 1}}, Unknown(error="JetStream: (1)")),
        (
            {"stream": "s"},
            Unknown(error="the answer is none of a stream: does something else answer there?"),
        ),
    ],
)
def test_answers_say_what_is_known(answer, expected):
    """A stream's yes, its no for now, its no for ever, and whatever is not certain."""
    assert expected == result_of(json.dumps(answer).encode(), status=None, subject="a")

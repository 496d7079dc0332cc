"""Settings of a Redis destination, and what its errors mean."""

from __future__ import annotations

import pytest

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.settings import FromEnvironment
from delta_outbox.publishers import Failed, Unknown
from delta_outbox.publishers.redis.errors import ErrorReply
from delta_outbox.publishers.redis.publisher import RedisPublisher
from delta_outbox.publishers.redis.settings import parse_settings
from delta_outbox.publishers.registry import prepare_settings

LEAST = {"host": "localhost", "streams": ["flight.*"]}


def _message(settings, tmp_path):
    with pytest.raises(BadSettings) as caught:
        prepare_settings(RedisPublisher, settings, destination="default", home=tmp_path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("further", "address", "db", "is_tls"),
    [
        ({}, "localhost:6379", 0, False),
        ({"port": 1234, "db": 3, "max_length": 10}, "localhost:1234", 3, False),
        (
            {"port": FromEnvironment("1234"), "tls": FromEnvironment("true")},
            "localhost:1234",
            0,
            True,
        ),
        ({"host": "::1", "username": "me", "password": "s3cret-value"}, "[::1]:6379", 0, False),
        ({"host": None, "url": "redis://r.example.org"}, "r.example.org:6379", 0, False),
        ({"host": None, "url": "rediss://[::1]:99/15"}, "[::1]:99", 15, True),
        ({"mode": "pubsub", "streams": None, "channels": "c"}, "localhost:6379", 0, False),
    ],
)
def test_good_settings_pass(tmp_path, further, address, db, is_tls):
    """A server is named by a URL or by host and port; texts of the environment are numbers too."""
    given = {name: value for name, value in {**LEAST, **further}.items() if value is not None}
    assert given == prepare_settings(RedisPublisher, given, destination="default", home=tmp_path)
    parsed = parse_settings(given)
    assert (address, db, is_tls) == (parsed.address, parsed.db, parsed.tls is not None)
    assert "s3cret" not in repr(parsed)


@pytest.mark.parametrize(
    ("further", "said"),
    [
        (
            {"steams": ["*"]},
            "`steams` is not among the settings that can be given. Did you mean `streams`?",
        ),
        ({"retry_on_timeout": True}, "`retry_on_timeout` is not among the settings"),
        ({"tls_verify": False}, "`tls_verify` is not among the settings"),
        ({"mode": "list"}, "`mode` must be stream or pubsub. Got: 'list'."),
        ({"mode": "pubsub"}, "`streams` and `max_length` belong to mode stream"),
        ({"channels": ["*"]}, "`channels` belongs to mode pubsub"),
        ({"streams": []}, "`streams` must list the streams"),
        ({"streams": ["a["]}, "`streams` has the glob 'a[', but a `[` needs its `]`"),
        ({"host": ""}, "`host` must name the server"),
        ({"host": "me:hunter2@h"}, "`host` must name the server"),
        ({"port": 0}, "`port` must be a whole number from 1 to 65535. Got: 0."),
        ({"port": True}, "`port` must be a whole number"),
        ({"db": "x"}, "`db` must be a whole number"),
        ({"max_length": 0}, "`max_length` must be a whole number"),
        ({"connect_timeout_seconds": 0}, "`connect_timeout_seconds` must be from 0.1 to 60"),
        ({"connect_timeout_seconds": "nan"}, "`connect_timeout_seconds` must be from 0.1"),
        ({"username": "me"}, "`username` needs `password` beside it"),
        ({"tls": "yes"}, "`tls` must be true or false. Got: 'yes'."),
        ({"ca_file": "/x"}, "`ca_file` needs TLS"),
        ({"tls": True, "ca_file": "/no/file"}, "`ca_file` cannot be read: No such file"),
        ({"tls": True, "ca_file": __file__}, "is no PEM of its kind"),
        ({"tls": True, "client_key_file": __file__}, "needs `client_certificate_file`"),
        ({"url": "redis://h"}, "`host` is in `url` already"),
    ],
)
def test_bad_settings_are_refused(tmp_path, further, said):
    """Each wrong setting is refused with the rule, before anything connects."""
    assert said in _message({**LEAST, **further}, tmp_path)


@pytest.mark.parametrize(
    "url",
    [
        "redis:h",
        "http://h",
        "redis://",
        "redis://h/x",
        "redis://h?a=b",
        "redis://h:99999",
        "redis://h:0",
    ],
)
def test_bad_urls_are_refused(tmp_path, url):
    """A URL is a scheme, a host, a port and a database, and nothing else."""
    said = _message({"url": url, "streams": "*"}, tmp_path)
    assert "`url` must be redis://HOST:PORT/DB, or rediss:// for TLS" in said


def test_a_url_holds_no_password(tmp_path):
    """A URL is shown in errors, so a password in it is refused and not repeated."""
    said = _message({"url": "redis://me:hunter2@h", "streams": "*"}, tmp_path)
    assert "`url` must not hold a user or a password: set `username` and `password`." in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("OOM command not allowed", Failed(error="Redis: OOM command not allowed")),
        (
            "MOVED 3999 10.0.0.1:6381",
            Failed(
                error="Redis: MOVED 3999 10.0.0.1:6381 (the publisher does not follow a cluster: "
                "give it the node of the stream, or a proxy)"
            ),
        ),
        (
            "EXECABORT Transaction discarded because of: OOM command not allowed",
            Failed(error="Redis: OOM command not allowed"),
        ),
        (
            "ERR unknown command 'XADD', with args beginning with: 's' '*' 'payload' 'private'",
            Failed(error="Redis does not know the command (streams need Redis 5 or newer)"),
        ),
        (
            "ERR upstream failure of 'private'",
            Unknown(error="the answer is an error that is not known: ERR"),
        ),
    ],
)
def test_errors_say_what_is_known(said, expected):
    """An error of Redis is a refusal; one that a proxy may have made up says nothing."""
    assert expected == ErrorReply(said).result()

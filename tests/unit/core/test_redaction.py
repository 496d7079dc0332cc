"""Errors are shown without secrets."""

from __future__ import annotations

import pytest

from delta_outbox.core.redaction import describe, scrub


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a plain sentence.", "a plain sentence."),
        ("password=hunter2 was wrong", "password=*** was wrong"),
        ("Authorization: Bearer abc.def", "Authorization: ***"),
        ('{"api_key": "abc def"}', '{"api_key": ***}'),
        ("http://user:pw@host/x", "http://***@host/x"),
        ("tab\tand\r\nnewline", "tab and newline"),
        ("\x1b]0;title\x07", "]0;title"),
        ("line\u2028separator \u202ereversed", "line separator reversed"),
        ("Kafka: Broker: Topic authorization failed", "Kafka: Broker: Topic authorization failed"),
        ("grün → 🚀", "grün → 🚀"),
    ],
)
def test_what_is_shown(text, shown):
    """Secrets by name and by place are hidden, control characters become spaces."""
    assert scrub(text) == shown


def test_given_secrets_are_hidden():
    """A value known to be secret is hidden wherever it stands, the longer one first."""
    assert scrub("got s3cret-long and s3cret", secrets=["s3cret", "s3cret-long"]) == (
        "got *** and ***"
    )


def test_a_secret_cut_by_the_cap_does_not_show():
    """Hiding comes before capping."""
    assert "s3cret" not in scrub("x" * 495 + "s3cret-value", secrets=["s3cret-value"])


def test_an_exception_is_described_by_class_and_text():
    """The class says what kind of trouble it is."""
    assert describe(OSError("disk full")) == "OSError: disk full"

"""Signed links to one item."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.core.errors import BadSettings
from delta_outbox.workflow_engine.item_links import Links, Signer

SECRET = "of forty characters, which is long enough"
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
LINKS = Links(SECRET)


def parts(link: str) -> tuple[str, str, str]:
    """Return what a link says: the item, its end, the signature."""
    found = parse_qs(urlsplit(link).query, keep_blank_values=True)
    return found["id"][0], found["until"][0], found["signature"][0]


def test_a_link_opens_its_item_until_it_ends() -> None:
    """A link opens the item that it was made for, and no longer than it says."""
    until = NOW + timedelta(hours=1)
    link = parts(LINKS.link("review-a1 /&?", until))
    assert LINKS.opens(*link, now=NOW)
    assert LINKS.opens(*link, now=until - timedelta(seconds=1))
    assert not LINKS.opens(*link, now=until)
    assert LINKS.opens(*parts(LINKS.link("review-a1", None)), now=NOW + timedelta(days=9999))


@given(
    task_id=st.text(st.characters(codec="utf-8"), min_size=1),
    other=st.text(st.characters(codec="utf-8")),
)
def test_a_link_of_one_item_opens_no_other(task_id: str, other: str) -> None:
    """Nothing of a link can be altered: neither the item, nor its end, nor the signature."""
    until = NOW + timedelta(hours=1)
    _, seconds, signature = parts(LINKS.link(task_id, until))
    assert LINKS.opens(task_id, seconds, signature, now=NOW)
    if other != task_id:
        assert not LINKS.opens(other, seconds, signature, now=NOW)
    for end in ("", f"{int(seconds) + 1}", f"{seconds} ", f"0{seconds}", "no number"):
        assert not LINKS.opens(task_id, end, signature, now=NOW)
    for forged in ("", signature[:-1], f"{signature}=", signature.swapcase(), "é"):
        assert not LINKS.opens(task_id, seconds, forged, now=NOW)


def test_texts_cannot_be_divided_otherwise() -> None:
    """The end of one text is no part of the next."""
    signer = Signer(SECRET, "test")
    assert signer.sign("ab", "c") != signer.sign("a", "bc")
    assert signer.sign("ab") != signer.sign("ab", "")


def test_a_signature_is_for_one_purpose_and_of_one_secret() -> None:
    """What is signed for sessions is no link, and another secret makes other links."""
    signature = Signer(SECRET, "session").sign("a", "")
    assert not LINKS.opens("a", "", signature, now=NOW)
    assert not Links(SECRET[::-1]).opens(*parts(LINKS.link("a", None)), now=NOW)


def test_a_short_secret_is_refused() -> None:
    """A secret that can be guessed signs nothing, and is not repeated."""
    with pytest.raises(BadSettings, match=r"at least 32 characters\. Got: 5") as refused:
        Links("12345")
    assert "12345" not in str(refused.value)

"""The path of an event never leaves the URL of the settings."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.publishers.http.target import parse_url
from delta_outbox.publishers.http_headers import percent_encoded

TARGET = parse_url("https://example.com/base/in?k=v", allow_private=False, append_route=True)
SPITEFUL = st.text(st.sampled_from("/.\\?#@:%2eEfF ;&=\r\n\0aü") | st.characters())


@given(SPITEFUL)
def test_no_route_leaves_the_path(route):
    """Whatever a route holds, the request goes to a path below that of the URL with its query, in
    printable ASCII, and the route can be read back from it; or it is refused.
    """
    try:
        target = TARGET.request_target(route)
    except ValueError:
        return
    assert target.isascii()
    assert target.isprintable()
    assert " " not in target
    parts = urlsplit("https://example.com" + target)
    assert parts.hostname == "example.com"
    assert parts.query == "k=v"
    assert parts.fragment == ""
    assert parts.path.startswith("/base/in/")
    below = parts.path.removeprefix("/base/in/").split("/")
    assert not {".", ".."} & {unquote(one) for one in below}
    assert unquote(parts.path) == "/base/in/" + route.removeprefix("/")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_percent_encoding_is_read_back(value):
    """Any text is visible ASCII once encoded, and comes back by one round of decoding."""
    encoded = percent_encoded(value)
    assert all("!" <= character <= "~" for character in encoded)
    assert '"' not in encoded
    assert unquote(encoded, errors="strict") == value

"""Who is counted together."""

from __future__ import annotations

import pytest
from fastapi import Request

from delta_outbox.todo.pages.visits import network_of


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("198.51.100.7:5678", "198.51.100.7"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("[::ffff:198.51.100.7]:5678", "198.51.100.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("[2001:db8::1]", "2001:db8::/64"),
        ("[2001:db8::1]:5678", "2001:db8::/64"),
        ("unknown", "unknown"),
        ("", ""),
    ],
)
def test_an_address_is_known_in_each_form(shown: str, expected: str) -> None:
    """One address is counted as one, as the socket shows it or a proxy writes it, with its port or
    without; of IPv4 each by itself, of IPv6 its network.
    """
    headers = [(b"x-forwarded-for", f"203.0.113.1, {shown}".encode())]
    request = Request({"type": "http", "headers": headers, "client": (shown, 1)})
    assert expected == network_of(request, behind_proxy=False)
    assert (expected or shown) == network_of(request, behind_proxy=True)

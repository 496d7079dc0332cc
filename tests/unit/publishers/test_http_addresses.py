"""Which addresses webhooks may go to."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.publishers.http.addresses import refusal

NOT_PUBLIC = [
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "::1",
    "fe80::1",
    "fec0::1",
    "fc00::1",
    "fd00:ec2::254",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::",
    "3fff::1",
    "5f00::1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::808:808",
    "::127.0.0.1",
    "::7f00:1",
]
NEVER = [
    "0.0.0.0",
    "0.1.2.3",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "ff02::1",
]
MAPPED = ["::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:a00:1"]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450::1",
    "2001:4860:4860::8888",
    "64:ff9b::808:808",
]


def _refused(ip, *, allow_private=False, loopback=False):
    return refusal(ipaddress.ip_address(ip), allow_private=allow_private, loopback=loopback)


@pytest.mark.parametrize("ip", PUBLIC)
def test_public_addresses_are_taken(ip):
    """An address of the internet is taken, also by way of NAT64."""
    assert _refused(ip) is None


@pytest.mark.parametrize("ip", NOT_PUBLIC)
def test_private_addresses_are_taken_only_if_allowed(ip):
    """An address of this machine, of a private network or of a special purpose needs a setting."""
    assert _refused(ip) == "not public"
    assert _refused(ip, allow_private=True) is None


@pytest.mark.parametrize("ip", NEVER + MAPPED)
def test_some_addresses_are_never_taken(ip):
    """Groups, nowhere, and IPv4 in disguise are refused whatever the settings say."""
    assert _refused(ip)
    assert _refused(ip, allow_private=True)
    assert _refused(ip, loopback=True)


def test_this_machine_is_only_this_machine():
    """Where the URL names this machine, no other address will do, allowed or not."""
    assert _refused("127.0.0.1", loopback=True) is None
    assert _refused("::1", loopback=True) is None
    for ip in ("8.8.8.8", "10.0.0.1", "2606:4700:4700::1111"):
        assert _refused(ip, loopback=True) == "not on this machine"
        assert _refused(ip, loopback=True, allow_private=True) == "not on this machine"


@given(st.ip_addresses())
def test_what_python_calls_private_is_never_public(ip):
    """Python's own lists, made by others, find nothing private among what is taken."""
    embedded = ip
    if ip.version == 6 and ip in ipaddress.ip_network("64:ff9b::/96"):
        embedded = ipaddress.ip_address(int(ip) & 0xFFFFFFFF)
    if refusal(ip, allow_private=False, loopback=False) is None:
        assert embedded.is_global
        assert not embedded.is_multicast
        assert not embedded.is_reserved

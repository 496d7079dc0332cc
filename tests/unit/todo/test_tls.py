"""TLS: the server speaks it with the certificate of its settings, and nothing else."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest
import trustme
from tests.unit.todo.pages.site import SECRET, Site

from delta_outbox.core.settings import TodoSettings


def test_keys_go_by_tls(tmp_path: Path) -> None:
    """Who trusts the authority of the certificate is answered, and gets a cookie that goes by TLS
    alone; nobody else connects, and a request in plain text has no answer.
    """
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    certificate.write_bytes(b"".join(one.bytes() for one in made.cert_chain_pems))
    key.write_bytes(made.private_key_pem.bytes())
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    site = Site(
        TodoSettings(link_secret=SECRET, tls_certificate=str(certificate), tls_key=str(key))
    )
    site.fill()
    who = {"Authorization": f"Bearer {site.key}"}
    with site.served() as address:
        assert address.startswith("https://127.0.0.1:")
        with httpx.Client(base_url=address, verify=trusting, headers=who) as client:
            assert 5 == client.get("/items").json()["total"]
            cookie = client.get("/todo/sign-in").headers["set-cookie"]
        assert "secure" in cookie.lower().split("; ")
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"{address}/items", headers=who)
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"{address}/items".replace("https", "http"), headers=who)

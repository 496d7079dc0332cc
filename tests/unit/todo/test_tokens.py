"""JWTs: of whom one is believed, and every way to forge one that we know of."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from tests.unit.todo.memory_items import item, office

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.settings import TodoSettings
from delta_outbox.todo.item_thread import NotInTime
from delta_outbox.todo.people import Person
from delta_outbox.todo.tokens import (
    KEEP_SECONDS,
    PAUSE_SECONDS,
    BadToken,
    JwkSet,
    TokenReader,
    token_reader,
)

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SHARED = b"secret" * 6  # 36 bytes, which base64 needs no padding for
CURVE = ec.generate_private_key(ec.SECP256R1())
PEM = KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
CLAIMS = {"sub": "ann", "iss": "https://id.example", "aud": "todo", "roles": ["support"]}
ANN = Person(name="ann", roles=frozenset({"support"}))

Read = Callable[[str], Person]


def jwk(key: rsa.RSAPrivateKey, name: str) -> dict[str, Any]:
    """Return the public part of a key."""
    return {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())), "kid": name}


def curve_jwk(name: str) -> dict[str, Any]:
    """Return the public part of the key on a curve."""
    return {**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(CURVE.public_key())), "kid": name}


def settings(place: Path, **changed: Any) -> TodoSettings:
    """Return settings that believe one issuer."""
    return TodoSettings(jwks=str(place), issuer="https://id.example", audience="todo", **changed)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a file with the keys of the issuer, and one with a shared secret among them."""
    file = tmp_path / "jwks.json"
    shared = {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(SHARED).decode()}
    file.write_text(json.dumps({"keys": [jwk(KEY, "k1"), curve_jwk("k2"), shared]}))
    return file


@pytest.fixture
def read(place: Path) -> Read:
    """Return what reads JWTs."""
    reader = token_reader(settings(place))
    assert reader is not None
    return reader.person


def signed(key: Any = KEY, algorithm: str = "RS256", kid: str | None = "k1", **changed: Any) -> str:
    """Return a JWT; a claim that is None is left out."""
    claims = {"exp": int(time.time()) + 60, **CLAIMS, **changed}
    kept = {name: value for name, value in claims.items() if value is not None}
    headers = {} if kid is None else {"kid": kid}
    return jwt.encode(kept, key, algorithm=algorithm, headers=headers)


def test_a_token_of_the_issuer_is_believed(read: Read) -> None:
    """A token that the issuer has signed for us is its person with the roles that it names."""
    assert ANN == read(signed())
    assert ANN == read(signed(CURVE, "ES256", "k2"))
    assert ANN == read(signed(aud=["other", "todo"]))
    assert frozenset({"a", "b"}) == read(signed(roles="a b")).roles


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": "another"},
        {"aud": None},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"exp": 1},
        {"exp": None},
        {"nbf": 4_000_000_000},
        {"sub": None},
        {"sub": ""},
        {"sub": "a\nb"},
        {"roles": None},
        {"roles": 7},
        {"roles": ["a", 7]},
    ],
)
def test_claims_must_be_ours(read: Read, changed: dict[str, Any]) -> None:
    """A token for others, of others, that is over, has no end or names nobody is not believed."""
    with pytest.raises(BadToken):
        read(signed(**changed))


def test_forged_tokens_are_not_believed(read: Read) -> None:
    """No algorithm of the token's choice, no key of somebody else, no signature that was cut."""

    def part(value: object) -> str:
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    body = part({"exp": int(time.time()) + 60, **CLAIMS})
    unsigned = [f"{part({'alg': alg, 'kid': 'k1'})}.{body}." for alg in ("none", "None", "")]
    # The public key taken for a shared secret.
    start = f"{part({'alg': 'HS256', 'kid': 'k1', 'typ': 'JWT'})}.{body}"
    confused = f"{start}.{part(hmac.new(PEM, start.encode(), hashlib.sha256).digest())}"
    shared = f"{part({'alg': 'HS256', 'kid': 'shared'})}.{body}"
    known = f"{shared}.{part(hmac.new(SHARED, shared.encode(), hashlib.sha256).digest())}"
    good = signed()
    head, _, signature = good.split(".")
    other_body = part({"exp": int(time.time()) + 60, **CLAIMS, "sub": "root"})
    forged = [
        *unsigned,
        confused,
        known,
        signed(OTHER),
        signed(kid="unknown"),
        signed(kid=None),
        signed(KEY, "PS256"),
        signed(CURVE, "ES256", "k1"),
        signed(KEY, "RS256", "k2"),
        f"{head}.{other_body}.{signature}",
        good[:-2],
        good.rsplit(".", 1)[0] + ".",
        signed(more="x" * 10_000),
        "x",
        "",
        "..",
        "a.b.c",
    ]
    for token in forged:
        with pytest.raises(BadToken):
            read(token)


def test_a_jwt_opens_the_door(place: Path) -> None:
    """Who sends a JWT may do what its roles may; where no issuer is named, none opens anything."""
    with office(tokens=token_reader(settings(place))) as desk:
        desk.items.add(item("review-o1"))
        bearer = {"Authorization": f"Bearer {signed()}"}
        assert 1 == desk.client.get("/items", headers=bearer).json()["total"]
        forged = {"Authorization": f"Bearer {signed(OTHER)}"}
        assert 401 == desk.client.get("/items", headers=forged).status_code
    with office() as desk:
        assert 401 == desk.client.get("/items", headers=bearer).status_code


def test_claims_are_found_where_the_settings_say(place: Path) -> None:
    """A dot leads into an object, as some issuers nest roles."""
    reader = token_reader(settings(place, person_claim="email", roles_claim="realm_access.roles"))
    assert reader is not None
    token = signed(email="ann@example", realm_access={"roles": ["support"]}, roles=None)
    assert Person(name="ann@example", roles=frozenset({"support"})) == reader.person(token)


def test_an_issuer_is_named_as_a_whole() -> None:
    """JWTs are believed if keys, issuer and audience are named, else none or an error."""
    assert token_reader(TodoSettings()) is None
    with pytest.raises(BadSettings, match="issuer, audience are missing"):
        token_reader(TodoSettings(jwks="x.json"))


def test_keys_are_fetched_when_they_are_needed() -> None:
    """Keys come from an address; a new one is found, but strangers cannot make us ask all the time;
    where the issuer is away for long, nobody can say.
    """
    asked: list[str] = []
    served: list[dict[str, Any]] = [jwk(KEY, "k1")]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if served else 500)
            self.end_headers()
            self.wfile.write(json.dumps({"keys": served}).encode())

        def log_message(self, *_: object) -> None:
            pass

    now = [0.0]
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}/jwks"
        keys = JwkSet(place, monotonic=lambda: now[0])
        reader = TokenReader(TodoSettings(issuer="https://id.example", audience="todo"), keys)
        assert ANN == reader.person(signed()) == reader.person(signed())
        assert 1 == len(asked)
        served.append(jwk(OTHER, "k3"))
        for _ in range(5):
            with pytest.raises(BadToken):
                reader.person(signed(OTHER, kid="k3"))
        assert 1 == len(asked)
        now[0] += PAUSE_SECONDS + 1
        assert ANN == reader.person(signed(OTHER, kid="k3"))
        served.clear()
        now[0] += KEEP_SECONDS + 1
        assert ANN == reader.person(signed())
        now[0] += 2 * KEEP_SECONDS
        with pytest.raises(NotInTime):
            reader.person(signed())
        server.shutdown()

"""JWTs: of whom one is believed, and every way to forge one that we know of."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from tests.unit.todo.memory_items import item, office

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.settings import TodoSettings
from delta_outbox.todo import tokens
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
    return partial(believed, reader)


def believed(reader: TokenReader, token: str) -> Person:
    """Return whom a JWT stands for."""
    return asyncio.run(reader.person(token))


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
    assert Person(name="ann@example", roles=frozenset({"support"})) == believed(reader, token)


def test_an_issuer_is_named_as_a_whole() -> None:
    """JWTs are believed if keys, issuer and audience are named, else none or an error."""
    assert token_reader(TodoSettings()) is None
    with pytest.raises(BadSettings, match="issuer, audience are missing"):
        token_reader(TodoSettings(jwks="x.json"))


class Issuer:
    """A server of the keys of an issuer, and what reads JWTs of it, in a time of its own."""

    def __init__(self) -> None:
        self.asked, self.now = 0, 0.0
        self.body, self.status = json.dumps({"keys": [jwk(KEY, "k1")]}), b"HTTP/1.0 200 OK"
        self.waits: Callable[[], object] = lambda: None

    def serve(self, *keys: dict[str, Any]) -> None:
        """Serve other keys from now on."""
        self.body = json.dumps({"keys": keys})

    @contextmanager
    def reader(self) -> Iterator[TokenReader]:
        """Serve for a block."""
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked += 1
                issuer.waits()
                self.wfile.write(issuer.status + b"\r\n\r\n" + issuer.body.encode())

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            place = f"http://127.0.0.1:{server.server_port}/jwks"
            keys = JwkSet(place, monotonic=lambda: self.now)
            yield TokenReader(TodoSettings(issuer="https://id.example", audience="todo"), keys)
            server.shutdown()


def test_keys_are_fetched_when_they_are_needed() -> None:
    """Keys come from an address; a new one is found, but strangers cannot make us ask all the time;
    where the issuer is away for long, nobody can say.
    """
    issuer = Issuer()
    with issuer.reader() as reader:
        assert ANN == believed(reader, signed()) == believed(reader, signed())
        assert 1 == issuer.asked
        issuer.serve(jwk(KEY, "k1"), jwk(OTHER, "k3"))
        for _ in range(5):
            with pytest.raises(BadToken):
                believed(reader, signed(OTHER, kid="k3"))
        assert 1 == issuer.asked
        issuer.now += PAUSE_SECONDS + 1
        assert ANN == believed(reader, signed(OTHER, kid="k3"))
        issuer.status = b"HTTP/1.0 500 No"
        issuer.now += KEEP_SECONDS + 1
        assert ANN == believed(reader, signed())
        issuer.now += 2 * KEEP_SECONDS
        with pytest.raises(NotInTime):
            believed(reader, signed())


@pytest.mark.parametrize("trouble", ["[]", "7", '{"keys": 7}', "{", "no HTTP"])
def test_what_an_issuer_says_wrongly_is_passed_over(trouble: str) -> None:
    """Keys that are known go on for a while, whatever the issuer says in place of them."""
    issuer = Issuer()
    with issuer.reader() as reader:
        assert ANN == believed(reader, signed())
        issuer.body = trouble
        if trouble == "no HTTP":
            issuer.status = b"no HTTP"
        issuer.now += KEEP_SECONDS + 1
        with pytest.raises(BadToken):
            believed(reader, signed(kid="k3"))  # which waits for the fetch
        assert ANN == believed(reader, signed())
    assert 2 == issuer.asked


def test_nobody_with_a_known_key_waits_for_the_issuer(monkeypatch: pytest.MonkeyPatch) -> None:
    """While an issuer says nothing, whoever has a key that is known is let in at once; who has none
    waits with others of that kind, and one who waits no longer ends it for nobody.
    """
    monkeypatch.setattr(tokens, "FETCH_SECONDS", 60.0)
    issuer = Issuer()
    may_go = threading.Event()

    async def come(reader: TokenReader) -> Person:
        strangers = [asyncio.create_task(reader.person(signed(OTHER, kid="k3"))) for _ in range(2)]
        while issuer.asked < 2:
            assert ANN == await reader.person(signed())
            await asyncio.sleep(0.01)
        assert ANN == await reader.person(signed())
        assert not any(one.done() for one in strangers)
        strangers[0].cancel()
        await asyncio.sleep(0)
        may_go.set()
        return await strangers[1]

    with issuer.reader() as reader:
        assert ANN == believed(reader, signed())
        issuer.serve(jwk(KEY, "k1"), jwk(OTHER, "k3"))
        issuer.waits = lambda: may_go.wait(30)
        issuer.now += KEEP_SECONDS + 1
        assert ANN == asyncio.run(come(reader))
    assert 2 == issuer.asked

"""API keys: what is kept of them, and whom they let in."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import threading
import time
from collections.abc import Mapping
from unittest import mock

import pytest

from delta_outbox.todo.credentials import MOST_AGE, Credentials, KeyRing
from delta_outbox.todo.item_thread import KeySource, NotInTime
from delta_outbox.todo.keys import Key, looks_like_key, new_key, person_of
from delta_outbox.todo.people import Person


def made(person: str = "ann") -> tuple[Key, str]:
    """Make a key."""
    return new_key(person=person, roles=["b", "a", "b"], at="2026-11-28T12:00:00Z", by="tests")


def test_a_key_is_kept_as_a_hash() -> None:
    """The secret is 256 random bits and stands in nothing that is kept or shown."""
    (key, token), (other, _) = made(), made()
    secret = token.split("_", 2)[2]
    assert 43 == len(secret)
    assert hashlib.sha256(secret.encode()).hexdigest() == key.sha256 != other.sha256
    assert secret not in str(key.kept()) + repr(key)
    assert "sha256" not in key.shown()
    assert key == Key.read(key.kept())
    assert looks_like_key(token)


def test_a_key_is_a_person_with_roles() -> None:
    """Who holds a key is its person, and whoever holds anything else is nobody."""
    (key, token), (_, other) = made(), made("bob")
    known = {key.id: key}
    assert Person(name="ann", roles=frozenset({"a", "b"})) == person_of(token, known)
    mixed = f"todo_{key.id}_{other.split('_', 2)[2]}"
    for wrong in (other, mixed, token[:-1], f"{token}x", f" {token}", token.upper(), "", "todo__"):
        assert person_of(wrong, known) is None
    assert person_of(token, {}) is None


def test_keys_are_compared_in_constant_time() -> None:
    """Every token is compared once with a hash, by `hmac.compare_digest`, also one of no key."""
    (key, token), (_, other) = made(), made()
    for sent in (token, other, "todo_x", ""):
        with mock.patch("hmac.compare_digest", wraps=hmac.compare_digest) as compared:
            person_of(sent, {key.id: key})
        assert 1 == compared.call_count
        assert {64} == {len(one) for one in compared.call_args.args}


class Source:
    """Keys that change, and may be out of reach."""

    def __init__(self) -> None:
        self.keys: dict[str, Key] = {}
        self.is_there = True

    def get(self) -> KeySource | None:
        return self if self.is_there else None

    def current(self) -> Mapping[str, Key]:
        return dict(self.keys)


def test_a_revoked_key_is_refused() -> None:
    """A key that was revoked counts no more from the next look on, and where nobody can look for
    ten seconds, none does.
    """
    source, now = Source(), [100.0]
    key, token = made()
    ring = KeyRing(source.get, monotonic=lambda: now[0])
    with pytest.raises(NotInTime):
        ring.person(token)
    source.keys = {key.id: key}
    ring.look()
    assert ring.person(token) is not None
    source.keys = {}
    ring.look()
    assert ring.person(token) is None
    source.keys = {key.id: key}
    ring.look()
    source.is_there = False
    now[0] += MOST_AGE
    ring.look()
    assert ring.person(token) is not None
    now[0] += 0.1
    with pytest.raises(NotInTime):
        ring.person(token)


def test_who_comes_while_keys_are_read_waits() -> None:
    """Where keys could not be read for long, whoever asks waits for the next look, but not for
    ever.
    """
    source, now = Source(), [100.0]
    key, token = made()
    source.keys = {key.id: key}
    ring = KeyRing(source.get, monotonic=lambda: now[0])

    async def asked(patience: float, *, is_read: bool) -> Person:
        async def meanwhile() -> None:
            await asyncio.sleep(0)
            if is_read:
                ring.look()

        credentials = Credentials(ring, None, patience=patience)
        found, _ = await asyncio.gather(credentials.person(token), meanwhile())
        return found

    with pytest.raises(NotInTime):
        asyncio.run(asked(0.3, is_read=False))
    assert "ann" == asyncio.run(asked(60, is_read=True)).name


def test_a_thread_looks_for_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is revoked is refused without anybody asking for a look, also after a look that
    failed.
    """
    monkeypatch.setattr("delta_outbox.todo.credentials.POLL_SECONDS", 0.01)
    key, token = made()
    looks: list[Mapping[str, Key] | Exception] = [{key.id: key}, RuntimeError("gone"), {}]
    looked = threading.Event()

    class Failing:
        def current(self) -> Mapping[str, Key]:
            found = looks.pop(0) if len(looks) > 1 else looks[0]
            if not looks[1:]:
                looked.set()
            if isinstance(found, Exception):
                raise found
            return found

    ring = KeyRing(Failing)
    ring.start()
    try:
        assert ring.person(token) is not None
        assert looked.wait(10)
        deadline = time.monotonic() + 10
        while ring.person(token) is not None:
            assert time.monotonic() < deadline
    finally:
        ring.stop()

"""API keys: who holds one is a person with roles. Only a hash of each is kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from delta_outbox.todo.people import Person

PREFIX: Final = "todo"
SECRET_BYTES: Final = 32  # 256 random bits: no salt and no slow hash is needed
_ID_BYTES: Final = 4
_TOKEN: Final = re.compile(rf"{PREFIX}_([0-9a-f]{{{2 * _ID_BYTES}}})_([A-Za-z0-9_-]{{43}})")
_NOBODY: Final = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, kw_only=True)
class Key:
    """An API key, as it is kept.

    Args:
        id: names it; no secret.
        person: whom it stands for.
        roles: of that person.
        sha256: of its secret, in hexadecimal digits.
        added_at: when, ISO 8601 in UTC.
        added_by: who added it.
    """

    id: str
    person: str
    roles: tuple[str, ...]
    sha256: str
    added_at: str
    added_by: str

    @property
    def holder(self) -> Person:
        """Return whom it stands for."""
        return Person(name=self.person, roles=frozenset(self.roles))

    def kept(self) -> dict[str, object]:
        """Return what is written down of it."""
        return {**self.shown(), "sha256": self.sha256}

    def shown(self) -> dict[str, object]:
        """Return what anybody may see of it."""
        return {
            "id": self.id,
            "person": self.person,
            "roles": list(self.roles),
            "added_at": self.added_at,
            "added_by": self.added_by,
        }

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> Key:
        """Return a key that was written down.

        Args:
            kept: as `kept` returns it.
        """
        return cls(
            id=kept["id"],
            person=kept["person"],
            roles=tuple(kept["roles"]),
            sha256=kept["sha256"],
            added_at=kept["added_at"],
            added_by=kept["added_by"],
        )


def new_key(*, person: str, roles: Iterable[str], at: str, by: str) -> tuple[Key, str]:
    """Return a new key, and its token, which is shown once and kept nowhere.

    Args:
        person: whom it stands for.
        roles: of that person.
        at: now, ISO 8601 in UTC.
        by: who adds it.
    """
    name, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(SECRET_BYTES)
    key = Key(
        id=name,
        person=person,
        roles=tuple(sorted(set(roles))),
        sha256=_hash(secret),
        added_at=at,
        added_by=by,
    )
    return key, f"{PREFIX}_{name}_{secret}"


def looks_like_key(token: str) -> bool:
    """Say whether a token is to be an API key, and nothing else.

    Args:
        token: that somebody has sent.
    """
    return token.startswith(f"{PREFIX}_")


def id_of(token: str) -> str | None:
    """Return the id that a token names, of a key that there may be; None if it is none of a key.

    Args:
        token: that somebody has sent.
    """
    found = _TOKEN.fullmatch(token)
    return found[1] if found else None


def person_of(token: str, keys: Mapping[str, Key]) -> Person | None:
    """Return whom a token stands for; None if it is no key, or none any more.

    How long that takes does not depend on how much of the secret is right, nor on whether there is
    a key of this name.

    Args:
        token: that somebody has sent.
        keys: those that count, by id.
    """
    found = _TOKEN.fullmatch(token)
    name, secret = found.groups() if found else ("", "")
    key = keys.get(name)
    is_right = hmac.compare_digest(_hash(secret), key.sha256 if key else _NOBODY)
    if key is None or found is None or not is_right:
        return None
    return key.holder


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()

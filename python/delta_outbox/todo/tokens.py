"""Reads JWTs (RFC 7519) of an issuer that the settings name. Algorithms are fixed by the settings,
never by the token (RFC 8725, 3.1); only those with a public key are known here.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import jwt

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.settings import TodoSettings
from delta_outbox.operations.argument_rules import MAX_ACTOR, Arguments
from delta_outbox.todo.item_thread import NotInTime
from delta_outbox.todo.people import Person

MOST_TOKEN: Final = 8 * 1024  # characters
MOST_JWKS: Final = 1024**2  # bytes
FETCH_TIMEOUT: Final = 5.0  # seconds
KEEP_SECONDS: Final = 300.0  # that keys are kept without a look whether there are others
PAUSE_SECONDS: Final = 30.0  # between two fetches for keys that nobody has, or after a failure
REQUIRED: Final = ("exp", "aud", "iss")


class BadToken(Exception):
    """A JWT that is not believed. The message is for logs, not for who has sent it."""


class JwkSet:
    """The public keys of an issuer (RFC 7517), from a file or an address; fetched again when they
    are old, or when a token names a key that is not among them, but not all the time.

    Args:
        place: a path, or an address with https (http on this machine).
        monotonic: seconds.
    """

    def __init__(self, place: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._place = place
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._keys: Mapping[str | None, jwt.PyJWK] = {}
        self._read_at = self._asked_at = float("-inf")

    def key(self, name: str | None) -> jwt.PyJWK:
        """Return a key.

        Args:
            name: its `kid`; None if the token names none, which is enough if there is one key.

        Raises:
            BadToken: there is none.
            NotInTime: the keys could not be had.
        """
        with self._lock:
            now = self._monotonic()
            is_old = now - self._read_at > KEEP_SECONDS
            if (is_old or not self._has(name)) and now - self._asked_at > PAUSE_SECONDS:
                self._asked_at = now
                # If it fails, those that are known go on for a while.
                with contextlib.suppress(OSError, ValueError, jwt.PyJWTError):
                    self._keys, self._read_at = self._fetch(), now
            if self._monotonic() - self._read_at > 2 * KEEP_SECONDS:
                raise NotInTime("the keys of the issuer are out of reach")
            if not self._has(name):
                raise BadToken("its key is unknown")
            return self._keys[name] if name is not None else next(iter(self._keys.values()))

    def _has(self, name: str | None) -> bool:
        return name in self._keys if name is not None else len(self._keys) == 1

    def _fetch(self) -> Mapping[str | None, jwt.PyJWK]:
        if "://" in self._place:
            # The settings check the scheme.
            with urllib.request.urlopen(self._place, timeout=FETCH_TIMEOUT) as answer:
                if answer.url != self._place:
                    raise ValueError("redirected")
                read = answer.read(MOST_JWKS + 1)
        else:
            read = Path(self._place).read_bytes()
        if len(read) > MOST_JWKS:
            raise ValueError("too large")
        return {key.key_id: key for key in jwt.PyJWKSet.from_dict(json.loads(read))}


class TokenReader:
    """Reads JWTs.

    Args:
        settings: `[todo]`, with `jwks`, `issuer` and `audience`.
        keys: of the issuer.
    """

    def __init__(self, settings: TodoSettings, keys: JwkSet) -> None:
        self._settings = settings
        self._keys = keys

    def person(self, token: str) -> Person:
        """Return whom a JWT stands for.

        Args:
            token: that somebody has sent.

        Raises:
            BadToken: it is not believed.
            NotInTime: the keys of the issuer could not be had.
        """
        claims = self._claims(token)
        name = Arguments().line("person", _at(claims, self._settings.person_claim), MAX_ACTOR)
        roles = _at(claims, self._settings.roles_claim)
        if isinstance(roles, str):
            roles = roles.split()  # as `scope` has them (RFC 8693, 4.2)
        if not name:
            raise BadToken("it names nobody")
        if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
            raise BadToken("it has no roles")
        return Person(name=name, roles=frozenset(roles))

    def _claims(self, token: str) -> Mapping[str, Any]:
        if len(token) > MOST_TOKEN:
            raise BadToken("it is too long")
        algorithms = list(self._settings.algorithms)
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in algorithms:
                raise BadToken("its algorithm is not allowed")
            name = header.get("kid")
            key = self._keys.key(name if isinstance(name, str) else None)
            claims: Mapping[str, Any] = jwt.decode(
                token,
                key,
                algorithms=algorithms,
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                options={"require": list(REQUIRED), "verify_signature": True},
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise BadToken(type(error).__name__) from None
        return claims


def token_reader(settings: TodoSettings) -> TokenReader | None:
    """Return what reads JWTs, None if the settings name no issuer.

    Args:
        settings: `[todo]`.

    Raises:
        BadSettings: some of what it takes is missing.
    """
    needed = {name: getattr(settings, name) for name in ("jwks", "issuer", "audience")}
    missing = [name for name, value in needed.items() if value is None]
    if len(missing) == len(needed):
        return None
    if missing:
        raise BadSettings(
            f"`todo`: JWTs need `jwks`, `issuer` and `audience`; {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing.",
            remedy="Add what is missing, or remove the others.",
        )
    return TokenReader(settings, JwkSet(str(settings.jwks)))


def _at(claims: Mapping[str, Any], path: str) -> Any:
    """Return a claim; a dot leads into an object."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found

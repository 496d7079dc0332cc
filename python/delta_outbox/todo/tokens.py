"""Reads JWTs (RFC 7519) of an issuer that the settings name. Algorithms are fixed by the settings,
never by the token (RFC 8725, 3.1); only those with a public key are known here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

import jwt

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.redaction import describe
from delta_outbox.core.settings import TodoSettings
from delta_outbox.operations.argument_rules import MAX_ACTOR, Arguments
from delta_outbox.todo.item_thread import NotInTime
from delta_outbox.todo.patience import within
from delta_outbox.todo.people import Person

logger = logging.getLogger(__name__)

MOST_TOKEN: Final = 8 * 1024  # characters
MOST_JWKS: Final = 1024**2  # bytes
MOST_PIECE: Final = 64 * 1024  # bytes
FETCH_SECONDS: Final = 5.0
KEEP_SECONDS: Final = 300.0  # that keys are kept without a look whether there are others
PAUSE_SECONDS: Final = 30.0  # between two fetches for keys that nobody has, or after a failure
REQUIRED: Final = ("exp", "aud", "iss")

Keys = Mapping[str | None, jwt.PyJWK]
"""Public keys by their `kid`."""


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
        self._known: tuple[Keys, float] = {}, float("-inf")  # and when they were asked for
        self._asked_at = float("-inf")
        self._fetched: Future[None] = Future()

    async def caught_up(self, name: str | None) -> None:
        """Fetch the keys if they are old, or this one is not among them. Who comes with a key that
        is known does not wait for that.

        Args:
            name: its `kid`; None if the token names none.
        """
        now = self._monotonic()
        keys, read_at = self._known
        is_known = _is_among(keys, name)
        if not (is_known and now - read_at <= KEEP_SECONDS):
            if now - self._asked_at > PAUSE_SECONDS:
                self._asked_at, self._fetched = now, Future()
                self._fetched.set_running_or_notify_cancel()  # who waits no longer ends it for none
                fetch = threading.Thread(target=self._fetch, args=(now, self._fetched), daemon=True)
                fetch.start()
            if not is_known or now - read_at > 2 * KEEP_SECONDS:
                with contextlib.suppress(TimeoutError):
                    await within(FETCH_SECONDS, asyncio.wrap_future(self._fetched))

    def key(self, name: str | None) -> jwt.PyJWK:
        """Return a key that is known.

        Args:
            name: its `kid`; None if the token names none, which is enough if there is one key.

        Raises:
            BadToken: there is none.
            NotInTime: the keys could not be had.
        """
        keys, read_at = self._known
        if self._monotonic() - read_at > 2 * KEEP_SECONDS:
            raise NotInTime("the keys of the issuer are out of reach")
        if not _is_among(keys, name):
            raise BadToken("its key is unknown")
        return keys[name] if name is not None else next(iter(keys.values()))

    def _fetch(self, asked_at: float, fetched: Future[None]) -> None:
        try:
            keys = self._read()
        except Exception as error:  # noqa: BLE001 - those that are known go on for a while
            logger.warning("issuer_unread", extra={"error": describe(error)})
        else:
            if asked_at > self._known[1]:
                self._known = keys, asked_at
        finally:
            fetched.set_result(None)

    def _read(self) -> Keys:
        if "://" not in self._place:
            read = Path(self._place).read_bytes()
        else:
            ends = time.monotonic() + FETCH_SECONDS
            # The settings check the scheme.
            with urllib.request.urlopen(self._place, timeout=FETCH_SECONDS) as answer:
                if answer.url != self._place:
                    raise ValueError("redirected")
                read = b""
                while len(read) <= MOST_JWKS and (piece := answer.read1(MOST_PIECE)):
                    read += piece
                    if time.monotonic() > ends:  # the time-out is of each piece
                        raise TimeoutError("it comes too slowly")
        if len(read) > MOST_JWKS:
            raise ValueError("too large")
        return {key.key_id: key for key in jwt.PyJWKSet.from_dict(json.loads(read))}


def _is_among(keys: Keys, name: str | None) -> bool:
    return name in keys if name is not None else len(keys) == 1


class TokenReader:
    """Reads JWTs.

    Args:
        settings: `[todo]`, with `jwks`, `issuer` and `audience`.
        keys: of the issuer.
    """

    def __init__(self, settings: TodoSettings, keys: JwkSet) -> None:
        self._settings = settings
        self._keys = keys

    async def person(self, token: str) -> Person:
        """Return whom a JWT stands for.

        Args:
            token: that somebody has sent.

        Raises:
            BadToken: it is not believed.
            NotInTime: the keys of the issuer could not be had.
        """
        claims = await self._claims(token)
        name = Arguments().line("person", _at(claims, self._settings.person_claim), MAX_ACTOR)
        roles = _at(claims, self._settings.roles_claim)
        if isinstance(roles, str):
            roles = roles.split()  # as `scope` has them (RFC 8693, 4.2)
        if not name:
            raise BadToken("it names nobody")
        if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
            raise BadToken("it has no roles")
        return Person(name=name, roles=frozenset(roles))

    async def _claims(self, token: str) -> Mapping[str, Any]:
        if len(token) > MOST_TOKEN:
            raise BadToken("it is too long")
        algorithms = list(self._settings.algorithms)
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in algorithms:
                raise BadToken("its algorithm is not allowed")
            kid = header.get("kid")
            name = kid if isinstance(kid, str) else None
            await self._keys.caught_up(name)
            key = self._keys.key(name)
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

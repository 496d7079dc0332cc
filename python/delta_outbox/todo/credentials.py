"""Recognises people by what they send: an API key, or a JWT of somebody who is trusted."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from delta_outbox.core.errors import OutboxError
from delta_outbox.core.redaction import describe
from delta_outbox.todo.item_thread import KeySource, NotInTime
from delta_outbox.todo.keys import Key, looks_like_key, person_of
from delta_outbox.todo.patience import within
from delta_outbox.todo.people import Person
from delta_outbox.todo.tokens import BadToken, TokenReader

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 2.0  # between two looks whether keys were added or revoked
CATCH_UP_INTERVAL: Final = 0.1  # seconds between two looks whether that was done
MOST_AGE: Final = 10.0  # seconds; keys that were read longer ago let in nobody


class Unrecognised(OutboxError):
    """Whoever asks has sent no key, or one that does not count (any more)."""

    code = "UNAUTHORIZED"
    remedy = "Send `Authorization: Bearer KEY` with a key of `outbox todo keys add`, or a JWT."

    def __init__(self) -> None:
        super().__init__("You are not recognised.")


class KeyRing:
    """The API keys that count now. A thread looks for changes, so that a revoked key is refused
    within ten seconds; where it cannot, nobody is let in.

    Args:
        source: returns where the keys are, None if that is not open now.
        monotonic: seconds.
    """

    def __init__(
        self,
        source: Callable[[], KeySource | None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._monotonic = monotonic
        self._keys: Mapping[str, Key] = {}
        self._read_at = float("-inf")
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="keys", daemon=True)

    def start(self) -> None:
        """Read the keys, and go on looking for changes."""
        self.look()
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._end.set()
        self._thread.join()

    def look(self) -> None:
        """Read the keys."""
        at, source = self._monotonic(), self._source()
        if source is None:
            return
        self._keys = source.current()
        self._read_at = at

    def person(self, token: str) -> Person | None:
        """Return whom a key stands for, None if it does not count.

        Args:
            token: that somebody has sent.

        Raises:
            NotInTime: nobody knows whether it counts still.
        """
        return person_of(token, self._current())

    def holder(self, key_id: str) -> Person | None:
        """Return whom the key of an id stands for, None if it does not count.

        Args:
            key_id: of a key that somebody has shown before.

        Raises:
            NotInTime: nobody knows whether it counts still.
        """
        key = self._current().get(key_id)
        return None if key is None else key.holder

    def _current(self) -> Mapping[str, Key]:
        if self._monotonic() - self._read_at > MOST_AGE:
            raise NotInTime("nobody knows which keys count")
        return self._keys

    async def caught_up(self, seconds: float) -> None:
        """Wait until the keys that are known may let somebody in.

        Args:
            seconds: at most; who comes then is told that nobody knows.
        """
        with contextlib.suppress(TimeoutError):
            await within(seconds, self._caught_up())

    async def _caught_up(self) -> None:
        while self._monotonic() - self._read_at > MOST_AGE:  # noqa: ASYNC110 - a thread reads them
            await asyncio.sleep(CATCH_UP_INTERVAL)

    def _poll(self) -> None:
        while not self._end.wait(POLL_SECONDS):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                logger.warning("keys_unread", extra={"error": describe(error)})


class Credentials:
    """Recognises people.

    Args:
        keys: API keys.
        tokens: reads JWTs; None: none are believed.
        patience: seconds that somebody waits where keys could not be read for long.
    """

    def __init__(
        self, keys: KeyRing, tokens: TokenReader | None, *, patience: float = MOST_AGE
    ) -> None:
        self._keys = keys
        self._tokens = tokens
        self._patience = patience

    async def person(self, token: str) -> Person:
        """Return who has sent a token.

        Args:
            token: an API key or a JWT.

        Raises:
            Unrecognised: nobody that is known.
            NotInTime: nobody can say now.
        """
        found: Person | None = None
        if looks_like_key(token):
            await self._keys.caught_up(self._patience)
            found = self._keys.person(token)
        elif self._tokens is not None:
            with contextlib.suppress(BadToken):
                found = await self._tokens.person(token)
        if found is None:
            raise Unrecognised
        return found

    async def holder(self, key_id: str) -> Person:
        """Return whom an API key stands for that somebody has shown before.

        Args:
            key_id: its id.

        Raises:
            Unrecognised: it does not count any more.
            NotInTime: nobody can say now.
        """
        await self._keys.caught_up(self._patience)
        found = self._keys.holder(key_id)
        if found is None:
            raise Unrecognised
        return found

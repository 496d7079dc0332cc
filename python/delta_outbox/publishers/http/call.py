"""One publish call of the HTTP publisher: keys in order, several at once, each event once."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected, Result, Unknown
from delta_outbox.publishers.http.answer import result_of
from delta_outbox.publishers.http.connection import HttpConnection, Lost, NotConnected
from delta_outbox.publishers.http.message import HttpMessage, http_message
from delta_outbox.publishers.http.settings import HttpSettings
from delta_outbox.publishers.key_chains import key_chains
from delta_outbox.publishers.protocol import EventBatch

_NOT_SENT: Final = NotSent()


class HttpCall:
    """Sends a batch and collects one result per event.

    Args:
        events: the batch.
        settings: of the destination.
        idle: connections of an earlier call; those that can be used again are left there.
    """

    def __init__(
        self, events: EventBatch, *, settings: HttpSettings, idle: list[HttpConnection]
    ) -> None:
        self._events = tuple(events)
        self._deadline = events.deadline
        self._settings = settings
        self._idle = idle
        self._results: list[Result] = [_NOT_SENT] * len(self._events)
        self._waiting = deque(key_chains(self._events))
        self._lock = threading.Lock()
        self._unreachable: str | None = None

    def run(self) -> list[Result]:
        """Send until everything has a result, the deadline comes or nobody can connect."""
        workers = min(self._settings.concurrency, len(self._waiting))
        with ThreadPoolExecutor(max(1, workers), thread_name_prefix="outbox-http") as pool:
            for done in [pool.submit(self._work) for _ in range(workers)]:
                done.result()
        if self._unreachable is not None:
            # Every worker has tried and gone: the rest would only be told the same.
            for chain in self._waiting:
                self._results[chain[0]] = Failed(error=self._unreachable)
        return self._results

    def _work(self) -> None:
        """Send one key after the other; end at the deadline, or when no connection can be had."""
        connection: HttpConnection | None = None
        try:
            while time.monotonic() < self._deadline and (chain := self._next()) is not None:
                for position in chain:
                    if time.monotonic() >= self._deadline:
                        return
                    try:
                        message = http_message(self._events[position], self._settings)
                    except ValueError as error:
                        self._results[position] = Rejected(error=f"it has no form in HTTP: {error}")
                        break
                    try:
                        connection, result = self._attempt(connection, message)
                    except NotConnected as error:
                        self._results[position] = Failed(error=str(error))
                        self._unreachable = str(error)
                        return
                    self._results[position] = result
                    if type(result) is not Delivered:
                        break
        finally:
            if connection is not None and connection.is_reusable():
                with self._lock:
                    self._idle.append(connection)
            elif connection is not None:
                connection.close()

    def _next(self) -> Sequence[int] | None:
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def _attempt(
        self, connection: HttpConnection | None, message: HttpMessage
    ) -> tuple[HttpConnection, Result]:
        """Send one event once.

        A connection from before may have been closed meanwhile. As long as it has taken nothing
        of this request, a new one is no second attempt; once it has, nobody sends it again here.
        """
        timeout = min(self._settings.timeout, self._deadline - time.monotonic())
        until = time.monotonic() + timeout
        is_new = False
        while True:
            if connection is None or not connection.is_reusable():
                if connection is not None:
                    connection.close()
                connection, is_new = self._connection(until)
            try:
                answer = connection.exchange(message, until=until, timeout=timeout)
            except Lost as lost:
                if lost.sent:
                    return connection, Unknown(error=str(lost))
                if time.monotonic() >= self._deadline:
                    return connection, _NOT_SENT  # our time is up, it is nobody's failure
                if is_new or time.monotonic() >= until:
                    return connection, Failed(error=str(lost))
            else:
                return connection, result_of(answer, name=self._settings.target.name)

    def _connection(self, until: float) -> tuple[HttpConnection, bool]:
        while True:
            with self._lock:
                found = self._idle.pop() if self._idle else None
            if found is None:
                return HttpConnection(self._settings, until=until), True
            if found.is_reusable():
                return found, False
            found.close()

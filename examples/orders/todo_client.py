"""A client of `outbox todo serve` over HTTP, with urllib3: what an integrator writes.

Whoever has no answer sends the same again: the server tells a repeat from a second answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import urllib3

LONGEST: Final = 30.0  # seconds, more than the server takes to say that it does not know
NOT_KNOWN: Final = frozenset({429, 500, 503})
"""Nobody knows yet, or the server cannot tell: the same again, later."""
NO_KEY: Final = 401


class KeyRefused(Exception):
    """The server does not know the key."""


@dataclass(frozen=True, kw_only=True)
class OpenItem:
    """An item that waits for an answer.

    Args:
        task_id: the task identifier.
        workflow: whose.
        task: its name in the workflow.
        instance: the order.
        visit: of the task, from 1.
        opened_at: when it was opened.
        expires_at: when it expires; None: never.
    """

    task_id: str
    workflow: str
    task: str
    instance: str
    visit: int
    opened_at: datetime
    expires_at: datetime | None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> OpenItem:
        """Return it as the server lists it.

        Args:
            document: of the list.
        """
        expires_at = document["expires_at"]
        return cls(
            task_id=document["task_id"],
            workflow=document["workflow"],
            task=document["task"],
            instance=document["instance"],
            visit=document["visit"],
            opened_at=datetime.fromisoformat(document["opened_at"]),
            expires_at=expires_at and datetime.fromisoformat(expires_at),
        )


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the server says of an answer.

    Args:
        outcome: what the answer came to; None: it does not count.
        is_repeat: the same was answered before.
        refusal: why it does not count.
    """

    outcome: str | None = None
    is_repeat: bool = False
    refusal: str | None = None


class TodoClient:
    """Asks the server for one person.

    Args:
        url: of the server.
        key: of the person.
        at_once: requests at most.
    """

    def __init__(self, url: str, key: str, *, at_once: int) -> None:
        self._url = url
        self._pool = urllib3.PoolManager(
            maxsize=at_once,
            block=True,
            retries=False,
            timeout=LONGEST,
            headers={"authorization": f"Bearer {key}"},
        )

    def waiting(self) -> Iterator[OpenItem]:
        """Yield the open items of the person; none where the server does not answer.

        Raises:
            KeyRefused: the key does not count.
        """
        page, pages = 1, 1
        while page <= pages:
            found = self._asked("GET", f"/items?limit=200&page={page}")
            if found is None or found.status != 200:
                return
            document = found.json()
            yield from map(OpenItem.of, document["items"])
            page, pages = page + 1, document["pages"]

    def answer(self, item: OpenItem, data: Mapping[str, Any]) -> Told | None:
        """Answer an item, and return what the server says; None: nobody knows.

        Args:
            item: that is answered.
            data: the answer.

        Raises:
            KeyRefused: the key does not count.
        """
        path = f"/items/{item.workflow}/{item.task}/{item.task_id}/answer"
        found = self._asked("POST", path, json=data)
        if found is None or found.status in NOT_KNOWN:
            return None
        document = found.json()
        if found.status == 200:
            return Told(outcome=document["outcome"], is_repeat=document["is_repeat"])
        return Told(refusal=document["error"]["code"])

    def _asked(self, method: str, path: str, **sent: Any) -> urllib3.BaseHTTPResponse | None:
        try:
            found = self._pool.request(method, self._url + path, redirect=False, **sent)
        except urllib3.exceptions.HTTPError:
            return None
        if found.status == NO_KEY:
            raise KeyRefused(self._url)
        return found

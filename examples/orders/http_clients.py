"""Clients of the third parties over HTTP, with urllib3.

What a task may promise rests on what its client says of a call. Nothing is sent twice: urllib3's
own retries and redirects are off. A call is `CertainlyNot` done only where no connection was made,
or where the answer means it; whatever else goes wrong is raised as it is, and nobody knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import urllib3
from order_creation import Order
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from delta_outbox.railway import CertainlyNot, FinallyRefused

NOT_NOW: Final = frozenset({401, 403, 404, 409, 429})
"""A token or an address that somebody mends, another request with the key, too many requests."""
NEVER: Final = frozenset({400, 413, 422})
"""The same request gets the same answer."""


class Unclear(Exception):
    """An answer that leaves it open whether the third party has acted, such as a 500."""


class Api:
    """A third party that speaks JSON over HTTP.

    Args:
        table: `[third_parties.NAME]` of outbox.toml, with `url` and `token`.
        timeout: for the connection, and for each silence after it.
    """

    def __init__(self, table: Mapping[str, Any], timeout: timedelta) -> None:
        token = str(table["token"])
        if not token.isascii() or not token.isprintable():
            # The error that it would end in much later shows it.
            raise ValueError("token: it has a character that no header can carry")
        self._url = str(table["url"]).rstrip("/")
        self._headers = {"authorization": f"Bearer {token}"}
        self._timeout = urllib3.Timeout(total=timeout.total_seconds())
        self._pool = urllib3.PoolManager()

    def post(self, path: str, body: Mapping[str, Any], *, key: str | None = None) -> Any:
        """Act, and return the answer.

        Args:
            path: below the URL.
            body: what is asked for, made of the trigger and the task identifier alone.
            key: the task identifier, for a third party that takes keys.

        Raises:
            CertainlyNot: the third party has not acted.
            FinallyRefused: the same, and asking again will not help.
            Exception: nobody knows.
        """
        headers = {} if key is None else {"idempotency-key": key}
        return self._answer("POST", path, headers=headers, json=body)

    def find(self, path: str, reference: str) -> Any | None:
        """Return what there is with our reference, None if there certainly is nothing.

        "Nothing" is a list without entries: a 404 may be a wrong address.

        Args:
            path: below the URL.
            reference: the task identifier.

        Raises:
            Exception: there is no answer.
        """
        found = self._answer("GET", path, fields={"reference": reference})
        return found[0] if found else None

    def _answer(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **sent: Any
    ) -> Any:
        try:
            answer = self._pool.request(
                method,
                self._url + path,
                headers={**self._headers, **(headers or {})},
                timeout=self._timeout,
                retries=False,
                redirect=False,
                **sent,
            )
        except (NewConnectionError, ConnectTimeoutError):
            raise CertainlyNot("no connection") from None
        # The status alone: what stands in an answer may be anything, and errors are kept.
        if answer.status in NOT_NOW:
            raise CertainlyNot(answer.status)
        if answer.status in NEVER:
            raise FinallyRefused(answer.status)
        if not 200 <= answer.status < 300:
            raise Unclear(answer.status)
        return answer.json() if answer.data else None


class HttpShop:
    """Our own register of orders."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def register(self, key: str, order: Order) -> None:
        """Register an order."""
        body = {"order_id": order.order_id, "customer": order.customer, "products": order.products}
        self.api.post("/orders", body, key=key)


class HttpWarehouse:
    """The warehouse, which finds reservations and releases by the reference that they came with."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def reserve(self, key: str, products: tuple[str, ...]) -> list[str]:
        """Reserve what there is, and return what is missing."""
        body = {"reference": key, "products": products}
        return _missing(self.api.post("/reservations", body))

    def reservation(self, key: str) -> list[str] | None:
        """Return what is missing in a reservation, None if there is none."""
        found = self.api.find("/reservations", key)
        return None if found is None else _missing(found)

    def release(self, key: str, order_id: str) -> bool:
        """Release what is reserved for an order; False if there was nothing."""
        body = {"reference": key, "order_id": order_id}
        return bool(self.api.post("/releases", body)["found"])

    def released(self, key: str) -> bool | None:
        """Return what a release has found, None if there was no release."""
        found = self.api.find("/releases", key)
        return None if found is None else bool(found["found"])


class HttpInvoicing:
    """The invoicing service."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def create(self, key: str, products: tuple[str, ...], cents: int) -> str:
        """Create an invoice, and return its number."""
        body = {"products": products, "cents": cents}
        return str(self.api.post("/invoices", body, key=key)["number"])

    def void(self, key: str, order_id: str) -> bool:
        """Void the invoice of an order; False if there was none."""
        return bool(self.api.post("/voids", {"order_id": order_id}, key=key)["found"])


class HttpTerminal:
    """The gateway of the old payment terminal."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def ask(self, key: str, customer: str, cents: int) -> None:
        """Show the customer what to pay."""
        self.api.post("/requests", {"customer": customer, "cents": cents})


class HttpPayments:
    """The payment provider."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def capture(self, key: str, order_id: str) -> None:
        """Take the money that is held."""
        self.api.post("/captures", {"order_id": order_id}, key=key)


class HttpMail:
    """The mail service."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def tell(self, key: str, customer: str, text: str) -> None:
        """Send a mail."""
        self.api.post("/mails", {"customer": customer, "text": text}, key=key)


def _missing(answer: Any) -> list[str]:
    return [str(one) for one in answer["missing"]]

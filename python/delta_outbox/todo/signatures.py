"""Recognises third parties by the signatures of what they send, as their webhooks have them."""

from __future__ import annotations

import base64
import hmac
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from delta_outbox.core.errors import BadSettings, OutboxError
from delta_outbox.core.settings import SignatureSettings, unset_in
from delta_outbox.publishers.http.signature import read_secret, signatures
from delta_outbox.todo.people import Person
from delta_outbox.workflow_engine.items import ItemType

logger = logging.getLogger(__name__)

TOLERANCE: Final = 300  # seconds that a time of sending may be from now
_SECONDS: Final = re.compile(r"[0-9]{1,12}")


class NotSigned(OutboxError):
    """A message has no signature that counts: none, a wrong one, or one that is too old."""

    code = "NOT_SIGNED"
    remedy = (
        f"Sign the body as it is sent, by the scheme and a secret of `[todo.signatures]`, within "
        f"{TOLERANCE} seconds; or send `Authorization: Bearer KEY`."
    )

    def __init__(self, why: str) -> None:
        """Keep for the log why it does not count."""
        super().__init__("You are not recognised: there is no signature that counts.")
        self.why = why


class Signature(ABC):
    """A scheme by which a third party signs its messages to items of one type.

    Args:
        settings: a table of `[todo.signatures]`.

    Raises:
        BadSettings: a secret is missing, or breaks a rule of the scheme.
    """

    def __init__(self, settings: SignatureSettings) -> None:
        for unset in unset_in(list(settings.secrets)):
            raise unset.error()
        self._settings = settings

    def sender(self, type_: ItemType) -> Person:
        """Return as whom the third party answers.

        Args:
            type_: of the items that it may answer, whatever their roles.
        """
        return Person(name=self._settings.person, of=(type_.workflow, type_.task))

    @abstractmethod
    def check(self, headers: Mapping[str, str], body: bytes, *, now: datetime) -> None:
        """Demand that a message was signed.

        Args:
            headers: of the request; case does not matter.
            body: as it came.
            now: the time.

        Raises:
            NotSigned: it was not, or too long ago.
        """

    @abstractmethod
    def message_id(self, headers: Mapping[str, str], data: Mapping[str, Any]) -> str | None:
        """Return the id that the third party gives a message however often it sends it, if it does.

        Args:
            headers: of the request.
            data: that its body holds.
        """


class StandardWebhook(Signature):
    """Standard Webhooks 1.0: HMAC-SHA256 over id, time and body."""

    def __init__(self, settings: SignatureSettings) -> None:
        super().__init__(settings)
        try:
            self._keys = [read_secret(one) for one in settings.secrets]
        except ValueError as error:
            raise BadSettings(f"A secret of the scheme standard must be {error}.") from None

    def check(self, headers: Mapping[str, str], body: bytes, *, now: datetime) -> None:
        """Demand that a message was signed."""
        id_ = headers.get("webhook-id", "")
        sent_at = headers.get("webhook-timestamp", "")
        sent = headers.get("webhook-signature", "").split()
        if not id_ or not _SECONDS.fullmatch(sent_at):
            raise NotSigned("no id or no time")
        try:
            ours = signatures(self._keys, id_=id_, timestamp=int(sent_at), body=body).split()
        except ValueError:
            raise NotSigned("the id could pass for another one") from None
        _demand_one(sent, ours)
        _demand_recent(sent_at, now)

    def message_id(self, headers: Mapping[str, str], data: Mapping[str, Any]) -> str | None:
        """Return the id of a message."""
        return headers["webhook-id"]


class StripeSignature(Signature):
    """Stripe's scheme: `t=SECONDS,v1=HEX`, HMAC-SHA256 over time and body."""

    def check(self, headers: Mapping[str, str], body: bytes, *, now: datetime) -> None:
        """Demand that a message was signed."""
        parts = [one.strip().split("=", 1) for one in _header(headers, "stripe-signature")]
        pairs = [(one[0], one[1]) for one in parts if len(one) == 2]
        times = [value for name, value in pairs if name == "t"]
        if len(times) != 1 or not _SECONDS.fullmatch(times[0]):
            raise NotSigned("no time")
        signed = times[0].encode() + b"." + body
        ours = [_digest(secret, signed, "sha256").hex() for secret in self._settings.secrets]
        _demand_one([value for name, value in pairs if name == "v1"], ours)
        _demand_recent(times[0], now)

    def message_id(self, headers: Mapping[str, str], data: Mapping[str, Any]) -> str | None:
        """Return the id of an event."""
        found = data.get("id")
        return found if isinstance(found, str) and found else None


class PlainHmac(Signature):
    """The HMAC of the body in a header of the third party's own. No time is signed, so a message
    counts however old it is: what it repeats is known by its data.
    """

    def check(self, headers: Mapping[str, str], body: bytes, *, now: datetime) -> None:
        """Demand that a message was signed."""
        settings = self._settings
        assert settings.header is not None
        digests = [_digest(secret, body, settings.algorithm) for secret in settings.secrets]
        is_hex = settings.encoding == "hex"
        ours = [one.hex() if is_hex else base64.b64encode(one).decode() for one in digests]
        found = [one.strip() for one in _header(headers, settings.header)]
        sent = [
            one.removeprefix(settings.prefix) for one in found if one.startswith(settings.prefix)
        ]
        _demand_one([one.lower() if is_hex else one for one in sent], ours)

    def message_id(self, headers: Mapping[str, str], data: Mapping[str, Any]) -> str | None:
        """Return None: there is no id that is signed."""
        return None


_SCHEMES: Final[Mapping[str, type[Signature]]] = {
    "standard": StandardWebhook,
    "stripe": StripeSignature,
    "hmac": PlainHmac,
}


def signatures_of(
    settings: Mapping[str, SignatureSettings], types: Collection[ItemType]
) -> dict[tuple[str, str], Signature]:
    """Return the schemes by workflow and task.

    Args:
        settings: `[todo.signatures]`.
        types: of items that there are.

    Raises:
        BadSettings: a secret is missing or breaks a rule, or there is no such type.
    """
    known = {f"{one.workflow}/{one.task}": (one.workflow, one.task) for one in types}
    unknown = sorted(settings.keys() - known.keys())
    if unknown:
        raise BadSettings(
            f"`todo.signatures` must name types of items. Got: {unknown[0]!r}, "
            f"known: {', '.join(sorted(known)) or 'none'}.",
            remedy="Name the workflow and its To-Do task, as in the path of its answers.",
        )
    return {known[name]: _SCHEMES[one.scheme](one) for name, one in settings.items()}


def _header(headers: Mapping[str, str], name: str) -> Sequence[str]:
    return headers.get(name, "").split(",")


def _digest(secret: str, signed: bytes, algorithm: str) -> bytes:
    return hmac.new(secret.encode(), signed, algorithm).digest()


def _demand_one(sent: Iterable[str], ours: Iterable[str]) -> None:
    """Demand that one of the signatures that were sent is one of ours."""
    expected = [one.encode() for one in ours]
    for found in sent:
        # All are compared: which secret it was is nobody's business.
        if sum([hmac.compare_digest(found.encode(), one) for one in expected]):
            return
    raise NotSigned("no signature is right")


def _demand_recent(sent_at: str, now: datetime) -> None:
    """Demand that a message was sent just now; what was recorded on the way is of no use later."""
    if abs(now.timestamp() - int(sent_at)) > TOLERANCE:
        raise NotSigned("it was sent too long ago, or a clock is wrong")

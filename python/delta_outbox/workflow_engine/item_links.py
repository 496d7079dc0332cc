"""Signed links: who has no key gets to one item, and to nothing else."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from delta_outbox.core.errors import BadSettings

LEAST_SECRET: Final = 32  # characters
PATH: Final = "/todo/link"


class Signer:
    """Signs texts for one purpose: what is signed for one counts for no other.

    Args:
        secret: of the settings, `[todo] link_secret`, at least 32 characters.
        purpose: what the signatures are for.

    Raises:
        BadSettings: the secret is too short.
    """

    def __init__(self, secret: str, purpose: str) -> None:
        if len(secret) < LEAST_SECRET:
            raise BadSettings(
                f"[todo] link_secret: must have at least {LEAST_SECRET} characters. "
                f"Got: {len(secret)}.",
                remedy="Make one with `openssl rand -base64 32`, and name it by ${ENV}.",
            )
        self._key = hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).digest()

    def sign(self, *parts: str) -> str:
        """Return the signature of some texts; no others have it, however they are divided.

        Args:
            parts: the texts.
        """
        whole = b"".join(len(part.encode()).to_bytes(8, "big") + part.encode() for part in parts)
        digest = hmac.new(self._key, whole, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def has_signed(self, signature: str, *parts: str) -> bool:
        """Say whether a signature is of some texts, in a time that does not depend on it.

        Args:
            signature: as somebody has sent it.
            parts: the texts.
        """
        return hmac.compare_digest(self.sign(*parts).encode(), signature.encode())


class Links:
    """Makes and checks links to items. A link ends with its item: who shows the item asks for that.

    Args:
        secret: of the settings, `[todo] link_secret`, at least 32 characters.

    Raises:
        BadSettings: the secret is too short.
    """

    def __init__(self, secret: str) -> None:
        self._signer = Signer(secret, "link")

    def link(self, task_id: str, until: datetime | None) -> str:
        """Return the link to an item, from the slash behind the host on.

        Args:
            task_id: of the item.
            until: when the link ends, with its zone; None: with the item.
        """
        seconds = "" if until is None else str(int(until.timestamp()))
        signature = self._signer.sign(task_id, seconds)
        return f"{PATH}?{urlencode({'id': task_id, 'until': seconds, 'signature': signature})}"

    def opens(self, task_id: str, until: str, signature: str, *, now: datetime) -> bool:
        """Say whether a link opens an item.

        Args:
            task_id: of the item, as the link names it.
            until: seconds since 1970, as the link names them; empty: no end of its own.
            signature: of the link.
            now: the moment, with its zone.
        """
        if not self._signer.has_signed(signature, task_id, until):
            return False
        return not until or now.astimezone(UTC).timestamp() < int(until)

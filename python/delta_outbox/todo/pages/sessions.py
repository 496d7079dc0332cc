"""Who looks at a page: what the browser keeps of that, signed, and the tokens of its forms."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from delta_outbox.workflow_engine.item_links import Signer

COOKIE: Final = "outbox_todo"
LIFE: Final = timedelta(hours=12)  # of a session
MOST_RECEIPTS: Final = 10  # that are kept, the newest; a cookie has room for 4,096 bytes


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What came of an answer that this browser has sent.

    Args:
        item: a digest of the task identifier.
        came: `answered`, `before`, `faster` or `late`.
        outcome: of the item, as it was known then; empty if none was.
    """

    item: str
    came: str
    outcome: str


@dataclass(frozen=True, kw_only=True)
class Session:
    """What is known of a browser.

    Args:
        name: of the session, random.
        began_at: seconds since 1970.
        key: the id of the API key that somebody has signed in with; empty if nobody has.
        receipts: of answers, the newest first.
    """

    name: str
    began_at: int
    key: str = ""
    receipts: tuple[Receipt, ...] = ()

    def with_receipt(self, task_id: str, came: str, outcome: str) -> Session:
        """Return the session after an answer.

        Args:
            task_id: of the item.
            came: what came of it.
            outcome: of the item.
        """
        made = Receipt(item=_digest(task_id), came=came, outcome=outcome[:80])
        others = tuple(one for one in self.receipts if one.item != made.item)
        return replace(self, receipts=(made, *others)[:MOST_RECEIPTS])

    def receipt(self, task_id: str) -> Receipt | None:
        """Return what came of the answer to an item; None if this browser has sent none.

        Args:
            task_id: of the item.
        """
        item = _digest(task_id)
        return next((one for one in self.receipts if one.item == item), None)


class Sessions:
    """Makes and reads sessions. Nothing is kept here, so any server of the same secret reads them.

    Args:
        secret: of the settings, `[todo] link_secret`, at least 32 characters.

    Raises:
        BadSettings: the secret is too short.
    """

    def __init__(self, secret: str) -> None:
        self._signer = Signer(secret, "session")
        self._forms = Signer(secret, "form")

    def begin(self, now: datetime, *, key: str = "") -> Session:
        """Return a new session.

        Args:
            now: the moment, with its zone.
            key: the id of the API key that somebody has signed in with.
        """
        return Session(name=secrets.token_urlsafe(16), began_at=int(now.timestamp()), key=key)

    def text(self, session: Session) -> str:
        """Return what the browser keeps of a session."""
        body = json.dumps(asdict(session), separators=(",", ":")).encode()
        # Without the signs at its end, for which a cookie would need quotes.
        coded = base64.urlsafe_b64encode(body).decode().rstrip("=")
        return f"{coded}.{self._signer.sign(coded)}"

    def read(self, text: str, now: datetime) -> Session | None:
        """Return a session; None if it is over, or not of our making.

        Args:
            text: what the browser has sent.
            now: the moment, with its zone.
        """
        coded, _, signature = text.partition(".")
        if not self._signer.has_signed(signature, coded):
            return None
        body = json.loads(base64.urlsafe_b64decode(f"{coded}=="))
        receipts = tuple(Receipt(**one) for one in body.pop("receipts"))
        session = Session(**body, receipts=receipts)
        age = now.timestamp() - session.began_at
        return session if age < LIFE.total_seconds() else None

    def token(self, session: Session) -> str:
        """Return the token of the forms of a session."""
        return self._forms.sign(session.name)

    def is_token(self, token: str, session: Session) -> bool:
        """Say whether a form was made for a session: no page of somebody else knows its token.

        Args:
            token: as the form has sent it.
            session: of the browser that has sent it.
        """
        return self._forms.has_signed(token, session.name)


def _digest(task_id: str) -> str:
    return hashlib.sha256(task_id.encode()).hexdigest()[:24]

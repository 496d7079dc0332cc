"""What is wrong, as an answer of HTTP. No payload, no trace, nothing of what came."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from delta_outbox.core.errors import OutboxError
from delta_outbox.core.redaction import describe, without_text
from delta_outbox.todo.credentials import Unrecognised
from delta_outbox.todo.desk import BadQuestion, NoSuchItem
from delta_outbox.todo.item_thread import NotInTime
from delta_outbox.todo.limits import HeadersTooLarge, NoJson, NotJsonType, TooLarge, TooSlow
from delta_outbox.todo.routes import TooMany
from delta_outbox.todo.signatures import NotSigned
from delta_outbox.workflow_engine.four_eyes import SamePerson
from delta_outbox.workflow_engine.item_answers import (
    AnsweredAlready,
    AnsweredTooLate,
    KeyUsedAgain,
    UnexpectedOutcome,
)
from delta_outbox.workflow_engine.item_decisions import BadAnswer, UndecidedAnswer
from delta_outbox.workflow_engine.item_holds import HeldByAnother, NotOpen

logger = logging.getLogger(__name__)

STATUSES: Final[Mapping[type[OutboxError], int]] = {
    BadQuestion: 400,
    Unrecognised: 401,
    NotSigned: 401,
    SamePerson: 403,
    NoSuchItem: 404,
    TooSlow: 408,
    KeyUsedAgain: 422,  # which is an AnsweredAlready
    AnsweredAlready: 409,
    HeldByAnother: 409,
    AnsweredTooLate: 410,
    NotOpen: 410,
    TooLarge: 413,
    NotJsonType: 415,
    BadAnswer: 422,
    NoJson: 422,
    UnexpectedOutcome: 422,
    TooMany: 429,
    HeadersTooLarge: 431,
    NotInTime: 503,
}
INTERNAL: Final = 500
_INTERNAL: Final = {
    "code": "INTERNAL_ERROR",
    "message": "The server cannot answer this now.",
    "remedy": "Try again later, and tell whoever runs it: its log says more.",
}
_UNDECIDED: Final = {
    "code": UndecidedAnswer.code,
    "message": "The code that decides about this item has failed; the item stays open.",
    "remedy": "Try again later, and tell whoever runs it: its log says more.",
}
_CONTRACT: Final = "Give the data as the contract of the item has it."


def failure(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Return status, body and headers of an error.

    Args:
        error: that was raised.
    """
    status = next((code for kind, code in STATUSES.items() if isinstance(error, kind)), INTERNAL)
    if status == INTERNAL or not isinstance(error, OutboxError):
        is_ours = isinstance(error, OutboxError)
        why = describe(error) if is_ours else without_text(error)
        logger.error("request_failed", extra={"error": why})
        return (
            INTERNAL,
            {"error": _UNDECIDED if isinstance(error, UndecidedAnswer) else _INTERNAL},
            {},
        )
    told: dict[str, Any] = error.as_dict()
    headers = {}
    if isinstance(error, BadAnswer):
        told["remedy"] = _CONTRACT
        told["problems"] = [{"pointer": one.pointer, "rule": one.rule} for one in error.problems]
    if isinstance(error, AnsweredAlready):
        if not isinstance(error, KeyUsedAgain):
            told["remedy"] = "Nothing is to be done."
        told["outcome"] = error.outcome
    if isinstance(error, HeldByAnother):
        told["assigned_to"] = error.holder
    if isinstance(error, NotOpen):
        told["remedy"] = "Nothing is to be done."
    if isinstance(error, AnsweredTooLate):
        told["remedy"] = "Nothing is to be done; the answer is on record."
    if isinstance(error, NotInTime):
        logger.warning("not_in_time", extra={"why": error.why})
    if isinstance(error, NotInTime | TooMany):
        headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, NotSigned):
        logger.info("signature_refused", extra={"why": error.why})
    if isinstance(error, Unrecognised | NotSigned):
        headers["WWW-Authenticate"] = "Bearer"
    return status, {"error": told}, headers

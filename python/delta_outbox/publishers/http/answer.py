"""What an HTTP answer says about one event."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

from delta_outbox.lifecycle.results import Delivered, Failed, JsonText, Rejected, Result

_TRY_AGAIN: Final = frozenset({408, 425, 429})
_SECONDS: Final = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpAnswer:
    """The part of an answer that matters; its body is never kept.

    Args:
        status: the code, 200 or above.
        retry_after: value of the header, as it came.
    """

    status: int
    retry_after: str | None = None

    @property
    def is_success(self) -> bool:
        """Return whether the receiver has taken the event."""
        return 200 <= self.status < 300


def result_of(answer: HttpAnswer, *, name: str) -> Result:
    """Return what an answer means.

    Args:
        answer: of the receiver.
        name: host and port, for the sentence.
    """
    status = answer.status
    if answer.is_success:
        return Delivered(receipt=JsonText(f'{{"status":{status}}}'))
    if 400 <= status < 500 and status not in _TRY_AGAIN:
        return Rejected(error=f"{name} answered {status}")
    wait = retry_after_seconds(answer.retry_after)
    if 300 <= status < 400:
        # The settings are wrong, not the event: it must not die before somebody can look.
        message = (
            f"{name} answered {status}: redirects are not followed, correct `url` or the route"
        )
        return Failed(error=message, retry_after=wait)
    return Failed(error=f"{name} answered {status}", retry_after=wait)


def retry_after_seconds(value: str | None) -> float | None:
    """Return how long a receiver asks to wait, None if it does not say so legibly.

    Args:
        value: of the header `Retry-After`: seconds or a date (RFC 9110, section 10.2.3).
    """
    if value is None:
        return None
    if _SECONDS.fullmatch(value):
        return float(value)
    try:
        # A date that has passed is below zero, and `Failed` makes that none.
        return parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None

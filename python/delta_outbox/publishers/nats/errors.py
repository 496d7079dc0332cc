"""What the answer of a stream says about one event."""

from __future__ import annotations

import json
from typing import Final

from delta_outbox.lifecycle.results import Delivered, Failed, JsonText, Rejected, Result, Unknown

_TOO_LARGE: Final = frozenset({10054, 10097})  # for the stream: the message, its headers
# The server says no before it stores anything, for a reason that time or an operator mends.
_FAILED: Final = frozenset(
    {
        10002,  # limits of the account
        10008,  # JetStream is unavailable for the moment
        10009,  # not the leader
        10023,  # resources
        10028,  # memory
        10039,  # no JetStream for the account
        10047,  # storage
        10060,  # another stream has the subject than the one expected
        10070,  # wrong last message id
        10071,  # wrong last sequence
        10076,  # no JetStream
        10109,  # a sealed stream
        10118,  # the stream is offline
    }
)
_NOT_STORED: Final = 10077
_FULL: Final = ("maximum messages", "maximum bytes", "maximum messages per subject")


def result_of(data: bytes, *, status: str | None, subject: str) -> Result:
    """Return what an answer says.

    Args:
        data: the answer.
        status: of the server's own, without data; 503: nobody has the subject.
        subject: that the event was published to.
    """
    if status == "503":
        return Failed(
            error=f"no stream has the subject {subject!r}: create one, or correct the route"
        )
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        error = answer.get("error")
        if isinstance(error, dict):
            return _meaning(error)
        stream, seq = answer.get("stream"), answer.get("seq")
        if isinstance(stream, str) and isinstance(seq, int):
            duplicate = "true" if answer.get("duplicate") is True else "false"
            return Delivered(
                receipt=JsonText(
                    f'{{"stream":{json.dumps(stream)},"seq":{seq},"duplicate":{duplicate}}}'
                )
            )
    # A service that listens on the subject has answered; whether a stream has it is not known.
    return Unknown(error="the answer is none of a stream: does something else answer there?")


def _meaning(error: dict[str, object]) -> Result:
    code, message = error.get("err_code"), str(error.get("description", ""))[:200]
    sentence = f"JetStream: {message} ({code})"
    if code in _TOO_LARGE:
        return Rejected(error=sentence)
    if code in _FAILED or (code == _NOT_STORED and message.startswith(_FULL)):
        return Failed(error=sentence)
    return Unknown(error=sentence)

"""What an error of the SDK or an answer of SQS says about events."""

from __future__ import annotations

import math
import ssl
from typing import Any, Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ProxyConnectionError,
    SSLError,
)

from delta_outbox.core.redaction import describe, scrub
from delta_outbox.lifecycle.results import Failed, Rejected, Result, Unknown

_UNSENT: Final = (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError)
# SQS calls them errors of the sender, and time or an operator mends them.
_MENDABLE: Final = (
    "accessdenied",
    "nonexistentqueue",
    "queuedoesnotexist",
    "throttl",
    "overlimit",
    "toomanyrequests",
    "kms",
    "expired",
    "signature",
    "token",
    "security",
    "authoriz",
    "optinrequired",
    "requestlimit",
)
# Something about one message; of a batch it is not said which.
_OF_A_MESSAGE: Final = (
    "batchrequesttoolong",
    "invalidparametervalue",
    "invalidmessagecontents",
    "missingparameter",
    "invalidattributevalue",
    "unsupportedoperation",
)
_SERVER_ERROR: Final = 500
_UNAVAILABLE: Final = 503  # the one error of a server that says that it did not begin (RFC 9110)


def result_of_entry(code: str, text: str, *, sender_fault: bool) -> Result:
    """Return what a failed entry of a batch means: SQS says that it did not enqueue the message.

    Args:
        code: of SQS.
        text: of SQS.
        sender_fault: whether SQS says that the message is to blame.
    """
    message = f"SQS: {text or 'it failed'} ({code})"
    if sender_fault and not _is_one_of(code, _MENDABLE):
        return Rejected(error=message)
    return Failed(error=message)


def result_of_request(error: Exception) -> Result:
    """Return what an error of a whole request means for its events.

    Args:
        error: what the SDK raised.
    """
    if isinstance(error, ClientError):
        return _result_of_answer(error)
    if isinstance(error, SSLError):
        refused = isinstance(_innermost(error), ssl.SSLCertVerificationError)
        refused = refused or "CERTIFICATE_VERIFY_FAILED" in str(error)
        return (Failed if refused else Unknown)(error=f"SQS: {scrub(error)}")
    if isinstance(error, _UNSENT):
        return Failed(error=f"SQS cannot be reached: {scrub(error)}")
    if isinstance(error, BotoCoreError) and not isinstance(error, HTTPClientError):
        # No credentials, no region and the like: found before anything is sent.
        return Failed(error=f"SQS: {describe(error)}")
    return Unknown(error=f"SQS did not answer: {describe(error)}")


def is_of_a_message(error: Exception) -> bool:
    """Return whether a request was refused because of one of its messages, as a whole.

    Args:
        error: what the SDK raised.
    """
    return (
        isinstance(error, ClientError)
        and _status(error) < _SERVER_ERROR
        and _is_one_of(_code(error), _OF_A_MESSAGE)
    )


def _result_of_answer(error: ClientError) -> Result:
    status, code = _status(error), _code(error)
    message = f"SQS: {error.response.get('Error', {}).get('Message') or 'no reason'} ({code})"
    if status >= _SERVER_ERROR and status != _UNAVAILABLE:
        # It broke on the way, perhaps behind the messages; a gateway knows even less.
        return Unknown(error=f"{message}, HTTP status {status}")
    if is_of_a_message(error):
        return Rejected(error=message)
    return Failed(error=message, retry_after=_retry_after(error))


def _is_one_of(code: str, words: tuple[str, ...]) -> bool:
    return any(word in code.lower() for word in words)


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "no code"))


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _retry_after(error: ClientError) -> float | None:
    metadata: Any = error.response.get("ResponseMetadata", {})
    try:
        seconds = float(metadata.get("HTTPHeaders", {})["retry-after"])
    except (KeyError, ValueError):  # absent, or a date
        return None
    return seconds if math.isfinite(seconds) else None


def _innermost(error: BaseException) -> BaseException:
    inner: Any = error
    while True:
        nested = getattr(inner, "kwargs", {}).get("error") or getattr(inner, "reason", None)
        if not isinstance(nested, BaseException):
            return inner if isinstance(inner, BaseException) else error
        inner = nested

"""What an event becomes in SQS, such that payload and headers can be had back as they were."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from delta_outbox.publishers.protocol import Event

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import (
        MessageAttributeValueTypeDef,
        SendMessageBatchRequestEntryTypeDef,
    )

HEADERS_ATTRIBUTE: Final = "outbox-headers"
ENCODING_ATTRIBUTE: Final = "outbox-payload-encoding"
EMPTY_BODY: Final = "-"  # SQS has no empty message
MAX_ATTRIBUTES: Final = 10
FIFO_SUFFIX: Final = ".fifo"
_STRING: Final = "String"
# SQS replaces any other character, without an error.
_FORBIDDEN: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME: Final = re.compile(r"(?!(?:aws|amazon)\.)[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*", re.IGNORECASE)
_MAX_NAME: Final = 256
_ID: Final = re.compile(r"[A-Za-z0-9!-/:-@\[-`{-~]{1,128}")  # for groups and de-duplication


@dataclass(frozen=True, kw_only=True)
class SqsMessage:
    """A message without its place in a batch.

    Args:
        body: the payload as text.
        attributes: what the consumer gets beside it.
        group, deduplication: ids of a FIFO queue, else None.
        size: bytes as SQS counts them.
    """

    body: str
    attributes: Mapping[str, str]
    group: str | None
    deduplication: str | None
    size: int

    def entry(self, number: int) -> SendMessageBatchRequestEntryTypeDef:
        """Return the message as an entry of a batch.

        Args:
            number: by which the answer names it.
        """
        attributes: dict[str, MessageAttributeValueTypeDef] = {
            name: {"DataType": _STRING, "StringValue": value}
            for name, value in self.attributes.items()
        }
        made: SendMessageBatchRequestEntryTypeDef = {
            "Id": str(number),
            "MessageBody": self.body,
            "MessageAttributes": attributes,
        }
        if self.group is not None and self.deduplication is not None:
            made["MessageGroupId"] = self.group
            made["MessageDeduplicationId"] = self.deduplication
        return made


def message_of(event: Event) -> SqsMessage:
    """Return the message.

    Args:
        event: to deliver; its route is the name of a queue.
    """
    body, encoding = _body(event.payload)
    attributes = _attributes(event.transport_headers(), encoding)
    size = len(body.encode()) + sum(
        len(name.encode()) + len(_STRING) + len(value.encode())
        for name, value in attributes.items()
    )
    fifo = event.route.endswith(FIFO_SUFFIX)
    return SqsMessage(
        body=body,
        attributes=attributes,
        group=fifo_id(event.delivery_id if event.key is None else event.key) if fifo else None,
        deduplication=fifo_id(event.delivery_id) if fifo else None,
        size=size,
    )


def fifo_id(text: str) -> str:
    """Return a text as SQS takes it for groups and de-duplication: itself, or its SHA-256.

    Args:
        text: a key or the id of a delivery.
    """
    if _ID.fullmatch(text):
        return text
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _body(payload: bytes) -> tuple[str, str | None]:
    """Return the payload as text that SQS leaves alone, and how to have it back."""
    if not payload:
        return EMPTY_BODY, "empty"
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        text = None
    if text is None or _FORBIDDEN.search(text):
        return base64.b64encode(payload).decode(), "base64"
    return text, None


def _attributes(headers: Mapping[str, str | None], encoding: str | None) -> dict[str, str]:
    """Return one attribute per header, or one with all headers as JSON where that is impossible."""
    ours = {} if encoding is None else {ENCODING_ATTRIBUTE: encoding}
    if len(headers) + len(ours) <= MAX_ATTRIBUTES and all(map(_fits, headers, headers.values())):
        return {name: value for name, value in headers.items() if value} | ours
    # JSON in ASCII: null, empty texts and control characters have a form, whatever SQS allows.
    return {HEADERS_ATTRIBUTE: json.dumps(headers, separators=(",", ":"))} | ours


def _fits(name: str, value: str | None) -> bool:
    return (
        bool(value)
        and value is not None
        and len(name) <= _MAX_NAME
        and _NAME.fullmatch(name) is not None
        and name not in (HEADERS_ATTRIBUTE, ENCODING_ATTRIBUTE)
        and _FORBIDDEN.search(value) is None
    )

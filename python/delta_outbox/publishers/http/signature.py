"""Signatures of Standard Webhooks 1.0: HMAC-SHA256 over id, time and body."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from typing import Final

PREFIX: Final = "whsec_"
_KEY_BYTES: Final = range(24, 65)  # as the specification demands
# `id.timestamp.body` is cut at its dots by whoever attacks: an id with something in it that reads
# as a time could pass for a shorter id with another body.
_TIME_WITHIN: Final = re.compile(r"\.[0-9]{10}(?:\.|$)")


def read_secret(text: str) -> bytes:
    """Return the key behind a secret.

    Args:
        text: `whsec_` and base64.

    Raises:
        ValueError: the rule that it breaks, worded to follow "must be"; never the secret.
    """
    rule = f"{PREFIX} followed by 24 to 64 random bytes in base64"
    encoded = text.removeprefix(PREFIX)
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(rule) from None
    if encoded == text or len(key) not in _KEY_BYTES:
        raise ValueError(rule)
    return key


def signatures(keys: Iterable[bytes], *, id_: str, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature`: one signature for each key, in their order.

    Args:
        keys: several while a secret is being replaced.
        id_: value of `webhook-id`.
        timestamp: value of `webhook-timestamp`, seconds since 1970.
        body: what is sent.

    Raises:
        ValueError: the id could pass for another one.
    """
    if _TIME_WITHIN.search(id_):
        raise ValueError(
            "its id has a part of ten digits after a dot, so that a signature would not tell "
            "where the id ends"
        )
    signed = b"%s.%d." % (id_.encode(), timestamp) + body
    return " ".join(_signature(key, signed) for key in keys)


def _signature(key: bytes, signed: bytes) -> str:
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode('ascii')}"


def read_secrets(value: object) -> Sequence[bytes]:
    """Return the keys of the setting `secrets`, the newest first.

    Args:
        value: a secret or a list of them.

    Raises:
        ValueError: one sentence about the first that breaks a rule, without showing it.
    """
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise ValueError("http: `secrets` must be a list of secrets, each whsec_ and base64.")
    keys = []
    for number, secret in enumerate(given, start=1):
        try:
            keys.append(read_secret(secret))
        except ValueError as error:
            raise ValueError(f"http: secret {number} of `secrets` must be {error}.") from None
    if len(set(keys)) < len(keys):
        raise ValueError("http: `secrets` must not repeat a secret.")
    return keys

"""What a value of the settings must be: the sentence a person reads, and the check behind it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of one setting.

    Args:
        sentence: what the value must be, after its name.
        accept: whether it is.
        convert: to the type that is kept.
        is_secret: what came is not shown.
    """

    sentence: str
    accept: Callable[[object], bool]
    convert: Callable[[Any], object]
    is_secret: bool = False


def whole(low: int, high: int) -> Rule:
    """Return the rule of a whole number.

    Args:
        low: the smallest.
        high: the largest.
    """
    # bool is an int in Python; `batch_size = true` is a mistake all the same.
    return Rule(
        sentence=f"must be a whole number from {low} to {high}",
        accept=lambda value: type(value) is int and low <= value <= high,
        convert=int,
    )


def number(low: float, high: float, *, of: str) -> Rule:
    """Return the rule of a number.

    Args:
        low: the smallest.
        high: the largest.
        of: its unit.
    """
    return Rule(
        sentence=f"must be a number of {of} from {low:g} to {high:g}",
        accept=lambda value: type(value) in (int, float) and low <= value <= high,  # type: ignore[operator]
        convert=float,
    )


def seconds(low: float, high: float) -> Rule:
    """Return the rule of a duration.

    Args:
        low: the shortest.
        high: the longest.
    """
    return number(low, high, of="seconds")


def _is_pattern(value: object) -> bool:
    try:
        return isinstance(value, str) and value != "" and re.compile(value) is not None
    except (re.error, OverflowError, RecursionError):
        return False


PATTERN: Final = Rule(
    sentence="must be a regular expression in Python's syntax", accept=_is_pattern, convert=str
)
TRUTH: Final = Rule(
    sentence="must be true or false", accept=lambda value: type(value) is bool, convert=bool
)

RELAY: Final[Mapping[str, Rule]] = {
    "batch_size": whole(1, 1_000_000),
    "batch_bytes": whole(1, 1024**3),
    "claims_in_flight": whole(1, 64),
    "poll_seconds": seconds(0.01, 3600),
    "refresh_seconds": seconds(1, 86_400),
    "max_lanes": whole(1, 1024),
    "clock_skew_seconds": seconds(0, 7 * 86_400),
    "parallelism": whole(1, 4096),
    "tracing": TRUTH,
}
APPEND: Final[Mapping[str, Rule]] = {
    "max_payload_bytes": whole(1, 1024**3),
    "max_header_bytes": whole(0, 1024**3),
    "event_type_pattern": PATTERN,
    "horizon_days": whole(1, 3650),
}
STORAGE: Final[Mapping[str, Rule]] = {"single_driver": TRUTH}
LIMITS: Final[Mapping[str, Rule]] = {
    "workers": whole(1, 4096),
    "rate_per_second": number(0.001, 1_000_000, of="events"),
    "rate_per_key_per_second": number(0.001, 1_000_000, of="events"),
    "breaker_failures": whole(1, 1_000_000),
    "breaker_seconds": seconds(0.1, 86_400),
}
"""What a destination of every type may say about itself; no publisher sees it."""

_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")

WORKFLOWS: Final[Mapping[str, Rule]] = {
    "modules": Rule(
        sentence='must be a list of module names, such as ["orders.workflows"]',
        accept=lambda value: (
            isinstance(value, list)
            and all(isinstance(one, str) and _MODULE.fullmatch(one) for one in value)
        ),
        convert=tuple,
    ),
    "hosts": whole(1, 256),
}


def _text(sentence: str, pattern: str, *, is_secret: bool = False) -> Rule:
    """Return the rule of a text that matches a pattern as a whole."""
    compiled = re.compile(pattern, re.DOTALL)
    return Rule(
        sentence=sentence,
        accept=lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None,
        convert=lambda value: value,  # it may say where it came from
        is_secret=is_secret,
    )


SHORTEST_SECRET: Final = 16  # characters; a shorter one is found by trying
JWT_ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""With a public key. One with a shared secret would take the public key for that secret."""
_FILE: Final = _text("must be the path of a file", r".+")

TODO: Final[Mapping[str, Rule]] = {
    "host": _text("must be an address or a name of this machine", r"[A-Za-z0-9.:_-]{1,253}"),
    "port": whole(0, 65_535),
    "tls_certificate": _FILE,
    "tls_key": _FILE,
    "behind_proxy": TRUTH,
    "answer_seconds": seconds(1, 300),
    "rate_per_second": number(0.1, 10_000, of="requests"),
    "jwks": _text(
        "must be a file, or an address with https (http only to 127.0.0.1 and localhost)",
        r"https://.+|http://(127\.0\.0\.1|localhost)(:\d+)?/.*|(?![a-z]+://).+",
    ),
    "issuer": _text("must be the `iss` of the tokens, a text", r".+"),
    "audience": _text("must be the `aud` of the tokens, a text", r".+"),
    "algorithms": Rule(
        sentence=f"must be a list of algorithms among {', '.join(JWT_ALGORITHMS)}",
        accept=lambda value: (
            isinstance(value, list) and value != [] and all(one in JWT_ALGORITHMS for one in value)
        ),
        convert=tuple,
    ),
    "person_claim": _text("must be the name of a claim", r".+"),
    "roles_claim": _text("must be the name of a claim", r".+"),
    "link_secret": _text("must be a text of at least 32 characters", r".{32,}", is_secret=True),
}


def _one_of(*names: str) -> Rule:
    return _text(f"must be one of {', '.join(names)}", "|".join(map(re.escape, names)))


SIGNATURE: Final[Mapping[str, Rule]] = {
    "scheme": _one_of("standard", "stripe", "hmac"),
    "person": _text("must be 1 to 100 printable characters of ASCII", r"[!-~]([ -~]{0,98}[!-~])?"),
    "secrets": Rule(
        sentence="must be a list of secrets, each of at least 16 characters",
        accept=lambda value: (
            isinstance(value, list)
            and value != []
            and all(isinstance(one, str) and len(one) >= SHORTEST_SECRET for one in value)
        ),
        convert=tuple,
        is_secret=True,
    ),
    "header": _text("must be the name of a header", r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}"),
    "encoding": _one_of("hex", "base64"),
    "algorithm": _one_of("sha256", "sha384", "sha512"),
    "prefix": _text("must be a text of at most 50 characters", r"[!-~]{0,50}"),
}
"""Of a table in `[todo.signatures]`."""
QUEUE: Final[Mapping[str, Rule]] = {
    "group": _text("must be 1 to 200 printable characters of ASCII", r"[!-~]{1,200}"),
    "hold_seconds": seconds(0, 86_400),
    "dead_letter_topic": _text("must be the name of a topic", r"[A-Za-z0-9._-]{1,249}"),
}
"""Of `[todo.kafka]`, beside what is the Kafka client's."""
OF_HMAC: Final = ("header", "encoding", "algorithm", "prefix")

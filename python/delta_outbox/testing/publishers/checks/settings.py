"""Checks of what is asked before anything is claimed: `validate` and `probe`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from delta_outbox.core.secrets import secrets_of
from delta_outbox.testing.demands import holds, same
from delta_outbox.testing.publishers.adapter import Capability
from delta_outbox.testing.publishers.check import Scenario
from delta_outbox.testing.publishers.connections import connecting
from delta_outbox.testing.publishers.leaks import shows_none
from delta_outbox.testing.publishers.stage import Stage

_UNKNOWN = "kit_no_such_password"
_SECRET = "kit-secret-9d1f6a2c"
_LONGEST = 500  # characters of a sentence


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What came of a question: the error if one was raised, how long it took, and connections."""

    error: Exception | None
    seconds: float
    connections: int


@dataclass(frozen=True, kw_only=True)
class Validated:
    """What was seen: good settings, and the same with one that does not exist."""

    good: Asked
    unknown: Asked
    secrets: tuple[str, ...]


def _ask(stage: Stage, question: Callable[[], object]) -> Asked:
    before, started = stage.adapter.connections(), time.monotonic()
    error = None
    with connecting() as seen:
        try:
            question()
        except Exception as raised:  # noqa: BLE001 - what it raises is what is looked at
            error = raised
    seconds = time.monotonic() - started
    connections = stage.adapter.connections() - before
    return Asked(error=error, seconds=seconds, connections=max(len(seen), connections))


def _validated(stage: Stage) -> Validated:
    publisher: Any = stage.adapter.publisher
    good = dict(stage.adapter.settings)
    return Validated(
        good=_ask(stage, lambda: publisher.validate(good)),
        unknown=_ask(stage, lambda: publisher.validate({**good, _UNKNOWN: _SECRET})),
        secrets=(_SECRET, *secrets_of(good)),
    )


VALIDATED = Scenario("settings", _validated, Capability.VALIDATE)


@VALIDATED.check()
def good_settings_are_accepted(seen: Validated) -> None:
    """`validate` has nothing to say about good settings."""
    same(None, seen.good.error, "what validate raised")


@VALIDATED.check()
def an_unknown_setting_is_refused(seen: Validated) -> None:
    """`validate` refuses a setting that does not exist: one sentence that names it."""
    error = seen.unknown.error
    holds(isinstance(error, ValueError | TypeError), f"expected a ValueError, saw {error!r:.80}")
    message = str(error)
    holds(
        message.strip() and "\n" not in message and len(message) <= _LONGEST,
        "it is not one sentence",
    )
    holds(_UNKNOWN in message, "the sentence does not name the setting")


@VALIDATED.check()
def a_refusal_of_settings_shows_no_secret(seen: Validated) -> None:
    """The sentence about settings shows the value of none that may be secret."""
    shows_none(seen.secrets, [str(seen.unknown.error)], "validate")


@VALIDATED.check()
def validate_does_not_connect(seen: Validated) -> None:
    """`validate` connects to nothing."""
    same(0, max(seen.good.connections, seen.unknown.connections), "connections")


@dataclass(frozen=True, kw_only=True)
class Probed:
    """What came of a probe, and the seconds after which it must have ended."""

    asked: Asked
    limit: float


def _probe(stage: Stage, seconds: float) -> Probed:
    publisher: Any = stage.adapter.publisher
    asked = _ask(stage, lambda: publisher.probe(stage.adapter.settings, seconds))
    return Probed(asked=asked, limit=seconds + stage.adapter.grace_seconds)


def _well(stage: Stage) -> Probed:
    return _probe(stage, stage.adapter.answer_seconds)


def _away(stage: Stage) -> Probed:
    with stage.stopped():
        return _probe(stage, stage.adapter.silence_seconds)


def _silent(stage: Stage) -> Probed:
    seconds = stage.adapter.silence_seconds
    with stage.frozen(seconds):
        return _probe(stage, seconds)


WELL = Scenario("probe", _well, Capability.PROBE)
AWAY = Scenario("probe while stopped", _away, Capability.PROBE, Capability.STOP)
SILENT = Scenario("probe while frozen", _silent, Capability.PROBE, Capability.FREEZE)


@WELL.check()
def a_probe_is_content_with_an_answer(seen: Probed) -> None:
    """`probe` raises nothing while the destination answers."""
    same(None, seen.asked.error, "what probe raised")


@AWAY.check()
def a_probe_notices_that_nobody_listens(seen: Probed) -> None:
    """`probe` raises ConnectionError within its time-out while nobody listens."""
    _noticed(seen)


@SILENT.check()
def a_probe_notices_silence(seen: Probed) -> None:
    """`probe` raises ConnectionError within its time-out while nothing is answered."""
    _noticed(seen)


def _noticed(seen: Probed) -> None:
    error = seen.asked.error
    holds(isinstance(error, ConnectionError), f"expected a ConnectionError, saw {error!r:.80}")
    seconds = seen.asked.seconds
    holds(seconds <= seen.limit, f"it took {seconds:.1f} s, at most {seen.limit:.1f} s expected")

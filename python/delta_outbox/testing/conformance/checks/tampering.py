"""Somebody rewrites what is on record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from delta_outbox.testing.conformance.adapter import Capability, Change, NewEvent, Noticed
from delta_outbox.testing.conformance.check import Scenario
from delta_outbox.testing.conformance.stage import Stage
from delta_outbox.testing.demands import holds

Tampered = Mapping[Change, Noticed]


def play(stage: Stage) -> Tampered:
    """Put something on record and rewrite it in every way.

    Args:
        stage: where.
    """
    names = ("one", "two")
    stage.append(*(NewEvent(event_id=name) for name in names))
    stage.end(stage.take("relay-1", *names))
    return stage.store.tamper()


TAMPERING: Final = Scenario("tampering", play, Capability.LOGS)


def _noticed(seen: Tampered, change: Change) -> None:
    holds(change in seen, f"{change} was not tried")
    holds(seen[change] is not Noticed.NO, f"{change} of a log goes unnoticed")


@TAMPERING.check()
def an_update_is_noticed(seen: Tampered) -> None:
    """UPDATE on a log is refused, or found by the next check."""
    _noticed(seen, Change.UPDATE)


@TAMPERING.check()
def a_delete_is_noticed(seen: Tampered) -> None:
    """DELETE on a log is refused, or found by the next check."""
    _noticed(seen, Change.DELETE)


@TAMPERING.check()
def a_merge_is_noticed(seen: Tampered) -> None:
    """MERGE into a log is refused, or found by the next check."""
    _noticed(seen, Change.MERGE)


@TAMPERING.check()
def an_overwrite_is_noticed(seen: Tampered) -> None:
    """INSERT OVERWRITE of a log is refused, or found by the next check."""
    _noticed(seen, Change.INSERT_OVERWRITE)


@TAMPERING.check()
def a_truncate_is_noticed(seen: Tampered) -> None:
    """TRUNCATE of a log is refused, or found by the next check."""
    _noticed(seen, Change.TRUNCATE)

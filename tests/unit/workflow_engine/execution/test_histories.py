"""What the log says of earlier attempts of a task."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.core.tables import Tables
from delta_outbox.lifecycle.endings import Attempted, Counters, decide_ending
from delta_outbox.lifecycle.policy import DeliveryPolicy
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.railway.algorithms.history import History, Limits
from delta_outbox.railway.algorithms.steps import AttemptEnding
from delta_outbox.testing.conformance.clock import ManualClock
from delta_outbox.workflow_engine.execution.histories import Histories, Transition, history_of

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
LIMITS = Limits(settles=timedelta(seconds=60))
ENDINGS = st.builds(
    AttemptEnding,
    reason=st.sampled_from([Reason.FAILED, Reason.UNKNOWN, Reason.RELEASED]),
    pause=st.none() | st.timedeltas(timedelta(0), timedelta(hours=1)),
    settle=st.booleans(),
    last=st.booleans(),
)


@given(st.lists(ENDINGS, max_size=5))
def test_the_log_says_what_a_relay_knows(endings: list[AttemptEnding]) -> None:
    """A relay that takes a task over reads the history that the one before it had in memory."""
    history, rows, now = History(triggered_at=NOW), [], NOW
    for ending in endings:
        now += timedelta(minutes=1)
        rows.append(Transition(to_state=State.CLAIMED, reason=Reason.CLAIMED, occurred_at=now))
        history = history.claimed(now)
        now += timedelta(seconds=1)
        history = history.ended(ending, LIMITS, now)
        on_record = decide_ending(
            counters=Counters(attempt=1),
            result=Attempted(reason=ending.reason, is_last=ending.last),
            claim_size=1,
            policy=DeliveryPolicy(event_type="*"),
            now=now,
            started_at=NOW,
            jitter=0.0,
        )
        rows.append(
            Transition(
                to_state=on_record.to_state,
                reason=on_record.reason,
                occurred_at=now,
                receipt=on_record.receipt,
            )
        )
    found = history_of(rows, triggered_at=NOW)
    for name in ("first_claim_at", "attempts", "executions", "unsure_at", "stopped", "released"):
        assert getattr(history, name) == getattr(found, name), name


def test_an_attempt_without_a_word_may_have_acted() -> None:
    """A lease that ran out, and a crash, are attempts of which nobody knows what they did."""
    then = NOW + timedelta(minutes=2)
    for reason in (Reason.LEASE_EXPIRED, Reason.CRASHED):
        found = history_of(
            [
                Transition(to_state=State.CLAIMED, reason=Reason.CLAIMED, occurred_at=NOW),
                Transition(to_state=State.PENDING, reason=reason, occurred_at=then),
            ],
            triggered_at=NOW,
        )
        assert (1, 1, then) == (found.attempts, found.executions, found.unsure_at)


def test_an_attempt_that_somebody_else_has_ended_is_read_from_the_log() -> None:
    """What a relay knows of its attempt does not count where its claim was ended as one without a
    word: the log says that it may have acted, and whoever claims it must say the same.
    """
    asked: list[str] = []

    class Log(Histories):
        def _read(self, ids: list[str], *, since: datetime) -> dict[str, list[Transition]]:
            asked.extend(ids)
            return {}

    def delivery(**counters: int) -> pa.Table:
        none = dict.fromkeys(("attempts", "publish_attempts", "crashes"), 0)
        row = {"event_id": "pay-1", "created_at": NOW, **none, **counters}
        return pa.Table.from_pylist([row])

    histories = Log(None, Tables(schema="s"), clock=ManualClock(NOW))  # type: ignore[arg-type]
    for reason in (Reason.FAILED, Reason.UNKNOWN, Reason.RELEASED):
        failures = int(reason is not Reason.RELEASED)
        ended = delivery(attempts=1, publish_attempts=failures)
        known = History(triggered_at=NOW, attempts=failures)
        histories.keep(delivery(), reason, known)
        assert known == histories.of(ended, {"pay-1": NOW})["pay-1"]
        assert [] == asked
        for other in (delivery(attempts=1, crashes=1), delivery(attempts=2)):
            histories.keep(delivery(), reason, known)
            histories.of(other, {"pay-1": NOW})
            assert ["pay-1"] == asked
            asked.clear()

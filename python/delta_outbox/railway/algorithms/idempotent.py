"""The same key, the task identifier, with every attempt as long as the third party remembers it."""

from __future__ import annotations

from delta_outbox.railway.algorithms.attempt_endings import conclude, give_up
from delta_outbox.railway.algorithms.shared_steps import act, be_sure, begin, end, look_up
from delta_outbox.railway.algorithms.steps import (
    Algorithm,
    Attempt,
    NoAnswer,
    ReadRecord,
    Record,
    Rules,
)


def idempotent(rules: Rules) -> Algorithm:
    """Make one attempt.

    Args:
        rules: of the task.
    """
    record = yield from begin()
    if record is None:
        return
    if record.over:
        yield from last_attempt(rules, record)
        return
    if record.unsure and not record.key_alive:
        if not rules.can_look_up:
            yield from end(give_up(record))
            return
        record = yield from be_sure(record)
        if record is None:
            return
    yield from act(rules, record)


def last_attempt(rules: Rules, record: Record) -> Algorithm:
    """Find out whether the task was done, and end it.

    A look-up is asked first, because it cannot act; then the key, while it is remembered.

    Args:
        rules: of the task.
        record: as this attempt has seen it.
    """
    if record.unsure and rules.can_look_up:
        looked = yield from look_up(record)
        if looked is None:
            return
        # While the look-up went unanswered the key may have been forgotten: read anew.
        record = (yield from ReadRecord().ask()) if isinstance(looked, NoAnswer) else looked
    if record.unsure and record.key_alive:
        result = yield from Attempt().ask()
        yield from end(conclude(result, rules, record, None))
        return
    yield from end(give_up(record))

"""One attempt at a time, and each first asks whether an earlier one has acted."""

from __future__ import annotations

from delta_outbox.railway.algorithms.attempt_endings import give_up
from delta_outbox.railway.algorithms.shared_steps import act, be_sure, begin, end
from delta_outbox.railway.algorithms.steps import Algorithm, Rules


def pessimistic_lock(rules: Rules) -> Algorithm:
    """Make one attempt.

    Args:
        rules: of the task.
    """
    record = yield from begin()
    if record is None:
        return
    if record.over and not record.unsure:
        yield from end(give_up(record))
        return
    record = yield from be_sure(record)
    if record is None:
        return
    if record.over:
        yield from end(give_up(record))
        return
    yield from act(rules, record)

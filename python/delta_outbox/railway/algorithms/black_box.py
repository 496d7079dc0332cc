"""No key, no look-up: after an attempt that may have acted, the compromise says what follows."""

from __future__ import annotations

from delta_outbox.railway.algorithms.attempt_endings import give_up
from delta_outbox.railway.algorithms.shared_steps import act, begin, end
from delta_outbox.railway.algorithms.steps import Algorithm, Rules


def black_box(rules: Rules) -> Algorithm:
    """Make one attempt.

    Args:
        rules: of the task.
    """
    record = yield from begin()
    if record is None:
        return
    if record.over or (record.unsure and not rules.may_act_again(record.executions)):
        yield from end(give_up(record))
        return
    yield from act(rules, record)

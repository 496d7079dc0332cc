"""The algorithm of each category, as a generator that yields every step it needs.

The same generators run in the kit for authors and in the exhaustive exploration; they are written
to run in the relay too. They know neither Spark nor threads nor clocks: each asks for the lock
first, and whoever runs it writes the lock, lets its lease run out and waits as the ending says.

- attempt_endings: how an attempt ends, by its result, and what the task waits for then
- black_box: no key and no look-up; after an unsure attempt the compromise decides
- history: what the attempts so far say: is the key alive, have their requests settled
- idempotent: the same key again, while it is remembered
- optimistic_lock: two steps, of which the first can be undone
- pessimistic_lock: one attempt at a time, and each looks up first
- shared_steps: the lock at the beginning, the look-up, the end
- steps: what an algorithm may ask for, and what it can be answered
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from delta_outbox.railway.algorithms.black_box import black_box
from delta_outbox.railway.algorithms.idempotent import idempotent
from delta_outbox.railway.algorithms.optimistic_lock import optimistic_lock
from delta_outbox.railway.algorithms.pessimistic_lock import pessimistic_lock
from delta_outbox.railway.algorithms.steps import Algorithm, Rules
from delta_outbox.railway.tasks import Category

__all__ = ["ALGORITHMS"]

ALGORITHMS: Mapping[Category, Callable[[Rules], Algorithm]] = {
    Category.IDEMPOTENT: idempotent,
    Category.PESSIMISTIC_LOCK: pessimistic_lock,
    Category.OPTIMISTIC_LOCK: optimistic_lock,
    Category.BLACK_BOX: black_box,
}

"""The algorithm of each category, as a generator that yields every step it needs.

The same generators run in the kit for authors and in the exhaustive exploration; they are written
to run in the relay too.
They know neither Spark nor threads nor clocks.
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

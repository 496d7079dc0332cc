"""Deliberately wrong stores, one defect each: on each of them some check must fail.

They are what shows that a check can fail at all. Each is the in-memory store with one thing done
differently, and is named for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Final

from delta_outbox.testing.conformance.memory import MemoryStore, MemoryStores
from delta_outbox.testing.conformance.run import Verdict, all_checks, run
from delta_outbox.testing.conformance.wrong import (
    claims,
    contents,
    counting,
    endings,
    leases,
    operations,
    orders,
    records,
    retrieval,
)

_MODULES: Final = (
    retrieval,
    claims,
    endings,
    counting,
    leases,
    orders,
    operations,
    contents,
    records,
)


def _stores(module: ModuleType) -> list[type[MemoryStore]]:
    return [
        found
        for found in vars(module).values()
        if isinstance(found, type)
        and not found.__name__.startswith("_")
        and issubclass(found, MemoryStore)
        and found.__module__ == module.__name__
    ]


WRONG: Final[tuple[type[MemoryStore], ...]] = tuple(
    store for module in _MODULES for store in _stores(module)
)


@cache
def catchers() -> Mapping[str, Sequence[str]]:
    """Return each check and the wrong stores on which it fails, by assertion, not by a crash."""
    found: dict[str, list[str]] = {check.name: [] for check in all_checks()}
    for store in WRONG:
        for name, result in run(MemoryStores(store, store.__name__)).items():
            if result.verdict is Verdict.FAILED:
                found[name].append(store.__name__)
    return found

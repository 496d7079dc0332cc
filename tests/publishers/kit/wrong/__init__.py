"""Deliberately wrong publishers, one defect each: on each of them its checks must fail.

They are what shows that a check can fail at all. Each is the right publisher with one thing done
differently, and is named for that.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from tests.publishers.kit.right import RightPublisher
from tests.publishers.kit.wrong import answering, asked, living, order, sending, trouble

_MODULES: Final = (answering, sending, order, trouble, living, asked)


def _publishers(module: ModuleType) -> list[type[RightPublisher]]:
    return [
        found
        for found in vars(module).values()
        if isinstance(found, type)
        and not found.__name__.startswith("_")
        and issubclass(found, RightPublisher)
        and found.__module__ == module.__name__
    ]


WRONG: Final = tuple(one for module in _MODULES for one in _publishers(module))

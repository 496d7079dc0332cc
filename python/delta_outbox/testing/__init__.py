"""Kits for those who write against delta-outbox; nothing here is imported by the product.

`conformance` is for stores, `publishers` for publishers, `workflows` for workflows. Each is
imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delta_outbox.testing import conformance, publishers, workflows

__all__ = ["conformance", "publishers", "workflows"]


def __getattr__(name: str) -> object:
    """Import the kit that is asked for first.

    Args:
        name: of `__all__`.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return __all__

"""The relay: takes eligible events, publishes them, and appends what happened.

- claim: claims, from the choice to the ending
- destinations: what each destination may be asked now
- plan: what may be claimed next
- publish: how a claim is sent
- relay: the loop
- summary: a run: for how long, and what it did

A worker imports modules of this package, and needs the relay itself for nothing: it is imported
when somebody asks for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delta_outbox.relay.relay import Relay
    from delta_outbox.relay.summary import Mode, Summary

__all__ = ["Mode", "Relay", "Summary"]

_HOMES = {"Mode": "summary", "Relay": "relay", "Summary": "summary"}


def __getattr__(name: str) -> object:
    """Import what is asked for first.

    Args:
        name: of `__all__`.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

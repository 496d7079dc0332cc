"""The record of transitions of the in-memory store: a list that notices when it is rewritten."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from delta_outbox.testing.conformance.adapter import Change, Noticed, Step


class Journal:
    """Steps in the order in which they happened, and a digest over all that were appended."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._digest = _digest(())

    def append(self, step: Step) -> None:
        """Put a step at the end.

        Args:
            step: the step.
        """
        self.steps.append(step)
        self._digest = _next(self._digest, step)

    def is_whole(self) -> bool:
        """Say whether nothing but appends has happened."""
        return _digest(self.steps) == self._digest

    def tamper(self) -> Mapping[Change, Noticed]:
        """Try every change on the list itself, one after the other, and undo it."""
        found = {}
        for change, rewrite in _REWRITES.items():
            before = list(self.steps)
            self.steps[:] = rewrite(before)
            found[change] = Noticed.NO if self.is_whole() else Noticed.FOUND
            self.steps[:] = before
        return found


def _next(digest: bytes, step: Step) -> bytes:
    return hashlib.sha256(digest + repr(step).encode()).digest()


def _digest(steps: Sequence[Step]) -> bytes:
    digest = b""
    for step in steps:
        digest = _next(digest, step)
    return digest


def _changed(step: Step) -> Step:
    return replace(step, to_state=f"not {step.to_state}")


_REWRITES: Final[Mapping[Change, Callable[[list[Step]], list[Step]]]] = {
    Change.UPDATE: lambda steps: [_changed(steps[0]), *steps[1:]],
    Change.DELETE: lambda steps: steps[1:],
    Change.MERGE: lambda steps: [_changed(steps[0]), *steps[1:], steps[0]],
    Change.INSERT_OVERWRITE: lambda steps: steps[-1:],
    Change.TRUNCATE: lambda _: [],
}

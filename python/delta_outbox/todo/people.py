"""Who asks, and which items that person may see and answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody, or a system, that was recognised.

    Args:
        name: one line, as commands record it.
        roles: that the person has.
        only: the one item that a signed link opens, whatever the roles; None: those of the roles.
        of: workflow and task whose items a third party answers, whatever the roles.
    """

    name: str
    roles: frozenset[str] = frozenset()
    only: str | None = None
    of: tuple[str, str] | None = None

    def may_answer(self, task_id: str, roles: Collection[str], *, of: tuple[str, str]) -> bool:
        """Say whether the person may see and answer an item.

        Args:
            task_id: of the item.
            roles: that may answer it.
            of: its workflow and task.
        """
        if self.only is not None:
            return self.only == task_id
        if self.of is not None:
            return self.of == of
        return not self.roles.isdisjoint(roles)

"""How many attempts may be claimed: what this machine has room for, shared by third parties."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from delta_outbox.railway.tasks import Category
from delta_outbox.workflow_engine.hosts.call import TaskFacts


@dataclass(frozen=True, kw_only=True, slots=True)
class HostLimits:
    """How much of this machine hosts may take.

    Args:
        hosts: processes for black boxes, one for each that runs.
        shared_hosts: processes for all other calls; up to as many more are worn, and still at work.
        in_loops: attempts at once that are `async def`.
        in_threads: attempts at once that are not.
        calls: after which a host is renewed.
    """

    hosts: int = 4
    shared_hosts: int = 2
    in_loops: int = 1000
    in_threads: int = 64
    calls: int = 5000


class Places:
    """Counts the attempts that run. A third party takes as many places as it leaves free.

    So a slow one leaves room to the others, however many are slow (the dynamic threshold of
    Choudhury and Hahne, 1998). Where there is no other it takes all.

    Args:
        limits: of this machine.
        tasks: by `workflow/task`.
    """

    def __init__(self, limits: HostLimits, tasks: Mapping[str, TaskFacts]) -> None:
        self._most = {"alone": limits.hosts, "loop": limits.in_loops, "thread": limits.in_threads}
        self._taken: dict[str, dict[str, int]] = {kind: {} for kind in self._most}
        for task in tasks.values():
            self._taken[kind_of(task)][task.third_party] = 0
        self._lock = threading.Lock()

    def room(self, task: TaskFacts) -> int:
        """Return how many more attempts of a task can be taken.

        Args:
            task: whose third party counts.
        """
        all_taken = self._taken[kind_of(task)]
        free = self._most[kind_of(task)] - sum(all_taken.values())
        taken = all_taken[task.third_party]
        if len(all_taken) == 1:
            return free
        return max((free - taken) // 2, int(not taken and free > 0))

    def take(self, task: TaskFacts) -> bool:
        """Take a place, and say whether there was one.

        Args:
            task: that is attempted.
        """
        with self._lock:
            if not self.room(task):
                return False
            self._taken[kind_of(task)][task.third_party] += 1
            return True

    def give(self, task: TaskFacts) -> None:
        """Give a place back.

        Args:
            task: that was attempted.
        """
        with self._lock:
            self._taken[kind_of(task)][task.third_party] -= 1


def kind_of(task: TaskFacts) -> str:
    """Return where attempts of a task run: `alone`, in a `loop`, or in a `thread`.

    Args:
        task: to be attempted.
    """
    if task.category == Category.BLACK_BOX:
        return "alone"
    return "loop" if task.asynchronous else "thread"

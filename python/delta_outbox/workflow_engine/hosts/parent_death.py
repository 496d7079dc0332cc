"""Ends a host, and what code of authors has started in it, when the parent of the host dies.

No signal handler runs after `kill -9`, so the kernel is asked to send a signal to the children. It
knows children only: those of a host are ended by a guard, a child of the host that waits for the
host's death and kills its process group. Who leaves the group (`setsid`) gets away.

macOS has no such request. There a host ends by the end of file on its pipe, and its group with
it, unless code that holds the interpreter's lock keeps it from reading.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterable
from typing import Final

HAS_DEATH_SIGNAL: Final = sys.platform == "linux"
_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_OF_GUARD: Final = signal.SIGUSR1


def die_with(parent: int) -> None:
    """Let this process be killed when its parent dies; end it if that has happened already.

    The kernel takes the *thread* that has started this process for its parent.

    Args:
        parent: its process id.
    """
    if not _told_of_death(parent, signal.SIGKILL):
        os._exit(1)


def leave_guard(pipes: Iterable[int]) -> int | None:
    """Leave a child behind that kills the group of this process when this process is dead.

    To be called while there is one thread, by a process that leads its group.

    Args:
        pipes: descriptors that the guard must not keep open.

    Returns:
        Its process id; None where it is not needed.
    """
    if not HAS_DEATH_SIGNAL:
        return None
    host = os.getpid()
    # Blocked before the fork: whenever it comes, it waits until it is asked for.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {_OF_GUARD})
    if guard := os.fork():
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return guard
    try:
        os.setsid()
        for descriptor in (0, 1, 2, *pipes):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        if _told_of_death(host, _OF_GUARD):
            signal.sigwait({_OF_GUARD})
        os.killpg(host, signal.SIGKILL)
    finally:
        os._exit(0)


def is_left(child: int) -> bool:
    """Wait for what a dead host has left to this process, and say whether some of it still runs.

    Where this process is the first one of a container, orphans are handed to it, and stay there as
    zombies until it waits for them. Elsewhere they are no children of it.

    Args:
        child: a process id, or that of a process group with a minus sign.
    """
    try:
        while os.waitpid(child, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _told_of_death(parent: int, number: signal.Signals) -> bool:
    """Ask for a signal at the death of the parent, and say whether the parent is alive still."""
    if HAS_DEATH_SIGNAL:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number))
    return os.getppid() == parent  # it may have died before the kernel was asked

"""Ends a command on Ctrl-C or SIGTERM with a clear error, wherever it is.

Python raises KeyboardInterrupt wherever its main thread is. Libraries turn it into errors of their
own or swallow it, and where a process has just been started nobody knows it yet. So an interrupt
is also remembered, and for moments in which it must not come it is held back. Where Python itself
swallows it, in a callback of its collector, it comes again a moment later.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Final

INTERRUPTED: Final = 130  # exit code: 128 + SIGINT
ENDING: Final = (signal.SIGINT, signal.SIGTERM)

AGAIN_AFTER: Final = 0.05  # seconds: a callback of the collector is over by then

MESSAGE: Final = {
    "code": "INTERRUPTED",
    "message": "Interrupted.",
    "remedy": "Run the command again; what was done stays done.",
}
"""What a command that was interrupted prints below the key `error`."""


@dataclass(kw_only=True)
class Interruption:
    """Whether a command was told to end.

    Args:
        came: it was, whatever became of the KeyboardInterrupt.
        ends_in_order: it was told so before, does what it does then, and is not to be hurried.
        by: the signal that told so last.
    """

    came: bool = False
    ends_in_order: bool = False
    by: int = signal.SIGINT


_now: list[Interruption] = []


def ends_in_order() -> None:
    """Say that the command, if this process runs one, has been told to end and is ending."""
    for interruption in _now:
        interruption.ends_in_order = True


def in_main_thread() -> bool:
    """Say whether this is the thread in which Python allows handlers."""
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def interruptible(*, until_end: bool = False) -> Iterator[Interruption]:
    """Let SIGINT and SIGTERM raise KeyboardInterrupt for a block, and remember that one came.

    A signal that the process was started to ignore (`nohup`, a job in the background of a shell
    script) stays ignored. Outside the main thread nothing is installed.

    Args:
        until_end: of the process: at the end of the block it has said what it had to say, and
            nothing interrupts it any more.
    """
    interruption = Interruption()

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        if interruption.ends_in_order:
            return
        interruption.came, interruption.by = True, number
        raise KeyboardInterrupt

    if not in_main_thread():
        yield interruption
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, handle)
    _now.append(interruption)
    try:
        with _coming_again(interruption):
            yield interruption
    finally:
        _now.remove(interruption)
        for number, handler in before.items():
            if until_end:
                signal.signal(number, signal.SIG_IGN)
            elif handler is not None:  # None: it was not installed from Python
                signal.signal(number, handler)


@contextlib.contextmanager
def _coming_again(interruption: Interruption) -> Iterator[None]:
    """Let what Python would print as ignored come again."""
    before = sys.unraisablehook
    main = threading.get_ident()

    def again() -> None:
        if interruption in _now:
            # Not `raise_signal`: what the main thread waits for would have to end first.
            signal.pthread_kill(main, interruption.by)

    def hook(swallowed: sys.UnraisableHookArgs) -> None:
        if swallowed.exc_type is not KeyboardInterrupt:
            before(swallowed)
            return
        timer = threading.Timer(AGAIN_AFTER, again)
        timer.daemon = True
        timer.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Hold back what a handler of Python would do, until the end of a block.

    For moments only. A signal that ends the process without asking Python still does.
    """
    if not in_main_thread():
        yield
        return
    came: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        came.append(number)

    before = {number: signal.getsignal(number) for number in ENDING}
    installed = {number: found for number, found in before.items() if callable(found)}
    for number in installed:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in installed.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


@contextlib.contextmanager
def handlers_kept() -> Iterator[None]:
    """Put back handlers of ours that a library has replaced within a block.

    Python's own are no loss: what pyspark installs instead also cancels its jobs.
    """
    if not in_main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            if callable(handler) and handler is not signal.default_int_handler:
                signal.signal(number, handler)

"""Points at which a test can end or freeze a process, as a crash would.

Off, `reach` does nothing at all. It is switched on by a variable that only tests set, read once:

    OUTBOX_FAILPOINT="transitions.committed@2=driver"        kill at the second time
    OUTBOX_FAILPOINT="kafka.handed@1=worker:stop"            freeze (SIGSTOP) instead of SIGKILL
    OUTBOX_FAILPOINT_MARK=<file>                             at most one process acts

Times are counted in each process by itself. Whoever acts makes the file of the mark first, with
its process id in it, and as long as the file is there nobody else does: a worker that takes the
place of a killed one starts to count anew. With a mark the first to come acts, from that time on.

Targets: `driver`, the Python that the session belongs to; `jvm`, its JVM; `worker`, the Python
worker that came by; `group`, the driver and all that it has started. Workers inherit the variable
from the JVM that starts them: those of a server listen to the one of `outbox serve`, which is their
driver too, not to a relay that came later. Finding processes takes psutil, which the tests have.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

from delta_outbox.core.errors import BadSettings

if TYPE_CHECKING:
    import psutil

VARIABLE: Final = "OUTBOX_FAILPOINT"
MARK_VARIABLE: Final = "OUTBOX_FAILPOINT_MARK"

# docs/crashes.md says of each where it lies and what a crash leaves there.
DriverPoint = Literal[
    "events.before",
    "events.after",
    "command.before",
    "command.after",
    "transitions.before",
    "transitions.committed",
    "transitions.after",
    "plan.before",
    "plan.committed",
    "plan.after",
    "rows.before",
    "rows.after",
    "derived.before",
    "derived.after",
    "publish.before",
    "publish.after",
]
WorkerPoint = Literal[
    "kafka.sending",
    "kafka.handed",
    "kafka.marked",
    "kafka.committing",
    "kafka.committed",
    "slice.answered",
]
Point = DriverPoint | WorkerPoint
Target = Literal["driver", "jvm", "worker", "group"]

DRIVER_POINTS: Final[tuple[str, ...]] = get_args(DriverPoint)
WORKER_POINTS: Final[tuple[str, ...]] = get_args(WorkerPoint)
TARGETS: Final[tuple[str, ...]] = get_args(Target)

_FORM: Final = re.compile(
    r"(?P<point>[a-z.]+)@(?P<number>[1-9]\d{0,5})=(?P<target>[a-z]+)(?P<stop>:stop)?", re.ASCII
)


class Failpoint:
    """What happens at one point.

    Args:
        point: where.
        number: at which time, from 1.
        target: whom it hits.
        stop: freeze instead of kill.
        mark: the file that whoever acts makes.
    """

    def __init__(
        self, *, point: str, number: int, target: Target, stop: bool, mark: Path | None = None
    ) -> None:
        self.point = point
        self.number = number
        self.target = target
        self.signal = signal.SIGSTOP if stop else signal.SIGKILL
        self.mark = mark
        self._times = itertools.count(1)  # threads may share it

    @classmethod
    def parse(cls, text: str, *, mark: str | None = None) -> Failpoint:
        """Return what the variables say.

        Args:
            text: `point@number=target`, with `:stop` at the end if it is to freeze.
            mark: a path.

        Raises:
            BadSettings: it has another form, or names what does not exist.
        """
        form = _FORM.fullmatch(text)
        if form is None:
            raise _wrong("must be point@number=target or point@number=target:stop", text)
        point, target = form["point"], form["target"]
        points = DRIVER_POINTS + WORKER_POINTS
        if point not in points:
            raise _wrong(f"the point must be one of {', '.join(points)}", text)
        if target not in TARGETS:
            raise _wrong(f"the target must be one of {', '.join(TARGETS)}", text)
        if target == "worker" and point not in WORKER_POINTS:
            raise _wrong(f"a worker comes by at {', '.join(WORKER_POINTS)} only", text)
        return cls(
            point=point,
            number=int(form["number"]),
            target=cast("Target", target),
            stop=form["stop"] is not None,
            mark=Path(mark) if mark else None,
        )

    def reach(self, point: Point) -> None:
        """Act if it is this point's time.

        Args:
            point: which one was reached.
        """
        if point == self.point and self._is_due(next(self._times)):
            for process in self._processes():
                process.send_signal(self.signal)

    def _is_due(self, time: int) -> bool:
        if self.mark is None:
            return time == self.number
        return time >= self.number and _made(self.mark)

    def _processes(self) -> Iterable[psutil.Process]:
        """Return whom it hits, ourselves last."""
        import psutil

        here = psutil.Process()
        if self.target == "worker":
            return [here]
        in_worker = self.point in WORKER_POINTS
        jvm = _java(here.parents() if in_worker else here.children())
        driver = jvm.parent() if jvm is not None and in_worker else here
        if self.target == "jvm" and jvm is not None:
            return [jvm]
        if self.target == "jvm" or driver is None:
            raise BadSettings(f"{VARIABLE}: {self.point} was reached in a process without a JVM.")
        if self.target == "driver":
            return [driver]
        everybody = [*driver.children(recursive=True), driver]
        return sorted(everybody, key=lambda process: process == here)


def _java(processes: Iterable[psutil.Process]) -> psutil.Process | None:
    return next((process for process in processes if process.name() == "java"), None)


def _made(mark: Path) -> bool:
    """Make the mark, and say whether it was us who did."""
    try:
        descriptor = os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{os.getpid()}\n")
    return True


def _wrong(rule: str, text: str) -> BadSettings:
    return BadSettings(
        f"{VARIABLE}: {rule}. Got: {text!r}.",
        remedy=f"Unset {VARIABLE}: it is there for tests, and ends processes.",
    )


def _nothing(point: Point) -> None:
    """Do nothing."""


def _chosen(environment: Mapping[str, str]) -> Callable[[Point], None]:
    text = environment.get(VARIABLE)
    if not text:
        return _nothing
    return Failpoint.parse(text, mark=environment.get(MARK_VARIABLE)).reach


reach: Final = _chosen(os.environ)
"""Is called wherever a crash is tried."""

"""The lock of a home: one process and its JVM at a time.

`flock` belongs to the open file, not to the process: whoever inherits the descriptor shares the
lock, and it is free when the last of them is gone. The JVM inherits it (jvm.py), so a driver
that was killed leaves no moment in which its JVM still publishes and the home looks free. Java
closes inherited descriptors in the processes that it starts, so Python workers do not hold the
lock; they end with their JVM (its end closes the daemon's standard input, and the daemon then
hangs up on its workers).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from delta_outbox.core.errors import HomeInUse
from delta_outbox.runtime.file_lock import lock
from delta_outbox.runtime.ownership import open_own

# A holder that is alive is reported at once. A JVM whose driver is gone ends within seconds:
# it is worth waiting for, but never beyond the 5 s within which a user gets an answer.
GONE_DRIVER_PATIENCE = 4.0  # seconds
LIVE_HOLDER_PATIENCE = 0.3  # seconds; covers a holder that has not yet written its name
POLL_INTERVAL = 0.05  # seconds

_LOCK_FILE = "lock"
SERVED_FILE = "served.json"  # of the holder, if it is `outbox serve`


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Who holds a lock.

    Args:
        pid: of the driver.
        jvm_pid: of its JVM, once there is one.
        serves: it is `outbox serve`.
    """

    pid: int
    jvm_pid: int | None = None
    serves: bool = False


class HomeLock:
    """The lock of one home, at most once per process; acquiring it again is free."""

    def __init__(self, home: Path) -> None:
        """Name the home; nothing is opened yet."""
        self._home = home
        self._path = home / _LOCK_FILE
        self._descriptor: int | None = None
        self._serves = False
        self._guard = threading.Lock()

    @property
    def held(self) -> bool:
        """Return whether this process holds the lock."""
        return self._descriptor is not None

    @property
    def serves(self) -> bool:
        """Return whether this process holds the lock to serve the home to others."""
        return self.held and self._serves

    @property
    def descriptor(self) -> int:
        """Return the file descriptor that a child process must inherit to share the lock."""
        if self._descriptor is None:
            raise RuntimeError("The lock is not held.")
        return self._descriptor

    def acquire(self, *, serves: bool = False) -> None:
        """Take the lock, or say who has it.

        Args:
            serves: to serve the home to other processes.

        Raises:
            HomeInUse: somebody else has it; the message holds the process id.
            NoLocks: the file system of the home takes no locks.
        """
        with self._guard:
            if self._descriptor is not None:
                return
            descriptor = open_own(self._path, os.O_RDWR | os.O_CREAT)
            try:
                self._wait(descriptor)
                # Only a holder serves: what a killed one has left names a server that is gone.
                (self._home / SERVED_FILE).unlink(missing_ok=True)
                self._descriptor, self._serves = descriptor, serves
                self._sign(Holder(pid=os.getpid(), serves=serves))
            except BaseException:
                self._descriptor = None
                os.close(descriptor)
                raise

    def shared_with(self, jvm_pid: int) -> None:
        """Write down that the JVM of this process has inherited the lock."""
        self._sign(Holder(pid=os.getpid(), jvm_pid=jvm_pid, serves=self._serves))

    def release(self) -> None:
        """Give up this process's share; a JVM that inherited the lock keeps it until it ends."""
        with self._guard:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def holder(self) -> Holder | None:
        """Return who wrote the lock file last; only meaningful while the lock is held."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            return Holder(
                pid=int(found["pid"]),
                jvm_pid=found.get("jvm_pid"),
                serves=found.get("serves") is True,
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def other_holder(self) -> Holder | None:
        """Return which other process holds the lock now; None if it is free, or ours."""
        if self.held:
            return None
        try:
            return None if is_free(self._path) else self.holder()
        except FileNotFoundError:
            return None

    def _sign(self, holder: Holder) -> None:
        text = json.dumps(asdict(holder)).encode()
        # One write, then cut: a reader sees the old holder or the new one, or is asked again.
        os.pwrite(self.descriptor, text, 0)
        os.ftruncate(self.descriptor, len(text))

    def _wait(self, descriptor: int) -> None:
        started = time.monotonic()
        while True:
            try:
                lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, path=self._path)
                return
            except BlockingIOError:
                pass
            holder = self.holder()
            gone = holder is not None and not is_alive(holder.pid)
            patience = GONE_DRIVER_PATIENCE if gone else LIVE_HOLDER_PATIENCE
            if time.monotonic() - started >= patience:
                raise self._in_use(holder, driver_is_gone=gone)
            time.sleep(POLL_INTERVAL)

    def _in_use(self, holder: Holder | None, *, driver_is_gone: bool) -> HomeInUse:
        open_in = open_by(self._path)
        if holder is not None and open_in and holder.pid not in open_in:
            # Whoever signed has ended, and its number may be that of another process by now.
            if holder.jvm_pid in open_in:
                driver_is_gone = True
            else:
                return HomeInUse(
                    home=self._home,
                    pid=min(open_in),
                    remedy=(
                        f"It was started by process {holder.pid}, which was killed; it ends by "
                        "itself within seconds. Try again; if it stays, stop it: "
                        f"kill {min(open_in)}."
                    ),
                )
        elif driver_is_gone and (holder is None or not is_alive(holder.jvm_pid or holder.pid)):
            holder = None  # its process is not one that can be seen from here
        if holder is None:
            return HomeInUse(
                home=self._home,
                pid=None,
                remedy="A local home serves one process at a time: wait for the other to end.",
            )
        if driver_is_gone and holder.jvm_pid is not None:
            return HomeInUse(
                home=self._home,
                pid=holder.jvm_pid,
                remedy=(
                    f"It is the JVM of process {holder.pid}, which was killed; it ends by itself "
                    f"within seconds. Try again; if it stays, stop it: kill {holder.jvm_pid}."
                ),
            )
        if holder.serves:
            return HomeInUse(
                home=self._home,
                pid=holder.pid,
                remedy=(
                    "It is the server of this home (`outbox up` or `outbox serve`): once it is "
                    "ready, every other command finds it by itself. `outbox up` waits for it, "
                    "`outbox down` ends it."
                ),
            )
        return HomeInUse(
            home=self._home,
            pid=holder.pid,
            remedy=(
                "A local home serves one process at a time: wait until that process ends, "
                f"or stop it: kill {holder.pid}. To work with several processes at once, run "
                "`outbox up` first; they find its server by themselves."
            ),
        )


def is_free(path: Path) -> bool:
    """Return whether nobody holds the lock of a file.

    Args:
        path: the file.

    Raises:
        FileNotFoundError: there is none.
        NoLocks: its file system takes no locks.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # Shared: two processes that only ask do not see each other.
        lock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, path=path)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def open_by(path: Path) -> frozenset[int] | None:
    """Return which other processes of this user have a file open; None where nobody can tell.

    Args:
        path: the file.
    """
    if not Path("/proc/self/fd").is_dir():
        return None
    wanted = path.stat()
    found = set()
    for folder in Path("/proc").glob("[0-9]*/fd"):
        pid = int(folder.parent.name)
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            for link in folder.iterdir():
                with contextlib.suppress(OSError):
                    opened = link.stat()
                    if (opened.st_dev, opened.st_ino) == (wanted.st_dev, wanted.st_ino):
                        found.add(pid)
                        break
    return frozenset(found - {os.getpid()})


def is_alive(pid: int) -> bool:
    """Return whether a process with this id runs, whoever owns it; one that has ended and that its
    parent has not asked for (in a container, for ever) does not.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # no Linux, or it has just ended
        return True
    return told.rpartition(")")[2].split()[0] not in ("Z", "X")


_locks: dict[Path, HomeLock] = {}
_locks_guard = threading.Lock()


def lock_for(home: Path) -> HomeLock:
    """Return the lock of a home: the same object for the same folder, process-wide."""
    with _locks_guard:
        return _locks.setdefault(home, HomeLock(home))

"""The home: the folder that holds all that local mode writes, and the lock that guards it."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from delta_outbox.core.errors import NoOutboxHere, WrongUsage
from delta_outbox.runtime.home_lock import SERVED_FILE, HomeLock, lock_for
from delta_outbox.runtime.ownership import (
    NotYours,
    check_file_link,
    check_folder_link,
    check_home_owner,
    open_own,
    user_name,
)

logger = logging.getLogger(__name__)

HOME_VARIABLE = "OUTBOX_HOME"
HOME_SETTING = "spark.outbox.home"
"""Setting of a Spark that works in a home: which."""
DEFAULT_NAME = ".outbox"
PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


@dataclass(frozen=True, kw_only=True)
class Home:
    """One local outbox on disk; every path below it has its name here."""

    root: Path

    @property
    def warehouse(self) -> Path:
        """Return where the tables lie; a folder with a warehouse is an outbox."""
        return self.root / "warehouse"

    @property
    def metastore(self) -> Path:
        """Return the Derby database of the local catalog: one process at a time."""
        return self.root / "metastore"

    @property
    def logs(self) -> Path:
        """Return the folder of spark.log, jvm.log, derby.log, dbt.log and serve.log."""
        return self.root / "logs"

    @property
    def settings(self) -> Path:
        """Return the settings file of this home; it need not exist."""
        return self.root / "outbox.toml"

    @property
    def delivered(self) -> Path:
        """Return the default folder of the `jsonl` publisher."""
        return self.root / "delivered"

    @property
    def compiled(self) -> Path:
        """Return the cache of compiled SQL."""
        return self.root / "compiled"

    @property
    def dbt_target(self) -> Path:
        """Return dbt's target folder for runs from inside our own process."""
        return self.root / "dbt"

    @property
    def scratch(self) -> Path:
        """Return Spark's folder for spills and temporary files, emptied at every start."""
        return self.root / "scratch"

    @property
    def spark_conf(self) -> Path:
        """Return the folder of what tells Spark where to log."""
        return self.root / "spark-conf"

    @property
    def relays(self) -> Path:
        """Return the folder of the locks of the relays at work."""
        return self.root / "relays"

    @property
    def lock_file(self) -> Path:
        """Return the file whose lock makes a process the only one in this home."""
        return self.root / "lock"

    @property
    def served_file(self) -> Path:
        """Return the file that says where the server of this home is, while there is one."""
        return self.root / SERVED_FILE

    @property
    def lock(self) -> HomeLock:
        """Return the lock of this home; one object per home and process."""
        return lock_for(self.root)

    @property
    def exists(self) -> bool:
        """Return whether this folder is an outbox.

        Raises:
            NotYours: it is closed to this user.
        """
        try:
            return self.warehouse.is_dir()
        except PermissionError as error:
            raise NotYours(
                f"The home {self.root} is closed to {user_name(os.geteuid())}.",
                remedy=(
                    "Run this as its owner, or name a home of your own: "
                    f"{HOME_VARIABLE}=/path/to/it."
                ),
            ) from error

    def empty_scratch(self) -> None:
        """Remove what a killed Spark has left; the folder stays, for it may be a link to one."""
        with contextlib.suppress(FileNotFoundError):
            for one in self.scratch.iterdir():
                if one.is_dir() and not one.is_symlink():
                    shutil.rmtree(one, ignore_errors=True)
                else:
                    with contextlib.suppress(OSError):
                        one.unlink()

    def _folders(self) -> tuple[Path, ...]:
        return (
            self.warehouse,
            self.logs,
            self.delivered,
            self.compiled,
            self.dbt_target,
            self.scratch,
            self.spark_conf,
        )

    def _known(self) -> set[Path]:
        return {
            *self._folders(),
            self.metastore,
            self.relays,
            self.settings,
            self.lock_file,
            self.served_file,
        }

    def create(self) -> Home:
        """Make the folder and what belongs into it; nothing that exists is altered.

        Raises:
            WrongUsage: the place is a file, or a folder that holds something else.
        """
        if self.exists:
            return self
        if self.root.exists():
            if not self.root.is_dir():
                raise WrongUsage(f"{HOME_VARIABLE}: must be a folder. Got: the file {self.root}.")
            strangers = sorted(path.name for path in set(self.root.iterdir()) - self._known())
            if strangers:
                raise WrongUsage(
                    f"{HOME_VARIABLE}: must be a new or empty folder. "
                    f"Got: {self.root}, which holds {', '.join(strangers[:5])}."
                )
        try:
            self.root.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            self.root.chmod(PRIVATE_FOLDER)
            # The warehouse comes last: it is what makes the folder an outbox.
            for folder in reversed(self._folders()):
                folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        except OSError as error:
            raise WrongUsage(
                f"{HOME_VARIABLE}: must be a folder that can be written. "
                f"Got: {self.root} ({error.strerror})."
            ) from error
        return self

    def keep_private(self) -> None:
        """Take back what others than its owner may do with the folder, and so with all below it."""
        mode = stat.S_IMODE(self.root.stat().st_mode)
        if mode & ~PRIVATE_FOLDER:
            extra = {"home": str(self.root), "mode": f"{mode:o}"}
            try:
                self.root.chmod(mode & PRIVATE_FOLDER)
            except OSError:  # it belongs to somebody else
                logger.warning("home_open_to_others", extra=extra)
            else:
                logger.warning("home_tightened", extra=extra)

    def check_links(self) -> None:
        """Refuse links where we, Spark, Derby or dbt would write through them.

        Raises:
            LinkInTheWay: there is one; a folder may be a link of our own, to another disk.
        """
        for folder in (*self._folders(), self.metastore, self.relays):
            check_folder_link(folder)
        written = [self.lock_file, self.served_file]
        for folder in (self.logs, self.spark_conf):
            if folder.is_dir():
                written += sorted(folder.iterdir())
        for file in written:
            check_file_link(file)

    def write_settings(self, text: str) -> None:
        """Write the settings file, readable by its owner alone: it may hold secrets."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        descriptor = open_own(self.settings, flags, PRIVATE_FILE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), PRIVATE_FILE)
            file.write(text)

    @contextlib.contextmanager
    def locked(self) -> Iterator[HomeLock]:
        """Hold the lock of this home for a block.

        Raises:
            HomeInUse: another process holds it.
        """
        self.lock.acquire()
        try:
            yield self.lock
        finally:
            self.lock.release()


def _upward(start: Path) -> Iterator[Path]:
    yield start
    yield from start.parents


def find_home(
    *, cwd: Path | None = None, environ: Mapping[str, str] | None = None, create: bool = False
) -> Home:
    """Find the home: OUTBOX_HOME, else `.outbox` in the working folder or above it.

    Args:
        cwd: where to begin to look; the working folder if left out.
        environ: the environment variables; the process's own if left out.
        create: make it where it is missing (OUTBOX_HOME, else `.outbox` in the working folder).

    Raises:
        NoOutboxHere: there is none, and it is not to be created.
        WrongUsage: it is to be created at a place where something else is.
        NotYours: what was found, and not named, belongs to another user.
        LinkInTheWay: a file of it that we write is a link.
    """
    start = (cwd or Path.cwd()).absolute()
    variables = os.environ if environ is None else environ
    named = variables.get(HOME_VARIABLE, "").strip()
    if named:
        home = Home(root=(start / Path(named).expanduser()).resolve())
        if not home.exists and not create:
            raise NoOutboxHere(where=home.root)
        if home.exists:
            home.check_links()
            home.keep_private()
        return home.create()
    for folder in _upward(start):
        named_here = folder / DEFAULT_NAME
        home = Home(root=named_here.resolve())
        if home.exists:
            check_home_owner(named_here, home.root, variable=HOME_VARIABLE)
            home.check_links()
            home.keep_private()
            return home
    if not create:
        raise NoOutboxHere(where=start)
    return Home(root=(start / DEFAULT_NAME).resolve()).create()

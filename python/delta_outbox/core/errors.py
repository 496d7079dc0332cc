"""The errors of the project: one class per situation, each with its code and its remedy.

A message says what, the rule, and what came. Whether it makes sense to try again is a property
of the class (`retryable`), and so is the exit code of a command that ends with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final


def _listed(names: Iterable[object]) -> str:
    """Join names for a sentence, sorted, so that a message is the same every time."""
    return ", ".join(sorted(str(name) for name in names)) or "none"


def _rebuild(cls: type[OutboxError], message: str, state: dict[str, Any]) -> OutboxError:
    error = cls.__new__(cls, message)
    error.args = (message,)
    error.__dict__.update(state)
    return error


class OutboxError(Exception):
    """Something is wrong that a person can mend; the remedy says how."""

    code: ClassVar[str] = "OUTBOX_ERROR"
    exit_code: ClassVar[int] = 2  # 1: finished, with something to look at; 2: could not do it
    retryable: ClassVar[bool] = False
    remedy: str = "Run the command again with --debug and read the trace."

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        """Keep the message, and a remedy that fits this instance better than the class's."""
        super().__init__(message)
        if remedy is not None:
            self.remedy = remedy

    def as_dict(self) -> dict[str, str]:
        """Return what a command prints below the key `error`."""
        return {"code": self.code, "message": str(self), "remedy": self.remedy}

    def __reduce__(self) -> tuple[Any, ...]:
        # The default rebuilds from positional arguments; ours are keywords, and a worker's
        # error must survive the way to the driver.
        return (_rebuild, (type(self), str(self), dict(self.__dict__)))


class ToldError(OutboxError):
    """The error with which another process of ours has ended, or has answered.

    Args:
        told: as `as_dict` makes it.
    """

    code = "TOLD_ERROR"

    def __init__(self, told: Mapping[str, str]) -> None:
        super().__init__(told["message"], remedy=told["remedy"])
        self.code = told["code"]  # type: ignore[misc]  # others have that of their class


# --- environment -----------------------------------------------------------------------------


class NoJava(OutboxError):
    """Spark needs Java 17 or newer: install it, or point JAVA_HOME at it."""

    code = "NO_JAVA"
    remedy = (
        "Install Java 17 or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; "
        "macOS: brew install openjdk@17) or set JAVA_HOME to one."
    )

    def __init__(self, *, found: str | None = None, remedy: str | None = None) -> None:
        super().__init__(f"Java 17 or newer is needed. Found: {found or 'none'}.", remedy=remedy)


class NoOutboxHere(OutboxError):
    """There is no outbox at the place looked at: create one, or name its home."""

    code = "NO_OUTBOX_HERE"
    remedy = "Create one with `outbox init`, or set OUTBOX_HOME to the home of an existing one."

    def __init__(self, *, where: object, remedy: str | None = None) -> None:
        super().__init__(f"No outbox here: {where}.", remedy=remedy)


class HomeInUse(OutboxError):
    """Another process uses this local home: stop it, or share one session by `outbox up`."""

    code = "HOME_IN_USE"
    remedy = (
        "A local home serves one process at a time. Wait for the holder or stop it; "
        "to work with several processes at once run `outbox up` first."
    )

    def __init__(self, *, home: object, pid: int | None, remedy: str | None = None) -> None:
        holder = f"process {pid}" if pid is not None else "an unknown process"
        super().__init__(f"The home {home} is in use by {holder}.", remedy=remedy)
        self.pid = pid


class ServerNeeded(OutboxError):
    """What others do beside it would be locked out: start a server that all share."""

    code = "SERVER_NEEDED"
    remedy = "Run `outbox up` first, or name a Spark Connect server in SPARK_REMOTE."

    def __init__(self, *, home: object) -> None:
        super().__init__(f"{home} is not served, and this works beside others only.")


class HomeMoved(OutboxError):
    """The home was moved while its server runs, which works at the old place: end it."""

    code = "HOME_MOVED"
    remedy = "End it with `outbox down`; then `outbox up`, or any other command, works here."

    def __init__(
        self, *, home: object, before: object, pid: int, remedy: str | None = None
    ) -> None:
        super().__init__(
            f"The home {home} was moved here while its server (process {pid}) runs, which works "
            f"in {before}.",
            remedy=remedy,
        )


class NoLocks(OutboxError):
    """The file system takes no locks: let the home lie on a disk of this machine."""

    code = "NO_LOCKS"
    remedy = (
        "Let OUTBOX_HOME (for what lies below OUTBOX_CACHE, that one) name a folder on a disk of "
        "this machine: only a lock keeps a second process away from what it holds. On NFS the "
        "lock service of client and server must run."
    )

    def __init__(self, *, file: object, cause: str, remedy: str | None = None) -> None:
        """Name the file that was to be locked, and what the system said."""
        super().__init__(f"{file}: its file system takes no lock: {cause}.", remedy=remedy)


class ServerUnreachable(OutboxError):
    """The Spark Connect server does not answer: start it, or unset its address."""

    code = "SERVER_UNREACHABLE"
    remedy = "Start one with `outbox up`, or correct or unset SPARK_REMOTE."

    def __init__(self, *, address: str, cause: str, remedy: str | None = None) -> None:
        """Name the address (without its token) and what went wrong."""
        super().__init__(
            f"The Spark Connect server at {address} does not answer: {cause}", remedy=remedy
        )


class SessionClosed(OutboxError):
    """The Spark Connect server does not know the given session any more: make a new one."""

    code = "SESSION_CLOSED"
    remedy = "Make a new session, `SparkSession.builder.remote(...).create()`, and give that one."

    def __init__(self, *, remedy: str | None = None) -> None:
        super().__init__(
            "The Spark Connect server has closed the given session, because it was not used for "
            "longer than the server's time-out, or has begun anew.",
            remedy=remedy,
        )


class StoragePrecondition(OutboxError):
    """The storage cannot keep the promise of one winner per commit: use one that can."""

    code = "STORAGE_PRECONDITION"
    remedy = (
        "Use one driver or one `outbox serve` for file:// paths; otherwise HDFS, or an object "
        "store whose Delta log store has put-if-absent."
    )


class DiskFull(OutboxError):
    """There is no room for a write: make some; nothing of the write counts."""

    code = "DISK_FULL"
    remedy = (
        "Make room on the disk (or raise the quota) and run the command again. Nothing that was "
        "being written counts: events whose delivery could not be recorded are sent again."
    )

    def __init__(self, *, table: str, cause: str, remedy: str | None = None) -> None:
        super().__init__(f"{table}: a write needs room, and there is none: {cause}", remedy=remedy)


class NotWritable(OutboxError):
    """The right to write is missing: give it to the user that Spark runs as."""

    code = "NOT_WRITABLE"
    remedy = (
        "Let the user that Spark runs as (with `outbox serve`: the server's) write there, and "
        "run the command again. Nothing that was being written counts: events whose delivery "
        "could not be recorded are sent again."
    )

    def __init__(self, *, table: str, cause: str, remedy: str | None = None) -> None:
        super().__init__(f"{table}: a write was refused: {cause}", remedy=remedy)


class NotSynced(OutboxError):
    """The disk did not take what was written: it is not known what a restart would find."""

    code = "NOT_SYNCED"
    remedy = (
        "Look at the disk (`dmesg`, free room, quotas). Then end whatever uses this home, and run "
        "the command again: what it was about to acknowledge may be there, and is found by its id."
    )

    def __init__(self, *, what: object, cause: str, remedy: str | None = None) -> None:
        super().__init__(f"{what}: the disk did not take what was written: {cause}.", remedy=remedy)


class TornCommit(OutboxError):
    """A file of a log was not on the disk when the machine lost its power: move it away."""

    code = "TORN_COMMIT"
    remedy = (
        "End whatever uses this outbox, and move away that file and every later file of its "
        "folder; then run `outbox refresh --rebuild`. Nothing of it was acknowledged by `outbox`; "
        "what somebody's INSERT put there seconds before the power was lost has to be inserted "
        "again."
    )

    def __init__(self, *, file: object, remedy: str | None = None) -> None:
        super().__init__(
            f"{file}: it, or a file that it names, is not whole: the machine lost its power, or "
            "was reset, before all of it was on the disk.",
            remedy=remedy,
        )


class DbtFailed(OutboxError):
    """dbt ended with errors: its own message names the model or test."""

    code = "DBT_FAILED"
    remedy = "Read dbt's message above (or logs/dbt.log), mend the cause, and run it again."


# --- usage, settings, policies ---------------------------------------------------------------


class WrongUsage(OutboxError):
    """An argument breaks a rule: the message names the argument, the rule and what came."""

    code = "WRONG_USAGE"
    remedy = "Correct the argument; `outbox COMMAND --help` lists them."


class UnknownEvent(OutboxError):
    """Nothing with this id is known: check the id, or list what there is."""

    code = "UNKNOWN_EVENT"
    remedy = "Check the id; `outbox list` shows what there is."

    def __init__(self, *, event_id: str, others: int = 0, remedy: str | None = None) -> None:
        more = f" Nor {others} other(s)." if others else ""
        super().__init__(f"No event or command has the id {event_id!r}.{more}", remedy=remedy)


class BadSettings(OutboxError):
    """A setting breaks a rule: correct it in the settings file or the environment."""

    code = "BAD_SETTINGS"
    remedy = "Correct the setting in outbox.toml (or the environment variable) and run it again."


class BadPolicy(OutboxError):
    """The delivery policies break a rule: every problem is listed with row, column and rule."""

    code = "BAD_POLICY"
    remedy = "Correct the rows in seeds/delivery_policies.csv and run `outbox dbt build` again."

    def __init__(self, problems: Sequence[str], *, remedy: str | None = None) -> None:
        """Keep all problems, so that one run shows them all."""
        super().__init__("delivery_policies: " + "; ".join(problems), remedy=remedy)
        self.problems = tuple(problems)


class UnknownDestination(OutboxError):
    """A policy names a destination that the settings do not have: add it, or mend the policy."""

    code = "UNKNOWN_DESTINATION"
    remedy = (
        "Add a table [publishers.<destination>] to outbox.toml, or correct the column "
        "`destination` in seeds/delivery_policies.csv."
    )

    def __init__(
        self, *, destination: str, known: Iterable[str], remedy: str | None = None
    ) -> None:
        super().__init__(
            f"The destination {destination!r} is not in the settings. Known: {_listed(known)}.",
            remedy=remedy,
        )


class UnknownPublisher(OutboxError):
    """A publisher type cannot be found: use a built-in, an entry point or package.module:Class."""

    code = "UNKNOWN_PUBLISHER"
    remedy = "Set `type` to a built-in, an installed entry point, or `package.module:Class`."

    def __init__(
        self, *, destination: str, type_: str, known: Iterable[str], remedy: str | None = None
    ) -> None:
        super().__init__(
            f"publishers.{destination}: `type` must name a publisher. "
            f"Known: {_listed(known)}. Got: {type_!r}.",
            remedy=remedy,
        )


# --- publishing ------------------------------------------------------------------------------


class PublisherUnavailable(OutboxError):
    """The destination does not answer: start it or mend its settings; nothing is lost."""

    code = "PUBLISHER_UNAVAILABLE"
    retryable = True
    remedy = (
        "Start the destination or correct [publishers.<destination>] in outbox.toml. "
        "Nothing is lost: the events stay in the outbox."
    )

    def __init__(self, *, destination: str, cause: str, remedy: str | None = None) -> None:
        """Name the destination and what it said, without secrets."""
        super().__init__(f"The destination {destination!r} is unavailable: {cause}", remedy=remedy)
        self.cause = cause


class RejectedRows(OutboxError):
    """Rows were rejected and nothing was appended: correct every row that is listed."""

    code = "REJECTED_ROWS"
    exit_code = 1
    remedy = "Correct the rows that are listed and append the whole batch again."

    def __init__(self, rejections: Sequence[object], *, remedy: str | None = None) -> None:
        super().__init__(
            f"Nothing was appended: {len(rejections)} rejection(s).",
            remedy=remedy,
        )
        self.rejections = tuple(rejections)


# --- logs ------------------------------------------------------------------------------------


class SequenceTaken(OutboxError):
    """Another writer appended first: re-read and decide again (the caller does that by itself)."""

    code = "SEQUENCE_TAKEN"
    retryable = True
    remedy = "Run the command again: other writers were faster several times in a row."

    def __init__(self, *, writer: str, number: int, remedy: str | None = None) -> None:
        super().__init__(f"Number {number} of {writer} is taken by another writer.", remedy=remedy)


class LaneClosed(SequenceTaken):
    """Nobody can append to a lane any more: its epoch has ended or is ending (re-read which)."""

    code = "LANE_CLOSED"
    remedy = (
        "Run the command again: the lanes are being changed. `outbox lanes` shows whether that is "
        "over; a change that was interrupted is finished by `outbox lanes --to N --apply`."
    )

    def __init__(self, *, writer: str, number: int, lane: int, remedy: str | None = None) -> None:
        super().__init__(writer=writer, number=number, remedy=remedy)
        self.lane = lane


class LogRewound(OutboxError):
    """A number counts as used but its rows are gone: restore the table to what it held."""

    code = "LOG_REWOUND"
    remedy = (
        "The table has lost rows, by a RESTORE or a DELETE. Restore it to its version before that "
        "(`describe history` shows which), then run the command again. Where what is lost is to "
        "stay lost: `outbox refresh --rebuild`, then `outbox lanes --to N --apply`, which begins a "
        "new epoch of the transition log; what was delivered since is delivered again."
    )

    def __init__(self, *, table: str, writer: str, number: int, remedy: str | None = None) -> None:
        super().__init__(
            f"{table}: number {number} of {writer} is used, but no rows carry it: "
            "the table was rewound.",
            remedy=remedy,
        )


PLANS_LOST: Final = (
    "After a power cut run `outbox refresh --rebuild`: the projection is derived anew. If the "
    "table has lost rows by a RESTORE or a DELETE: Restore it to its version before that "
    "(`describe history` shows which), then run the command again."
)
"""The remedy where the plan that the projection stands at is gone."""


class CommitsLost(OutboxError):
    """A log has lost commits that the projection was derived from: rebuild the projection."""

    code = "COMMITS_LOST"
    remedy = (
        "Run `outbox refresh --rebuild`, before anything is appended. What somebody's INSERT put "
        "there seconds before the machine lost its power has to be inserted again; where files "
        "were moved or removed by hand, restore the home from a back-up."
    )

    def __init__(self, *, table: str, version: int, head: int, remedy: str | None = None) -> None:
        """Name the log, the version that was read of it, and the one at which it ends now."""
        super().__init__(
            f"{table}: its commits up to {version} were folded into the projection, but it ends "
            f"at {head}: it has lost the last ones.",
            remedy=remedy,
        )


class FormatTooNew(OutboxError):
    """A table was written by a newer release: upgrade this one."""

    code = "FORMAT_TOO_NEW"
    remedy = "Upgrade delta-outbox to the release that wrote the table, or a later one."

    def __init__(
        self, *, table: str, found: int | str, supported: int, remedy: str | None = None
    ) -> None:
        super().__init__(
            f"{table}: the format version must be at most {supported}. Got: {found}.",
            remedy=remedy,
        )


class FormatTooOld(OutboxError):
    """A table was written by an older release: `outbox init` brings it to the present format."""

    code = "FORMAT_TOO_OLD"
    remedy = "Run `outbox init`: it brings the logs to the present format and keeps what they hold."

    def __init__(
        self, *, table: str, found: int | str, needed: int, remedy: str | None = None
    ) -> None:
        super().__init__(
            f"{table}: the format version must be {needed}. Got: {found}.", remedy=remedy
        )


class ChangeFeedGone(OutboxError):
    """The change feed no longer reaches back far enough: rebuild from a snapshot."""

    code = "CHANGE_FEED_GONE"
    remedy = "Rebuild the projection from a snapshot: `outbox dbt build --full-refresh`."

    def __init__(self, *, table: str, version: int, remedy: str | None = None) -> None:
        super().__init__(
            f"{table}: the change feed no longer holds version {version}.", remedy=remedy
        )

"""The public API on one page: an outbox, and what operators ask of it.

`delta_outbox` has these names, and those of the rooms below that users need (docs/api.md).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Unpack, overload

from delta_outbox.core.clock import Clock
from delta_outbox.core.tables import Tables
from delta_outbox.operations.request_expansion import perform
from delta_outbox.operations.request_report import RequestReport
from delta_outbox.operations.requests import (
    ReleaseArguments,
    ReplayArguments,
    WhoAndWhy,
    kill_request,
    release_request,
    replay_request,
)
from delta_outbox.runtime.dbt import default_schema
from delta_outbox.runtime.home import Home, find_home
from delta_outbox.runtime.session import is_remote
from delta_outbox.runtime.settings_file import load_settings
from delta_outbox.store.opening import check_logs, create_outbox, load_statements, opened_spark
from delta_outbox.store.store import Store


class Outbox(Store):
    """An outbox on Delta: append, retrieve, claim, end; and replay, kill, release."""

    def replay(self, **given: Unpack[ReplayArguments]) -> RequestReport:
        """Ask for deliveries to be made again; a preview unless `dry_run=False`.

        Args:
            given: as `operations.requests.replay_request` takes them.

        Raises:
            WrongUsage: arguments break rules.
            UnknownEvent: an event does not exist.
        """
        return perform(self, replay_request(**given))

    def kill(self, event_ids: Sequence[str], **given: Unpack[WhoAndWhy]) -> RequestReport:
        """Ask for events to end undelivered; a preview unless `dry_run=False`.

        Args:
            event_ids: the events.
            given: as `operations.requests.kill_request` takes them.

        Raises:
            WrongUsage: arguments break rules.
            UnknownEvent: an event does not exist.
        """
        return perform(self, kill_request(event_ids=event_ids, **given))

    @overload
    def release_expired_claims(self) -> int: ...

    @overload
    def release_expired_claims(self, **given: Unpack[ReleaseArguments]) -> RequestReport: ...

    def release_expired_claims(self, **given: Any) -> int | RequestReport:
        """End the claims whose worker is gone, and return how many deliveries that requeues.

        With actor and reason it is an operator's request instead: for the claims whose lease is
        over, recorded as a command, and a preview unless `dry_run=False`.

        Args:
            given: nothing, or as `operations.requests.release_request` takes them.
        """
        if given:
            return perform(self, release_request(**given))
        return super().release_expired_claims()


@contextlib.contextmanager
def open_outbox(
    *,
    home: Home | None = None,
    config: Path | None = None,
    create: bool = False,
    short_lived: bool = False,
    debug: bool = False,
    clock: Clock | None = None,
) -> Iterator[Outbox]:
    """Open an outbox for a block.

    The session is the one that SPARK_REMOTE names, else that of the server of this home, else a
    local one that takes the home for itself.

    Args:
        home: the home; looked for if left out.
        config: the settings file; looked for if left out.
        create: create what is missing; the first time on a machine, this also leaves behind what
            makes later starts of Spark faster (runtime/class_archive.py).
        short_lived: start fast and compute slower, for a command of a minute at most.
        debug: show what Spark prints, on standard error.
        clock: the time.

    Raises:
        NoOutboxHere: there is none and it is not to be created.
        HomeInUse: another process works in this home and does not serve it.
        ServerUnreachable: the server does not answer.
        TornCommit: the newest commit of a log is not whole.
        FormatTooNew: a newer release wrote the logs.
        FormatTooOld: an older release wrote the logs, and they are not to be created.
        StoragePrecondition: the logs lie where two drivers can both win a commit.
        BadSettings: a setting breaks a rule.
    """
    home = home or find_home(create=create)
    settings = load_settings(home=home.root, path=config)
    with opened_spark(home, short_lived=short_lived, record_classes=create, debug=debug) as spark:
        tables = Tables(schema=default_schema())
        if create:
            single_driver = settings.storage.single_driver
            create_outbox(spark, home, tables, single_driver=single_driver)
        check_logs(spark, tables)
        outbox = Outbox(
            spark,
            tables=tables,
            settings=settings,
            statements=load_statements(home, tables),
            clock=clock,
            home=home,
            exclusive=not is_remote(spark),
        )
        try:
            yield outbox
        finally:
            outbox.close()

"""The outbox: the store, and what operators ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

from delta_outbox.core.clock import Clock
from delta_outbox.core.settings import Settings
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
from delta_outbox.runtime.home import Home
from delta_outbox.store.opening import check_logs, load_statements
from delta_outbox.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def outbox_on(
    spark: SparkSession,
    *,
    home: Home,
    settings: Settings,
    exclusive: bool,
    clock: Clock | None = None,
) -> Outbox:
    """Return the outbox of a home on a session that is there; whoever gets it closes it.

    Args:
        spark: the session.
        home: the home.
        settings: the settings.
        exclusive: this process has the home for itself.
        clock: the time.

    Raises:
        NoOutboxHere: there is none.
        FormatTooNew: a newer release wrote the logs.
        FormatTooOld: an older release wrote the logs.
        StoragePrecondition: the logs lie where two drivers can both win a commit.
    """
    tables = Tables(schema=default_schema())
    check_logs(spark, tables)
    return Outbox(
        spark,
        tables=tables,
        settings=settings,
        statements=load_statements(home, tables),
        clock=clock,
        home=home,
        exclusive=exclusive,
    )

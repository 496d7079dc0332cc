"""What tests of purges share: days of long ago, each with something that matters to a purge."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.integration.operating import clock
from tests.integration.outboxes import Store, events

from delta_outbox.core.clock import SystemClock
from delta_outbox.lifecycle.endings import EndOfClaim
from delta_outbox.lifecycle.results import Delivered, Rejected
from delta_outbox.operations.maintenance.purge import Purge
from delta_outbox.operations.maintenance.purge_request import PurgeReport, PurgeRequest
from delta_outbox.producer.candidates import complete

DAYS_AGO = {"copied": 30, "gone": 29, "dead": 28, "held": 27}


@dataclass(frozen=True, kw_only=True)
class Past:
    """The days.

    Args:
        days: name to the day of its events.
    """

    days: dict[str, date]

    @property
    def before(self) -> date:
        """Return a day after all of them."""
        return max(self.days.values()) + timedelta(days=1)


def live_long_ago(store: Store, folder: Path) -> Past:
    """Append and end events with clocks of long ago.

    `copied`: one is repeated on the day of `held`. `gone`: all delivered, one of them twice
    appended. `dead`: one is DEAD. `held`: one is scheduled, years from now.
    """
    days: dict[str, date] = {}
    for name, ago in DAYS_AGO.items():
        then = clock(-24 * ago)
        days[name] = then.now().date()
        outbox = store.outbox(folder, clock=then)
        new = events(name, 3)
        if name == "held":
            waits = [None, None, then.now() + timedelta(days=1000)]
            new = new.append_column("available_at", pa.array(waits, pa.timestamp("us", tz="UTC")))
        frame = store.spark.createDataFrame(complete(new, now=then.now()))
        frame.write.format("delta").mode("append").saveAsTable(store.tables.events)
        claim = outbox.claim(10)
        assert claim is not None
        results: list[EndOfClaim] = [Delivered()] * len(claim)
        if name == "dead":
            results[0] = Rejected(error="no")
        outbox.end(claim, results)
        outbox.close()
    for event_id, on in (("gone-000", "gone"), ("copied-000", "held")):
        created = f"timestamp'{days[on]} 00:00:00'"
        again = (event_id, "order.created", "again")
        store.insert(again, created_at=created, appended_at=created)
    return Past(days=days)


def purge(store: Store, folder: Path, past: Past, **given: Any) -> PurgeReport:
    """Purge what is older than the days, and report."""
    outbox = store.outbox(folder, clock=SystemClock({}))
    purging = Purge(outbox)
    try:
        who = {"actor": "ann", "reason": "no longer needed"}
        return purging.run(PurgeRequest(**{"before": past.before, **who, **given}))
    finally:
        purging.close()
        outbox.close()

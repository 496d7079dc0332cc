"""A relay of parcels, as a process of its own: `python parcels_relay.py AUTHOR run|report`.

Works in the home that OUTBOX_HOME names. `run` puts the workflows into force, if they are not, and
drains; `report` prints what is on record of each task, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from delta_outbox.api import open_outbox
from delta_outbox.core.clock import SystemClock
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.railway.modules import load
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.home import find_home
from delta_outbox.workflow_engine.execution.tasks import Tasks
from delta_outbox.workflow_engine.hosts.call import Setup

MODULES = ["parcels"]


def main(author: Path, what: str) -> None:
    """Do it.

    Args:
        author: folder of the module of workflows.
        what: run or report.
    """
    with open_outbox(home=find_home()) as outbox:
        if what == "report":
            endings = outbox.spark.sql(
                f"select event_id, reason, outcome from {outbox.tables.transitions} "
                "where from_state = 'CLAIMED' order by epoch, lane, sequence"
            )
            sys.stdout.write(f"{json.dumps([tuple(row) for row in endings.collect()])}\n")
            return
        writes = NumberedWrites(
            outbox.spark, outbox.tables, writer="workflows", clock=SystemClock()
        )
        if next(writes.last(), None) is None:
            rows = joined(rows_of(one) for one in load(MODULES, author))
            assert writes.append_after(None, {"version": "1", "rows": rows}, planned_by="tests")
        tasks = Tasks(outbox, Setup(modules=MODULES, folder=author))
        try:
            Relay(outbox, tasks=tasks).run(Mode.DRAIN)
        finally:
            tasks.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

"""How many lanes there are, and since which epoch: the numbered writes of `lanes`.

A change is two plans. The first, `closing`, is what makes it certain: from then on nobody claims
anything in the old epoch, and whoever comes by helps to end it. The second, `begun`, follows when
no lane of the old epoch can be appended to any more. Pure, but for the module that reads them.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from delta_outbox.delta.numbered_writes import NumberedWrite

WRITER: Final = "lanes"
MOST_LANES: Final = 1024
CLOSING: Final = "closing"
BEGUN: Final = "begun"


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """An epoch: the lanes as the last numbered write says they are.

    Args:
        plan_number: of the numbered write that says so; 0 if there is none yet.
        number: counts the changes of the number of lanes, from 0.
        lanes: how many there are, from 0 on.
        becomes: how many there are to be, while that is being changed; else None.
    """

    plan_number: int = 0
    number: int = 0
    lanes: int = 1
    becomes: int | None = None

    @property
    def is_ending(self) -> bool:
        """Say whether nothing may be claimed any more, for the next epoch is to begin."""
        return self.becomes is not None

    # twin: macros/storage/lane.sql::lane
    def lane_of(self, *, ordering_key: str | None, event_id: str) -> int:
        """Return the lane of an event.

        Args:
            ordering_key: as the event carries it.
            event_id: as the event carries it.
        """
        if self.lanes == 1:
            return 0
        return lane_of(ordering_key=ordering_key, event_id=event_id, lanes=self.lanes)

    def lanes_of(self, rows: pa.Table) -> list[int]:
        """Return the lane of each row.

        Args:
            rows: columns ordering_key and event_id, and any others.
        """
        if self.lanes == 1:
            return [0] * rows.num_rows
        keys, ids = rows["ordering_key"].to_pylist(), rows["event_id"].to_pylist()
        return [
            lane_of(ordering_key=key, event_id=event_id, lanes=self.lanes)
            for key, event_id in zip(keys, ids, strict=True)
        ]

    def parts(self, rows: pa.Table) -> dict[int, pa.Table]:
        """Return rows by their lane, in the order in which the lanes come first; each part keeps
        the order.

        Args:
            rows: columns ordering_key and event_id, and any others.
        """
        if self.lanes == 1:
            return {0: rows} if rows.num_rows else {}
        lanes = np.array(self.lanes_of(rows), dtype=np.int64)
        return {
            lane: rows.take(pa.array(np.flatnonzero(lanes == lane)))
            for lane in dict.fromkeys(lanes.tolist())
        }


FIRST: Final = Epoch()


def read_epoch(plan: NumberedWrite | None) -> Epoch:
    """Return what the last plan says.

    Args:
        plan: the last one of the writer `lanes`, None if there is none.
    """
    if plan is None:
        return FIRST
    given = plan.plan
    return Epoch(
        plan_number=plan.number,
        number=int(given["epoch"]),
        lanes=int(given["lanes"]),
        becomes=int(given["to"]) if given["step"] == CLOSING else None,
    )


def closing_plan(now: Epoch, *, lanes: int, actor: str, reason: str) -> dict[str, Any]:
    """Return the plan with which a change begins.

    Args:
        now: the lanes as they are.
        lanes: how many there are to be.
        actor: who asks.
        reason: why.
    """
    return {
        "step": CLOSING,
        "epoch": now.number,
        "lanes": now.lanes,
        "to": lanes,
        "actor": actor,
        "reason": reason,
    }


def begun_plan(closing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan with which a change is over.

    Args:
        closing: the plan with which it began.
    """
    return {
        "step": BEGUN,
        "epoch": int(closing["epoch"]) + 1,
        "lanes": int(closing["to"]),
        "lanes_before": int(closing["lanes"]),
        "actor": closing["actor"],
        "reason": closing["reason"],
    }


def lane_of(*, ordering_key: str | None, event_id: str, lanes: int) -> int:
    """Return the lane of an event.

    Args:
        ordering_key: as the event carries it.
        event_id: as the event carries it.
        lanes: the number of lanes of the current epoch, at least 1.
    """
    scope = event_id if ordering_key is None else ordering_key
    return zlib.crc32(scope.encode()) % lanes

"""What a relay asks of whoever runs the tasks of workflows.

A task is an event whose destination is a third party. The relay claims it as any other event, one
in a claim because each lasts as long as it lasts, and code of its author makes the call instead of
a publisher. `workflow_engine/` runs them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from delta_outbox.core.arrow import Mask
from delta_outbox.lifecycle.claims import Claim
from delta_outbox.lifecycle.policy import DeliveryPolicy
from delta_outbox.store.unknown_results import PublishResult

Answer = Future[Sequence[PublishResult]]

AT_ONCE: Final = 1000  # tasks of a third party without a limit of its own


@dataclass(frozen=True, kw_only=True, slots=True)
class Followed:
    """What has come of reading what is on record.

    Args:
        wrote: whether something that follows was written, since the last time that somebody asked:
            something new may be open.
        more: whether there may be more on record than was read.
    """

    wrote: bool
    more: bool


class TaskRunner:
    """Runs the tasks of workflows. This one is of an outbox that has none."""

    @property
    def third_parties(self) -> Collection[str]:
        """Return the destinations that it serves."""
        return ()

    @property
    def problem(self) -> str | None:
        """Return why tasks go on by former workflows, or have no hosts; None if all is well."""
        return None

    def policies(self) -> tuple[DeliveryPolicy, ...]:
        """Return the delivery policies of tasks; the same object as long as nothing changes."""
        return ()

    @property
    def is_starting(self) -> bool:
        """Say whether there is no room for any task, and will be within a second or two."""
        return False

    def allowed(self, deliveries: pa.Table) -> Mask:
        """Say which tasks there is room for.

        Args:
            deliveries: columns of `claims.DELIVERIES`, in order.
        """
        return np.zeros(deliveries.num_rows, dtype=np.bool_)

    def handed_over(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """Return claims of what waits for people as they are to be made: `todo` holds each until
        its item expires. What is over already stays with the relay, which ends it.

        Args:
            claims: of one item each; not on record yet.
        """
        return claims

    def start(self, claims: Sequence[tuple[Claim, float]]) -> Sequence[Answer]:
        """Begin an attempt of each task, and return what will have become of it.

        Args:
            claims: of one task each, read back from the log, and the seconds of `boot_time` after
                which nothing of it may be sent.
        """
        del claims
        return ()

    def too_late(self, endings: pa.Table) -> None:
        """Take note of endings that do not count, for others have ended their claims meanwhile.

        Args:
            endings: as `claims.ending_rows` makes them.
        """

    def check(self) -> None:
        """Raise what keeps workflows from going on."""

    def follow(self) -> Future[Followed]:
        """Have what is on record read from now on, and what follows from it written; return what
        will have come of that.
        """
        nothing = Future[Followed]()
        nothing.set_result(Followed(wrote=False, more=False))
        return nothing

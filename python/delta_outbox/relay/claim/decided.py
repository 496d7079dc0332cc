"""Endings that are decided and not on record yet."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence

import pyarrow as pa

from delta_outbox.core.errors import LaneClosed, SequenceTaken
from delta_outbox.delta.log_writer import ATTEMPTS
from delta_outbox.lifecycle.claims import Claim, claim_rows
from delta_outbox.store.transition_log import TransitionLog

logger = logging.getLogger(__name__)


class Decided:
    """The endings of one relay, which go on record with its next append, lane by lane.

    Args:
        forget_plan: called where a log has moved on, so that what was planned of it is void.
        too_late: is given the endings, as `add` took them, of a claim that others have ended.
    """

    def __init__(
        self, forget_plan: Callable[[], None], too_late: Callable[[pa.Table], None]
    ) -> None:
        self._forget_plan = forget_plan
        self._too_late = too_late
        # With the position at which the claim of each was made.
        self._of: dict[TransitionLog, list[tuple[int, pa.Table]]] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    @property
    def lanes(self) -> list[TransitionLog]:
        """Return the lanes that have some."""
        return [*self._of]

    def add(self, log: TransitionLog, rows: pa.Table, *, claimed: int) -> None:
        """Take the endings of a claim.

        Args:
            log: of its lane.
            rows: as `claims.ending_rows` makes them.
            claimed: the position at which it was made.
        """
        self._of.setdefault(log, []).append((claimed, rows))

    def append(self, log: TransitionLog, claims: Sequence[Claim]) -> bool:
        """Append the endings and new claims of a lane at once; say whether they are on record.

        If somebody was first, the claims are void, and so is what was planned. The endings go with
        the next append, held against what came in between.

        Args:
            log: of the lane.
            claims: new ones.
        """
        rows = [*self._live(log), *map(claim_rows, claims)]
        try:
            if rows:
                log.append(pa.concat_tables(rows, promote_options="default"))
        except SequenceTaken as taken:
            logger.info("sequence_taken", extra={"sequence": log.sequence + 1})
            self._forget_plan()
            log.catch_up()
            if isinstance(taken, LaneClosed):  # every claim there has been ended
                for _, late in self._of.pop(log, ()):
                    self._too_late(late)
            return False
        self._of.pop(log, None)
        return True

    def finish(self) -> None:
        """Append the endings of all lanes; if one fails, the others are on record all the same."""
        with contextlib.ExitStack() as lanes:
            for log in self.lanes:
                lanes.callback(self._finish, log)

    def _finish(self, log: TransitionLog) -> None:
        for _ in range(ATTEMPTS):
            if self.append(log, ()):
                return
        raise SequenceTaken(writer=log.app_id, number=log.sequence + 1)

    def _live(self, log: TransitionLog) -> list[pa.Table]:
        """Keep the endings of a lane whose claims are still live, and return them."""
        kept = []
        parts = self._of.get(log, ())
        for (claimed, rows), live in zip(parts, log.without_void(parts), strict=True):
            if live.num_rows < rows.num_rows:  # what became of these is for others to say
                self._forget_plan()
            if live.num_rows:
                kept.append((claimed, live))
            else:
                self._too_late(rows)
        if kept:
            self._of[log] = kept
        else:
            self._of.pop(log, None)
        return [rows for _, rows in kept]

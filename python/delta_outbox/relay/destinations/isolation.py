"""Says what each destination may be asked now, by its pause, breaker, rates and workers.

The state lives in this process; what others must see goes to `DestinationStates`. With one
destination that has no limits nothing here costs anything.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import mask_of
from delta_outbox.core.clock import NEVER
from delta_outbox.core.settings import DestinationLimits
from delta_outbox.lifecycle.claims import Claim
from delta_outbox.lifecycle.endings import Attempted
from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected, Unknown
from delta_outbox.lifecycle.results_by_column import Results
from delta_outbox.lifecycle.states import Reason
from delta_outbox.relay.destinations.breaker import Breaker, BreakerState
from delta_outbox.relay.destinations.pace import Pace
from delta_outbox.relay.destinations.rates import Bucket, KeyBuckets
from delta_outbox.relay.destinations.task_runner import AT_ONCE, TaskRunner
from delta_outbox.store.destination_states import OpenBreaker
from delta_outbox.store.open_deliveries import PerDestination
from delta_outbox.store.unknown_results import PublishResult

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

logger = logging.getLogger(__name__)

_ANSWERED, _SILENT, _UNTRIED, _NOT_ASKED = range(4)
_OF_TASKS: Final = {
    Reason.COMPLETED: _ANSWERED,
    Reason.REJECTED: _ANSWERED,
    Reason.FAILED: _SILENT,
    Reason.UNKNOWN: _SILENT,
    Reason.EXHAUSTED: _SILENT,
    Reason.UNCERTAIN: _SILENT,
    Reason.EXPIRED: _NOT_ASKED,
    Reason.RELEASED: _NOT_ASKED,
}


class Isolation:
    """The destinations of one relay, isolated from each other.

    `pace` bounds what a claim holds.

    Args:
        outbox: their settings, what everybody must know of them, and the time.
        tasks: runs what goes to a third party: a destination that needs no workers of Spark; there
            are none if left out.
    """

    def __init__(self, outbox: Store, tasks: TaskRunner | None = None) -> None:
        self._settings = outbox.settings
        self._runner = tasks or TaskRunner()
        self._states = outbox.destinations
        self._clock = outbox.clock
        self._worker_id = outbox.worker_id
        self._workers = outbox.settings.relay.parallelism or os.cpu_count() or 1
        self._limits: dict[str, DestinationLimits] = {}
        self._breakers: dict[str, Breaker] = {}
        self._buckets: dict[str, Bucket] = {}
        self._keys: dict[str, KeyBuckets] = {}
        self._part = Fraction(1)  # of the lanes
        self._paused: frozenset[str] = frozenset()
        self.pace = Pace()

    # --- what there is -----------------------------------------------------------------------

    def know(self, destinations: Iterable[str]) -> None:
        """Take destinations into account, with what others know of them; those that are known
        already stay as they are.

        Args:
            destinations: their names.
        """
        now = self._clock.monotonic()
        new = {*destinations} - self._limits.keys()
        for name in new:
            self._limits[name] = limits = self._settings.limits_of(name)
            self._breakers[name] = Breaker(
                failures=limits.breaker_failures, seconds=limits.breaker_seconds
            )
            if limits.rate_per_second is not None:
                self._buckets[name] = Bucket(limits.rate_per_second * float(self._part), now=now)
            if limits.rate_per_key_per_second is not None:
                self._keys[name] = KeyBuckets(limits.rate_per_key_per_second)
        if new and self.is_isolated:  # others may have left a breaker of a new one open
            self.reload()

    def work_on(self, part: Fraction) -> None:
        """Keep rates, and the tasks of third parties, to the part of the lanes that we work on:
        lanes are disjoint, so all relays together keep to the whole.

        Args:
            part: of all lanes, from 0 to 1.
        """
        if part == self._part:
            return
        self._part, now = part, self._clock.monotonic()
        for name, bucket in self._buckets.items():
            bucket.fill_at((self._limits[name].rate_per_second or 0.0) * float(part), now)

    @property
    def is_isolated(self) -> bool:
        """Say whether claims are made for each destination: there are several, or it has limits."""
        return len(self._limits) > 1 or any(
            limits != DestinationLimits() for limits in self._limits.values()
        )

    def follow(self) -> bool:
        """Read what others have written down since; say whether other destinations may be asked."""
        if not (self.is_isolated and self._states.has_news()):
            return False
        before = self.unavailable()
        self.reload()
        return before != self.unavailable()

    def reload(self) -> None:
        """Read what is known of the destinations: pauses, and breakers that others left open."""
        known = self._states.read()
        self._paused = known.paused
        now = self._clock.monotonic()
        gone: dict[str, OpenBreaker | None] = {}
        for name, found in known.breakers.items():
            breaker = self._breakers.get(name)
            if breaker is None:  # it may be a third party of relays with workflows
                continue
            if self._limits[name].breaker_failures is None:
                gone[name] = None  # its settings no longer have one
            elif not breaker.is_open:
                breaker.reopen(found.error, now=now, seconds=self._states.wait(found))
        if gone:
            self._states.record(gone, planned_by=self._worker_id)

    # --- what may be asked -------------------------------------------------------------------

    def unavailable(self) -> frozenset[str]:
        """Return the destinations that nothing is to be taken for: paused, or open."""
        now = self._clock.monotonic()
        is_open = {
            name
            for name, breaker in self._breakers.items()
            if breaker.state(now) is BreakerState.OPEN
        }
        return (self._paused & self._limits.keys()) | is_open

    def per_destination(self, *, batch_size: int, room: int) -> PerDestination | None:
        """Return how to ask for what is eligible; None if destinations need not be isolated.

        Args:
            batch_size: deliveries per claim.
            room: deliveries to plan, of all destinations together.
        """
        unavailable = self.unavailable()
        if not (self.is_isolated or unavailable):
            return None
        share = -(-room // max(1, len(self._limits)))
        return PerDestination(unavailable=unavailable, each=max(batch_size, share))

    def is_free(self, destination: str) -> bool:
        """Say whether a destination may be served together with others: no limits, no trouble.

        Args:
            destination: its name.
        """
        breaker = self._breakers[destination]
        return (
            destination not in (*self._paused, *self._buckets, *self._keys)
            and self._limits[destination].workers is None
            and not breaker.is_open
            and breaker.in_a_row == 0
        )

    def room(self, destination: str, most: int) -> int:
        """Return how many deliveries may be claimed for a destination now.

        Args:
            destination: its name.
            most: that are wanted.
        """
        if destination in self._paused:
            return 0
        now = self._clock.monotonic()
        bucket = self._buckets.get(destination)
        found = [most, self._breakers[destination].room(now)]
        if bucket is not None:
            found.append(bucket.available(now))
        return min(one for one in found if one is not None)

    def allowed(self, destination: str) -> Callable[[pa.Table], npt.NDArray[np.bool_]] | None:
        """Return what says which deliveries the rate of their key lets pass; None for all.

        Args:
            destination: its name.
        """
        keys = self._keys.get(destination)
        if keys is None:
            return None
        return lambda rows: keys.allowed(_keys_of(rows), self._clock.monotonic())

    def at_once(self, third_party: str) -> int:
        """Return how many tasks may be in flight for a third party; one at least, on few lanes too.

        Args:
            third_party: its name; `todo` for people.
        """
        workers = self._settings.limits_of(third_party).workers
        return AT_ONCE if workers is None else max(1, math.floor(workers * self._part))

    def slices(self, destinations: Sequence[str], in_use: Mapping[str, int], taken: int) -> int:
        """Return in how many slices a claim may be published; 0 if it must wait.

        A slice is kept for each other destination, so that one that hangs blocks nobody else. An
        only destination without a limit has one for each claim: Spark has slots for more.

        Args:
            destinations: of the claim.
            in_use: destination to slices of what is in flight for it.
            taken: slices of all that is in flight.
        """
        others = self._limits.keys() - {*destinations, *self._runner.third_parties}
        cap = max(1, self._workers - len(others))
        asked = [
            limit for name in destinations if (limit := self._limits[name].workers) is not None
        ]
        if asked:
            cap = min(self._workers, *asked)
        used = max(in_use.get(name, 0) for name in destinations)
        return max(int(not (others or asked)), min(cap - used, self._workers - taken))

    def share(self, limit: int) -> int:
        """Return how much of a limit one destination may use up.

        Args:
            limit: deliveries claimed at any instant.
        """
        return max(1, limit // max(1, len(self._limits)))

    def has_others(self, destinations: Iterable[str]) -> bool:
        """Say whether there are others that may be asked.

        Args:
            destinations: that are at work already.
        """
        return bool(self._limits.keys() - set(destinations) - self.unavailable())

    def wait(self, since: float) -> float:
        """Return the seconds until rates let something pass that they held back; `NEVER` if they
        held back nothing.

        Args:
            since: monotonic seconds just before the last choice of claims, which found none. What a
                rate held back then counts, also if it lets that pass by now.
        """
        waits = [bucket.wait(since) for bucket in self._buckets.values()]
        waits += [keys.wait(since) for keys in self._keys.values()]
        held_back = min((wait for wait in waits if wait > 0), default=NEVER)
        return max(0.0, held_back - (self._clock.monotonic() - since))

    def seconds_to_probe(self) -> float:
        """Return the seconds until a breaker is probed that has not failed a probe in this run.

        A destination whose probe has failed in this run may be away for long: a relay that is to
        end does not wait for it. Nor is there anything to wait for once a probe is due: what there
        is for it has been looked for by then.
        """
        now = self._clock.monotonic()
        waits = [
            one.wait(now)
            for name, one in self._breakers.items()
            if one.failed_probes == 0 and name not in self._paused
        ]
        return min((wait for wait in waits if wait), default=NEVER)

    # --- what has happened -------------------------------------------------------------------

    def started(self, destinations: Iterable[str], claim: Claim) -> None:
        """Note that a claim is about to be sent.

        Args:
            destinations: where to.
            claim: on record by now.
        """
        now = self._clock.monotonic()
        for name in destinations:
            self._breakers[name].started()
            if name in self._buckets:
                self._buckets[name].take(len(claim), now)
            if name in self._keys:
                self._keys[name].take(_keys_of(claim.deliveries), now)

    def completed(
        self,
        claim: Claim,
        results: Sequence[PublishResult],
        *,
        to: str,
        seconds: float | None = None,
    ) -> bool:
        """Note what became of a claim; say whether what is planned no longer holds.

        Args:
            claim: that was sent.
            results: one per delivery, in its order.
            to: its destinations, joined by `|`.
            seconds: that its publishing lasted; None if that says nothing of further claims.
        """
        others = Results.of(results).others
        if seconds is not None:
            unsent = sum(isinstance(one, NotSent) for one in others.values())
            size = len(claim)
            self.pace.took(to, size=size, sent=size - unsent, seconds=seconds)
        if not self.is_isolated:
            return False
        answered = np.full(len(claim), _ANSWERED)
        of_tasks = to in self._runner.third_parties
        answered[list(others)] = [_answered(one, of_tasks=of_tasks) for one in others.values()]
        now = self._clock.monotonic()
        changed = []
        names = to.split("|")
        for name in names:
            its = np.ones(len(claim), dtype=bool)
            if len(names) > 1:
                its = mask_of(pc.equal(claim.deliveries["destination"], name))
            if (answered[its] == _NOT_ASKED).all():
                self._breakers[name].not_asked()
                continue
            found = answered[its & (answered < _UNTRIED)] == _ANSWERED
            error = _last_error(one for place, one in others.items() if its[place])
            if self._breakers[name].completed(found.tolist(), error=error, now=now):
                changed.append(name)
        self._record(changed)
        return bool(changed)

    def tolerates(self, destination: str, cause: str) -> bool:
        """Note that a destination does not answer; say whether the relay can go on without it.

        It can if the destination has a breaker, which opens, or is paused.

        Args:
            destination: its name.
            cause: why, without secrets.
        """
        self.know([destination])
        breaker = self._breakers[destination]
        if breaker.opens:
            breaker.trip(cause, now=self._clock.monotonic())
            self._record([destination])
            return True
        self.reload()
        return destination in self._paused

    def _record(self, changed: Iterable[str]) -> None:
        now = self._clock.monotonic()
        breakers: dict[str, OpenBreaker | None] = {}
        for name in changed:
            breaker = self._breakers[name]
            wait = breaker.wait(now)
            breakers[name] = (
                None if wait is None else self._states.breaker(wait=wait, error=breaker.error)
            )
            logger.warning("breaker", extra={"destination": name, "state": str(breaker.state(now))})
        if breakers:
            self._states.record(breakers, planned_by=self._worker_id)


def _keys_of(deliveries: pa.Table) -> list[str | None]:
    keys: list[str | None] = pc.coalesce(
        deliveries["ordering_key"], deliveries["partition_key"]
    ).to_pylist()
    return keys


def _answered(result: PublishResult, *, of_tasks: bool) -> int:
    if isinstance(result, Attempted):
        found = _OF_TASKS[result.reason]
        return _NOT_ASKED if found == _SILENT and not result.is_verdict else found
    if of_tasks and isinstance(result, Rejected):  # a row that only looks like a task
        return _NOT_ASKED
    if isinstance(result, Delivered | Rejected):
        return _ANSWERED
    return _SILENT if isinstance(result, Failed | Unknown) else _UNTRIED


def _last_error(results: Iterable[PublishResult]) -> str:
    found = [one.error for one in results if isinstance(one, Failed | Unknown | Attempted)]
    return (found[-1] or "unknown") if found else ""

"""The loop of the relay.

One append carries the endings of what was published and the claims of what comes next. What is
believed has been read back; what lost against another writer is decided again; what is in flight
is always finished. While claims are being published, more are planned.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from dataclasses import replace
from functools import partial
from typing import Final

from delta_outbox.core.clock import boot_time
from delta_outbox.core.redaction import describe
from delta_outbox.lifecycle.claims import ending_rows, left_after, results_without_sending
from delta_outbox.lifecycle.results import NotSent
from delta_outbox.lifecycle.results_by_column import Results
from delta_outbox.projection.tails import LARGE_QUERY_ROWS
from delta_outbox.relay.claim.chooser import Chooser
from delta_outbox.relay.claim.decided import Decided
from delta_outbox.relay.claim.flight import Flight, Held
from delta_outbox.relay.destinations.destinations import Destinations
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.destinations.task_runner import Followed, TaskRunner
from delta_outbox.relay.plan.planning import Planning
from delta_outbox.relay.plan.timing import NEWS_SECONDS
from delta_outbox.relay.publish.publishing import margin_seconds
from delta_outbox.relay.publish.publishing_pause import PublishingPause
from delta_outbox.relay.summary import Mode, Run, Summary
from delta_outbox.runtime.query_mode import use_large_query_mode
from delta_outbox.store.heartbeat import BEAT_SECONDS, Heartbeat
from delta_outbox.store.lane_change import LaneChange
from delta_outbox.store.store import Store
from delta_outbox.store.unknown_results import PublishResult

logger = logging.getLogger(__name__)

ENDING_SECONDS: Final = 0.5  # between polls of what others have still claimed, as an epoch ends
PAUSE_POLL_SECONDS: Final = 1.0  # between two checks whether this machine can publish again
COMPLETION_SECONDS: Final = 1.0  # between polls of the other lanes while something is in flight


class Relay:
    """A relay, on one lane or several.

    Args:
        outbox: the store to work on; its worker id is the relay's.
        limit: events claimed at any instant and per batch, at most; if left out, `batch_size` per
            batch, and `claims_in_flight` batches for each destination.
        tasks: runs the tasks of workflows; there are none if left out.
    """

    def __init__(
        self, outbox: Store, *, limit: int | None = None, tasks: TaskRunner | None = None
    ) -> None:
        self._tasks = tasks = tasks or TaskRunner()
        self._outbox = outbox
        self._clock = outbox.clock
        settings = outbox.settings.relay
        self._limit = limit
        self._batch_size = min(settings.batch_size, limit or settings.batch_size)
        self._heart = Heartbeat(
            outbox.spark,
            outbox.tables,
            relay_id=outbox.worker_id,
            clock=outbox.clock,
            presence=outbox.presence(),
            says=lambda: {
                "batch_size": self._batch_size,
                "batch_bytes": settings.batch_bytes,
                "workflows_problem": self._tasks.problem,
            },
        )
        outbox.run_tasks_by(tasks.policies)
        self._isolation = Isolation(outbox, tasks)
        self._planning = Planning(
            outbox, self._heart, batch_size=self._batch_size, isolation=self._isolation
        )
        self._flight = Flight(self._publish, outbox.clock)
        self._chooser = Chooser(
            outbox,
            self._flight,
            self._isolation,
            claims=settings.claims_in_flight,
            batch_size=self._batch_size,
            limit=limit,
            tasks=tasks,
        )
        self._destinations = Destinations(
            outbox, self._isolation, forget_plan=self._planning.forget
        )
        self._decided = Decided(self._planning.forget, tasks.too_late)
        self._change = LaneChange(outbox)
        self._summary = Summary()
        self._taken = False
        self._publishing_pause = PublishingPause(self._destinations.publishing, outbox.clock)

    def run(
        self,
        mode: Mode,
        *,
        max_wait: float = 60.0,
        stop: threading.Event | None = None,
        on_progress: Callable[[Summary], None] | None = None,
    ) -> Summary:
        """Run until the mode says that it is done, or until told to stop.

        Args:
            mode: once: one batch; drain: until nothing is open or all that is left waits longer
                than `max_wait`; continuous: until told to stop.
            max_wait: seconds.
            stop: set it to stop: what is in flight is finished and recorded, nothing stays claimed.
            on_progress: told after every batch.

        Returns:
            What the run did.

        Raises:
            PublisherUnavailable: a destination does not answer; nothing was claimed.
            UnknownDestination: a policy names a destination that the settings do not have.
            LogRewound: the log was restored to an older state.
        """
        stop = stop or threading.Event()
        run = Run(mode=mode, max_wait=max_wait, stop=stop, on_progress=on_progress)
        started = self._clock.monotonic()
        if self._planning.has_unseen_events():
            self._flight.beside(self._destinations.workers.start)
        try:
            self._destinations.prepare()
            self._planning.start(once=mode is Mode.ONCE)
            self._heart.beat("started")
        except BaseException:
            self._flight.close()
            raise

        def work() -> None:
            unread = mode is Mode.ONCE  # its batch is of what follows from all that is on record
            while unread and not stop.is_set():
                unread = self._followed(run).more
            self._loop(run)

        self._run_to_its_end(
            work,
            partial(self._finish, run),
            self._planning.finish,
            partial(self._heart.beat, "stopped"),
        )
        duration = round(self._clock.monotonic() - started, 3)
        self._summary = replace(
            self._summary, waiting=self._planning.open, duration_seconds=duration
        )
        logger.info("relay_finished", extra=self._summary.as_dict())
        return self._summary

    def _run_to_its_end(self, *steps: Callable[[], object]) -> None:
        """Take each step, whatever became of those before; the first error is raised in the end."""
        failed: BaseException | None = None
        for step in steps:
            try:
                step()
            except BaseException as error:  # noqa: BLE001 - raised below
                if failed is not None:
                    logger.error("relay_end_failed", extra={"error": describe(error)})
                failed = failed or error
        if failed is not None:
            raise failed

    # --- the loop ----------------------------------------------------------------------------

    def _loop(self, run: Run) -> None:
        """Turn by turn: take what has completed, and append its endings with the next claims. With
        nothing to append, poll, if that may show something; else wait.
        """
        once = run.mode is Mode.ONCE
        while not run.stop.is_set():
            self._beat()
            self._complete(run)
            self._destinations.check_opened()
            if run.stop.is_set():
                return
            done = once and self._taken
            is_paused = self._publishing_pause.lasts()
            may_claim = not (done or self._is_ending or is_paused)
            if self._decided and may_claim:
                self._planning.plan_new_events(alive=self._alive())
            chosen_at = self._clock.monotonic()
            claims = self._choose(once=once) if may_claim else []
            if claims or self._decided:
                self._append(claims)
            elif self._flight:
                spare = self._chooser.spare(self._planning.select())
                if may_claim and self._planning.is_due(spare):
                    self._poll(once=once, is_idle=spare.is_idle)
                else:
                    self._wait_for_completion(news=may_claim and self._planning.awaits_news(spare))
            elif done or not self._finish_lane_change(run):
                return
            elif is_paused or not self._planning.is_due():
                if not self._wait_for_room(run, is_paused=is_paused, since=chosen_at):
                    return
            else:
                self._poll(once=once)
                if not self._planning.has_work:
                    if self._is_done(run):
                        return
                    self._wait_for_news(run)

    def _wait_for_room(self, run: Run, *, is_paused: bool, since: float) -> bool:
        """Wait a little for this machine, for destinations, or for hosts of tasks; False if the run
        does not wait. `since` is when claims were last chosen, and there were none to make.
        """
        if is_paused:
            seconds, pause = self._publishing_pause.seconds, PAUSE_POLL_SECONDS
        else:
            seconds = self._isolation.wait(since)
            if self._tasks.is_starting:
                seconds = min(seconds, COMPLETION_SECONDS)
            pause = min(max(seconds, 0.01), COMPLETION_SECONDS)
        if not run.waits(seconds):
            return False
        run.stop.wait(pause)
        return True

    def _wait_for_completion(self, *, news: bool) -> None:
        """Wait until something that is in flight has completed, or for a second; if asked, until
        new events are there.
        """
        until = time.monotonic() + COMPLETION_SECONDS
        while not self._flight.wait(NEWS_SECONDS if news else COMPLETION_SECONDS):
            if time.monotonic() >= until or (news and self._planning.has_news()):
                return

    def _wait_for_news(self, run: Run) -> None:
        """Wait until another poll may be of use, or until something new can be seen at no cost."""
        until = time.monotonic() + min(self._planning.pause(), BEAT_SECONDS)
        while (left := until - time.monotonic()) > 0 and not self._planning.has_news():
            if run.stop.wait(min(left, NEWS_SECONDS)):
                return

    def _finish(self, run: Run) -> None:
        """Finish what is in flight, and record each claim as it ends, whatever else goes wrong:
        another may last long, and whoever stops us may not wait for it.
        """
        complete = partial(self._complete, run)
        failed: Exception | None = None
        try:
            while self._flight:
                self._flight.wait(COMPLETION_SECONDS)
                try:
                    self._run_to_its_end(complete, self._decided.finish, self._heart.beat)
                except Exception as error:  # noqa: BLE001 - raised when all has ended
                    failed = failed or error
            if failed is not None:
                raise failed
        finally:
            self._flight.close()
            self._decided.finish()

    def _beat(self) -> None:
        """Say that we are alive, and see whether somebody changes the lanes, or has seen that a
        destination does not answer.
        """
        if not self._heart.beat():
            return
        lanes_differ, destinations_differ = self._outbox.logs.watch(), self._isolation.follow()
        if lanes_differ or destinations_differ:
            self._planning.forget()

    @property
    def _is_ending(self) -> bool:
        """Say whether nothing may be claimed any more: the lanes are being changed."""
        return self._outbox.logs.epoch.is_ending

    def _finish_lane_change(self, run: Run) -> bool:
        """Finish a change of the lanes, if there is one, with nothing of ours in flight: whoever
        asked for it may be gone. False if what others have in flight takes too long.
        """
        until = self._clock.monotonic() + run.max_wait
        while self._is_ending and not self._change.step(own_are_over=True):
            late = run.mode is not Mode.CONTINUOUS and self._clock.monotonic() > until
            if late or run.stop.wait(ENDING_SECONDS):
                return False
            self._beat()
        return True

    def _poll(self, *, once: bool, is_idle: bool = False) -> None:
        self._destinations.prepare()
        while True:
            self._planning.poll(
                alive=self._alive(),
                takes_over=once or self._summary.claimed > 0,
                is_idle=is_idle,
            )
            # With another destination more may be listed, and be for others again.
            if not self._destinations.prepare_former(self._planning.claimed_for):
                break
        self._isolation.work_on(self._planning.part)
        window = self._planning.select()
        if window is not None and len(window) >= LARGE_QUERY_ROWS:
            use_large_query_mode(self._outbox.spark)

    def _alive(self) -> set[str]:
        return {held.claim.claim_id for held in self._flight.held()}

    def _is_done(self, run: Run) -> bool:
        """Say whether a run is over that has nothing to claim."""
        if run.mode is Mode.CONTINUOUS:
            return False
        if run.mode is Mode.ONCE:
            return True
        if not self._planning.is_all_done and run.waits(self._planning.seconds_to_wait()):
            return False
        followed = self._followed(run)
        return not (followed.wrote or followed.more)

    def _followed(self, run: Run) -> Followed:
        """Wait until what follows in workflows is written once more, or until told to stop."""
        answer = self._tasks.follow()
        while not wait([answer], COMPLETION_SECONDS).done:
            self._beat()
            if run.stop.is_set():
                return Followed(wrote=False, more=True)
        return answer.result()

    # --- claims ------------------------------------------------------------------------------

    def _choose(self, *, once: bool) -> list[Held]:
        """Take what may be claimed now, in claims that are not on record yet."""
        chosen: list[Held] = []
        window = self._planning.select()
        if window is not None:
            self._destinations.workers.start()
        ends = self._planning.take_ends(self._room())
        if ends.num_rows:
            chosen.append(self._chooser.held(None, self._outbox.new_claim(ends)))
        if window is not None and not (once and chosen):
            self._chooser.choose(window, chosen, once=once)
        return chosen

    def _room(self) -> int:
        """Return how many deliveries may be claimed besides what is in flight."""
        if self._limit is None:
            return self._batch_size
        return max(0, self._limit - sum(len(held.claim) for held in self._flight.held()))

    def _append(self, claims: list[Held]) -> None:
        """Append the endings that are decided and new claims, lane by lane."""
        lanes = (*self._decided.lanes, *(held.log for held in claims))
        for log in dict.fromkeys(lanes):
            begun = [held for held in claims if held.log is log]
            claimed_at, on_boot_clock = self._clock.monotonic(), boot_time()
            if self._decided.append(log, [held.claim for held in begun]):
                self._begin(begun, log.sequence, claimed_at, on_boot_clock)

    def _begin(
        self, claims: Sequence[Held], sequence: int, claimed_at: float, on_boot_clock: float
    ) -> None:
        """Begin what a lane has just taken: publish it, hand it over, or end it.

        Args:
            claims: of one lane.
            sequence: their position.
            claimed_at: monotonic seconds before they were appended.
            on_boot_clock: the same moment by `boot_time`, which goes on while the machine sleeps.
        """
        tasks = []
        for held in claims:
            self._taken = True
            lease = held.claim.lease_seconds
            held.until = claimed_at + lease - margin_seconds(lease)
            held.sequence = sequence
            if held.claim.held_until is not None:  # a person has it now
                self._planning.list_by(held.claim.held_until)
                continue
            if held.is_released:
                self._end(held, [NotSent()] * len(held.claim))
            elif held.kind is None:
                self._end(held, results_without_sending(held.claim))
            else:
                self._isolation.started(held.to.split("|"), held.claim)
                if held.to in self._tasks.third_parties:
                    tasks.append(held)
                else:
                    self._flight.start(held)
        answers = self._tasks.start(
            [(held.claim, on_boot_clock + held.until - claimed_at) for held in tasks]
        )
        for held, answer in zip(tasks, answers, strict=True):
            self._flight.follow(held, answer)

    # --- publishing --------------------------------------------------------------------------

    def _publish(self, held: Held) -> Results[PublishResult]:
        started = self._clock.monotonic()
        results = self._destinations.publishing.publish(
            held.claim,
            seconds=held.until - started,
            slices=held.slices,
        )
        held.seconds = self._clock.monotonic() - started
        return self._outbox.unknown_results.of_published(
            held.claim,
            results,
            wait_until_over=lambda: self._clock.sleep(held.until - self._clock.monotonic()),
        )

    def _complete(self, run: Run) -> None:
        """Decide the endings of what has been published."""
        for held, results in self._flight.completed():
            self._end(held, results)
            if self._isolation.completed(held.claim, results, to=held.to, seconds=held.seconds):
                self._planning.forget()
            if run.on_progress:
                run.on_progress(self._summary)
        self._tasks.check()

    def _end(self, held: Held, published: Sequence[PublishResult]) -> None:
        """Decide how a claim ends; the endings go with the next append."""
        size = len(held.claim)
        held, results = held.ended(published)
        if len(results) < size:  # the rest stays claimed: the next poll asks again
            self._planning.forget()
            if not results:
                return
        endings = self._outbox.decide(held.claim, results, claim_size=size)
        rows = ending_rows(held.claim, endings, now=self._clock.now(), claim_size=size)
        self._decided.add(held.log, rows, claimed=held.sequence)
        self._summary = self._summary.plus(len(held.claim), endings)
        policies = self._outbox.policies_in_force
        self._planning.requeue(
            held.claim.claim_id, left_after(held.claim.deliveries, rows, policies)
        )
        logger.info(
            "batch",
            extra={
                "claim_id": held.claim.claim_id,
                "size": len(held.claim),
                **self._summary.as_dict(),
            },
        )

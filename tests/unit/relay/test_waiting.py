"""For what a relay waits that can claim none of what it has planned, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from delta_outbox.core.clock import NEVER
from delta_outbox.relay import Mode, Relay
from delta_outbox.relay.claim.flight import Held
from delta_outbox.relay.destinations.task_runner import Followed
from delta_outbox.relay.plan.window import Kind
from delta_outbox.relay.publish.publishing import margin_seconds
from delta_outbox.relay.summary import Run
from delta_outbox.testing.conformance.clock import ManualClock


@pytest.mark.parametrize(
    ("seconds", "is_starting", "waits"),
    [(NEVER, False, False), (NEVER, True, True), (61.0, False, False), (0.01, False, True)],
)
def test_a_drain_waits_for_what_comes_soon(
    *, seconds: float, is_starting: bool, waits: bool
) -> None:
    """A drain waits for rates, and for hosts that start; for nothing else, nor for long."""
    relay = object.__new__(Relay)
    relay._isolation = cast("Any", SimpleNamespace(wait=lambda _: seconds))
    relay._tasks = cast("Any", SimpleNamespace(is_starting=is_starting))
    stop = Event()
    if seconds > 1:
        stop.set()  # it does not take the second
    for mode, goes_on in ((Mode.DRAIN, waits), (Mode.ONCE, False)):
        run = Run(mode=mode, max_wait=60.0, stop=stop)
        assert goes_on == relay._wait_for_room(run, is_paused=False, since=0.0)


def test_who_waits_for_what_follows_can_be_told_to_stop() -> None:
    """A drain that waits until what follows in workflows is written says that it is alive, ends
    when it is told to, and is not over as long as nobody knows whether something follows.
    """
    stop, beats = Event(), list[None]()
    relay = object.__new__(Relay)
    relay._planning = cast("Any", SimpleNamespace(is_all_done=True))
    relay._tasks = cast("Any", SimpleNamespace(follow=Future[Followed]))

    def beat() -> None:
        assert not stop.is_set(), "it waits still"
        beats.append(None)
        stop.set()

    cast("Any", relay)._beat = beat
    assert not relay._is_done(Run(mode=Mode.DRAIN, max_wait=60.0, stop=stop))
    assert beats


@pytest.mark.parametrize("wrote", [True, False])
@pytest.mark.parametrize("more", [True, False])
def test_a_drain_is_over_if_nothing_follows(*, wrote: bool, more: bool) -> None:
    """A drain goes on if something was written, or is not read."""
    relay, answer = object.__new__(Relay), Future[Followed]()
    relay._planning = cast("Any", SimpleNamespace(is_all_done=True))
    relay._tasks = cast("Any", SimpleNamespace(follow=lambda: answer))
    answer.set_result(Followed(wrote=wrote, more=more))
    run = Run(mode=Mode.DRAIN, max_wait=60.0, stop=Event())
    assert (not wrote and not more) == relay._is_done(run)


@pytest.mark.parametrize("fails", [None, "ends", "on record", "beat"])
def test_a_relay_that_is_told_to_stop_records_each_claim_as_it_ends(fails: str | None) -> None:
    """What has ended is on record before another claim has: whoever stops the relay may kill it.
    Whatever goes wrong with one, the others are waited for and recorded.
    """
    done: list[str] = []
    relay = object.__new__(Relay)

    class InFlight(list[str]):
        def wait(self, _: float) -> None:
            done.append(self.pop(0))

        def close(self) -> None:
            done.append("closed")

    def step(name: str) -> Callable[..., None]:
        def take(*_: object) -> None:
            done.append(name)
            if name == fails and "closed" not in done:
                raise OSError(name)

        return take

    relay._flight = cast("Any", InFlight(["short", "long"]))
    relay._decided = cast("Any", SimpleNamespace(finish=step("on record")))
    relay._heart = cast("Any", SimpleNamespace(beat=step("beat")))
    cast("Any", relay)._complete = step("ends")
    raised = ""
    try:
        relay._finish(Run(mode=Mode.DRAIN, max_wait=60.0, stop=Event()))
    except OSError as error:
        raised = str(error)
    each = ["ends", "on record", "beat"]
    assert ["short", *each, "long", *each, "closed", "on record"] == done
    assert (fails or "") == raised


def test_a_relay_ends_in_order_whatever_fails() -> None:
    """Each step of its end is taken, so that it says that it is gone; the first error is raised."""
    taken: list[str] = []

    def step(name: str, error: BaseException | None = None) -> Callable[[], None]:
        def take() -> None:
            taken.append(name)
            if error is not None:
                raise error

        return take

    relay = object.__new__(Relay)
    with pytest.raises(KeyboardInterrupt, match="work"):
        relay._run_to_its_end(
            step("work", KeyboardInterrupt("work")),
            step("finish", OSError("finish")),
            step("stopped"),
        )
    assert ["work", "finish", "stopped"] == taken
    relay._run_to_its_end(step("again"))
    assert "again" == taken[-1]


def test_a_machine_that_sleeps_makes_no_claim_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a task is sent after its lease, also if the machine has slept while its claim was
    appended: the lease went on.
    """
    slept, begun, lease = [0.0], list[tuple[object, float]](), 60
    monkeypatch.setattr("delta_outbox.relay.relay.boot_time", lambda: 1000.0 + slept[0])
    answer = Future[Any]()

    def append(*_: object) -> bool:
        slept[0] = 7200.0
        return True

    def start(claims: Sequence[tuple[object, float]]) -> Sequence[Future[Any]]:
        begun.extend(claims)
        return [answer] * len(claims)

    relay = object.__new__(Relay)
    relay._clock = ManualClock()
    relay._decided = cast("Any", SimpleNamespace(lanes=(), append=append))
    relay._isolation = cast("Any", SimpleNamespace(started=lambda *_: None))
    relay._tasks = cast("Any", SimpleNamespace(third_parties={"bank"}, start=start))
    relay._flight = cast("Any", SimpleNamespace(follow=lambda *_: None))
    claim = cast("Any", SimpleNamespace(lease_seconds=lease, held_until=None))
    log = cast("Any", type("Log", (), {"sequence": 1}))
    held = Held(kind=Kind.FIRST_ATTEMPT, claim=claim, log=log, order_scopes=set(), to="bank")
    relay._append([held])
    assert [(claim, 1000.0 + lease - margin_seconds(lease))] == begun

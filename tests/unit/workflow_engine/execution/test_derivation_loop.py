"""What follows is written beside a relay."""

from __future__ import annotations

from concurrent.futures import wait
from contextlib import closing
from threading import Semaphore

import pytest
from tests.unit.workflow_engine.hosts.host_requests import LIMIT

from delta_outbox.relay.destinations.task_runner import Followed
from delta_outbox.workflow_engine.execution.derivation_loop import DerivationLoop

NOTHING = Followed(wrote=False, more=False)
WROTE = Followed(wrote=True, more=False)
MORE = Followed(wrote=False, more=True)


def answer(own: DerivationLoop) -> Followed:
    """Return what somebody learns who asks."""
    asked = own.ask()
    assert wait([asked], LIMIT).done, "nobody answers"
    return asked.result()


def test_who_asks_learns_what_was_written() -> None:
    """A relay that has nothing to do learns whether something follows, and once more if not."""
    to_write = [WROTE, WROTE]
    with closing(DerivationLoop(lambda: to_write.pop() if to_write else NOTHING)) as own:
        assert answer(own).wrote
        while (came := answer(own)) != NOTHING:
            assert came == WROTE
        to_write.append(WROTE)
        assert answer(own).wrote
        assert answer(own) == NOTHING


@pytest.mark.parametrize("came", [WROTE, MORE, Followed(wrote=True, more=True)])
def test_who_asks_is_answered_also_if_it_never_ends(came: Followed) -> None:
    """A relay learns what a step has come to while each step finds something, as it does as long as
    producers append.
    """
    with closing(DerivationLoop(lambda: came)) as own:
        assert came == answer(own)


def test_who_gave_up_takes_no_news_along() -> None:
    """What was written is told to each who waits: the first of them may have gone meanwhile."""
    begun, go_on = Semaphore(0), Semaphore(0)
    steps = iter([NOTHING, WROTE])

    def step() -> Followed:
        begun.release()
        assert go_on.acquire(timeout=LIMIT)
        return next(steps, NOTHING)

    with closing(DerivationLoop(step)) as own:
        begun.acquire()
        own.ask()
        go_on.release()
        begun.acquire()  # the step of whoever has asked first writes
        second = own.ask()
        go_on.release(1000)
        assert wait([second], LIMIT).done
        assert second.result().wrote


@pytest.mark.parametrize(
    ("raised", "told"),
    [(KeyError("k"), KeyError), (SystemExit(0), RuntimeError), (BaseException("b"), RuntimeError)],
    ids=lambda one: type(one).__name__,
)
def test_an_error_reaches_the_relay(raised: BaseException, told: type[Exception]) -> None:
    """What keeps it from going on is raised in the relay, and nobody waits for it, of whatever kind
    it is: the panic of an engine in another language is no exception of the usual kind.
    """

    def step() -> Followed:
        raise raised

    own = DerivationLoop(step)
    for _ in range(2):  # while it ends, and when it has
        assert wait([asked := own.ask()], LIMIT).done
        assert isinstance(asked.exception(), told)
    with pytest.raises(told):
        own.check()
    own.close()

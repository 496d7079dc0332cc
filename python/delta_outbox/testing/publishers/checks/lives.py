"""Checks of instances: opened, closed, beside each other, in other processes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from delta_outbox.lifecycle.results import Delivered
from delta_outbox.publishers.protocol import Publisher
from delta_outbox.testing.demands import broken, holds, same
from delta_outbox.testing.publishers.adapter import Adapter
from delta_outbox.testing.publishers.check import Scenario
from delta_outbox.testing.publishers.stage import Call, Stage, by_id

_BAD_SETTINGS = {"kit_no_such_setting": "kit"}
_TIMEOUT = 60.0  # seconds for another Python to start
# What a worker does: it knows where to import from, and gets bytes.
_WORKER = (
    "import pickle, sys; data = sys.stdin.buffer; "
    "sys.path[:] = pickle.load(data); publisher = pickle.load(data); "
    "sys.stdout.write(publisher.__qualname__)"
)


@dataclass(frozen=True, kw_only=True)
class Closed:
    """What was seen: what `close` raised, and a call of the next instance."""

    after_failed_open: str
    twice: str
    next: Call


def _closed(stage: Stage) -> Closed:
    failed = stage.adapter.publisher()
    _raised(lambda: failed.open(_BAD_SETTINGS))
    after_failed_open = _raised(failed.close)
    publisher = stage.open()
    stage.publish(publisher, [stage.event("first")])
    publisher.close()
    twice = _raised(publisher.close)
    return Closed(
        after_failed_open=after_failed_open,
        twice=twice,
        next=stage.publish(stage.open(), [stage.event("next")]),
    )


def _raised(action: Callable[[], None]) -> str:
    try:
        action()
    except Exception as error:  # noqa: BLE001 - what it raises is what is looked at
        return f"{type(error).__name__}: {error}"
    return ""


CLOSED = Scenario("opened and closed", _closed)


@CLOSED.check()
def close_after_a_failed_open_is_harmless(seen: Closed) -> None:
    """`close` raises nothing where `open` has failed."""
    same("", seen.after_failed_open, "what close raised")


@CLOSED.check()
def closing_twice_is_harmless(seen: Closed) -> None:
    """`close` raises nothing the second time."""
    same("", seen.twice, "what close raised")


@CLOSED.check()
def a_new_instance_follows_a_closed_one(seen: Closed) -> None:
    """An instance that is opened after another was closed delivers."""
    holds(seen.next.ids(Delivered), "nothing is Delivered")


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What was seen: calls of two instances in turn, and of the one that was left open."""

    calls: tuple[Call, ...]
    arrived: frozenset[str]


def _beside(stage: Stage) -> Beside:
    one, other = stage.open(), stage.open()
    calls = [
        stage.publish(publisher, stage.events(3, name))
        for name, publisher in (("one", one), ("other", other), ("one-again", one))
    ]
    one.close()
    calls.append(stage.publish(other, stage.events(3, "other-again")))
    return Beside(calls=tuple(calls), arrived=frozenset(by_id(stage.arrivals(*calls))))


BESIDE = Scenario("two instances", _beside)


@BESIDE.check()
def two_instances_do_not_disturb_each_other(seen: Beside) -> None:
    """Two instances deliver in turn, and one delivers when the other is closed."""
    for call in seen.calls:
        same(call.ids(), call.ids(Delivered), "what is Delivered")
        holds(set(call.ids()) <= seen.arrived, "what is Delivered has not arrived")


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """What is to go to another process and back."""

    adapter: Adapter
    call: Call


def _elsewhere(stage: Stage) -> Elsewhere:
    publisher: Publisher = stage.open()
    return Elsewhere(
        adapter=stage.adapter, call=stage.publish(publisher, [stage.event("elsewhere")])
    )


ELSEWHERE = Scenario("another process", _elsewhere)


@ELSEWHERE.check()
def the_class_is_found_by_its_name(seen: Elsewhere) -> None:
    """Another process imports the class by module and name: it is no class of `__main__`."""
    publisher = seen.adapter.publisher
    holds(publisher.__module__ != "__main__", "the class belongs to __main__")
    sent = _pickled(sys.path, "sys.path") + _pickled(publisher, "the class")
    ended = subprocess.run(
        [sys.executable, "-c", _WORKER],
        input=sent,
        capture_output=True,
        timeout=_TIMEOUT,
        check=False,
    )
    message = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    holds(ended.returncode == 0, f"another process cannot import it: {message}")


@ELSEWHERE.check()
def settings_and_results_can_be_pickled(seen: Elsewhere) -> None:
    """Settings go to the process that publishes, and results come back: both can be pickled."""
    settings = dict(seen.adapter.settings)
    same(settings, pickle.loads(_pickled(settings, "settings")), "settings")
    results = list(seen.call.results)
    same(results, pickle.loads(_pickled(results, "results")), "results")


def _pickled(what: object, name: str) -> bytes:
    try:
        return pickle.dumps(what)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        broken(f"{name} cannot be pickled: {error}")

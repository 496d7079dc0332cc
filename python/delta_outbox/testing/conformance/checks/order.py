"""Keys whose events fail, wait and are held: who may go, and who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from delta_outbox.lifecycle.results import Failed, NotSent, Result
from delta_outbox.testing.conformance.adapter import Capability, NewEvent
from delta_outbox.testing.conformance.check import Scenario
from delta_outbox.testing.conformance.stage import Look, Stage
from delta_outbox.testing.demands import holds, same

A_DAY: Final = 86_400.0  # seconds
KEYS: Final = {"a": ("a1", "a2", "a3"), "b": ("b1", "b2"), "c": ("c1", "c2")}
ARRIVAL: Final = ("a1", "b1", "a2", "free", "b2", "a3", "c1", "c2", "p1")


@dataclass(frozen=True, kw_only=True)
class Order:
    """What was seen.

    Args:
        eligible: after the append.
        head: the first claim, of one event: that of key a.
        beside: claimed by another relay while that one holds the head.
        stalled: eligible after the head and p1 have failed, and p2 was appended.
        second: taken after the pause, in order.
        blocked: eligible after the second of key a has failed and the third was released.
        third: taken after that pause.
        tail: taken when the scheduled head of key c is due.
        final: the last look.
    """

    eligible: tuple[str, ...]
    head: tuple[str, ...]
    beside: tuple[str, ...]
    stalled: tuple[str, ...]
    second: tuple[str, ...]
    blocked: tuple[str, ...]
    third: tuple[str, ...]
    tail: tuple[str, ...]
    final: Look


def play(stage: Stage) -> Order:
    """Let keys wait.

    Args:
        stage: where.
    """
    later = stage.now() + timedelta(seconds=A_DAY)
    key_of = {name: key for key, names in KEYS.items() for name in names}
    stage.append(
        *(
            NewEvent(
                event_id=name,
                ordering_key=key_of.get(name),
                partition_key="p" if name.startswith("p") else None,
                available_at=later if name == "c1" else None,
            )
            for name in ARRIVAL
        )
    )
    eligible = stage.retrieve()
    head = stage.claim("relay-1", 1)
    beside = stage.take("relay-2", "b1", "b2", "free", "p1")
    stage.end(beside, {"p1": Failed(error="refused")})
    stage.end(head, dict.fromkeys(head.names, Failed(error="refused")))
    stage.append(NewEvent(event_id="p2", partition_key="p"))
    stalled = stage.retrieve()
    stage.store.advance(stage.terms.backoff_seconds)
    unsuccessful: dict[str, Result] = {"a2": Failed(error="refused"), "a3": NotSent()}
    second = stage.take("relay-1", "a1", "p1", "p2")
    stage.end(second, unsuccessful)
    taken = second.names
    if "a2" not in taken:  # a store may give new events later than those that have failed
        rest = stage.take("relay-1", "a2", "a3")
        stage.end(rest, unsuccessful)
        taken += rest.names
    blocked = stage.retrieve()
    stage.store.advance(stage.terms.backoff_seconds)
    third = stage.deliver("relay-1", "a2", "a3")
    stage.store.advance(A_DAY)
    tail = stage.deliver("relay-1", *KEYS["c"])
    return Order(
        eligible=eligible,
        head=head.names,
        beside=beside.names,
        stalled=stalled,
        second=taken,
        blocked=blocked,
        third=third,
        tail=tail,
        final=stage.look(),
    )


ORDER: Final = Scenario("order", play, Capability.ORDERING)


def _in_order(found: tuple[str, ...], what: str) -> None:
    for key, names in KEYS.items():
        of_key = [name for name in found if name in names]
        same(sorted(of_key), of_key, f"key {key!r} {what}")


@ORDER.check()
def a_key_is_retrieved_in_order(seen: Order) -> None:
    """Events of a key come in the order of their arrival."""
    _in_order(seen.eligible, "as it is retrieved")


@ORDER.check()
def a_key_is_sent_in_order(seen: Order) -> None:
    """Every claim holds the events of a key in order."""
    for found in (seen.beside, seen.second, seen.third, seen.tail):
        _in_order(found, "in a claim")
    same(["a1", "a2", "a3"], [n for n in seen.second if n.startswith("a")], "what is left of key a")


@ORDER.check()
def retrieval_follows_arrival(seen: Order) -> None:
    """What arrived first is retrieved first; a limit cuts a prefix."""
    due = [name for name in ARRIVAL if name not in KEYS["c"]]
    same(due, list(seen.eligible), "what is retrieved")
    same(("a1",), seen.head, "the first claim of one event")


@ORDER.check()
def a_key_in_work_is_taken_by_nobody_else(seen: Order) -> None:
    """While a relay holds the head of a key, no other relay gets the rest of it."""
    wrong = set(seen.beside) & set(KEYS["a"])
    holds(not wrong, f"taken while their predecessor was in work: {sorted(wrong)}")


@ORDER.check()
def a_failed_event_holds_its_key(seen: Order) -> None:
    """While an event backs off, later events of its key wait."""
    for found in (seen.stalled, seen.blocked):
        wrong = set(found) & {"a2", "a3"}
        holds(not wrong, f"eligible before their predecessor was delivered: {sorted(wrong)}")


@ORDER.check()
def a_scheduled_event_holds_its_key(seen: Order) -> None:
    """While an event waits for its time, later events of its key wait, too."""
    for found in (seen.eligible, seen.beside, seen.stalled, seen.second, seen.blocked):
        holds("c2" not in found, "an event overtook one of its key that is scheduled")
    same(("c1", "c2"), seen.tail, "key c when its head is due")


@ORDER.check()
def other_keys_go_on(seen: Order) -> None:
    """A key that waits stops neither another key nor events without one."""
    for name in ("b1", "b2", "free"):
        holds(name in seen.beside, f"{name!r} waits for a key that is not its own")


@ORDER.check()
def a_partition_key_orders_nothing(seen: Order) -> None:
    """An event with the same partition key as one that backs off is eligible at once."""
    holds("p2" in seen.stalled, "a partition key made an event wait")


@ORDER.check()
def every_key_ends_in_the_end(seen: Order) -> None:
    """When all that failed was delivered, nothing of any key is left."""
    for name in (*ARRIVAL, "p2"):
        same("PUBLISHED", seen.final[name].state, f"state of {name!r} in the end")

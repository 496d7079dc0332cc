"""What operators do: they kill what waits or is in work, and replay what is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from delta_outbox.lifecycle.results import Delivered, NotSent, Rejected
from delta_outbox.lifecycle.states import State
from delta_outbox.testing.conformance.adapter import Capability, NewEvent
from delta_outbox.testing.conformance.check import Scenario
from delta_outbox.testing.conformance.stage import Look, Stage
from delta_outbox.testing.demands import holds, same

A_DAY: Final = 86_400.0  # seconds


@dataclass(frozen=True, kw_only=True)
class Kills:
    """What was seen.

    Args:
        hidden: eligible after the kills.
        in_work: a look after the kills, while one of the killed is in work.
        killed: a look when that one was released and what is due has been ended.
        taken: claimed after the kills.
        final: a look when the scheduled one was due and has been ended.
        history: steps by event; empty without a history.
    """

    hidden: tuple[str, ...]
    in_work: Look
    killed: Look
    taken: tuple[str, ...]
    final: Look
    history: Mapping[str, tuple[tuple[str, str], ...]]


def play_kills(stage: Stage) -> Kills:
    """Kill events.

    Args:
        stage: where.
    """
    stage.append(NewEvent(event_id="in-work"))
    working = stage.claim("relay-1", 1)
    later = stage.now() + timedelta(seconds=A_DAY)
    stage.append(
        NewEvent(event_id="waiting"),
        NewEvent(event_id="scheduled", available_at=later),
        NewEvent(event_id="spared"),
    )
    stage.kill("in-work", "waiting", "scheduled")
    hidden, in_work = stage.retrieve(), stage.look()
    stage.end(working, otherwise=NotSent())
    stage.store.reap()
    killed = stage.look()
    taken = stage.take("relay-1", "spared")
    stage.end(taken)
    stage.store.advance(A_DAY)
    stage.store.reap()
    late = stage.take("relay-1", "scheduled")
    stage.end(late)
    return Kills(
        hidden=hidden,
        in_work=in_work,
        killed=killed,
        taken=taken.names + late.names,
        final=stage.look(),
        history=stage.history(),
    )


@dataclass(frozen=True, kw_only=True)
class Replays:
    """What was seen.

    Args:
        over: a look before the replay, when time has passed and somebody has reaped.
        replayed: a look after it.
        eligible: after it.
        again: taken after it.
        claimed: a look while that is in work.
        final: the last look.
        history: steps by event; empty without a history.
    """

    over: Look
    replayed: Look
    eligible: tuple[str, ...]
    again: tuple[str, ...]
    claimed: Look
    final: Look
    history: Mapping[str, tuple[tuple[str, str], ...]]


def play_replays(stage: Stage) -> Replays:
    """Replay events.

    Args:
        stage: where.
    """
    names = ("done", "dead", "left-dead", "left-done")
    stage.append(*(NewEvent(event_id=name) for name in names))
    stage.end(
        stage.take("relay-1", *names),
        {"dead": Rejected(error="no"), "left-dead": Rejected(error="no")},
    )
    stage.store.advance(A_DAY)
    over = stage.look()
    stage.store.replay([stage.key("done")], state=State.PUBLISHED)
    stage.replay("dead", state=State.DEAD)
    replayed, eligible = stage.look(), stage.retrieve()
    again = stage.take("relay-2", "done", "dead")
    claimed = stage.look()
    stage.end(again, otherwise=Delivered())
    return Replays(
        over=over,
        replayed=replayed,
        eligible=eligible,
        again=again.names,
        claimed=claimed,
        final=stage.look(),
        history=stage.history(),
    )


KILLS: Final = Scenario("kills", play_kills, Capability.KILL)
REPLAYS: Final = Scenario("replays", play_replays, Capability.REPLAY)


@KILLS.check()
def a_killed_event_is_hidden_at_once(seen: Kills) -> None:
    """From the kill on, nothing retrieves or claims the event."""
    killed = {"waiting", "scheduled", "in-work"}
    wrong = killed & {*seen.hidden, *seen.taken}
    holds(not wrong, f"killed and taken: {sorted(wrong)}")
    holds("spared" in seen.hidden, "an event that nobody killed is hidden")


@KILLS.check()
def a_killed_event_ends_dead(seen: Kills) -> None:
    """What an operator kills ends in DEAD, and stays."""
    for look in (seen.killed, seen.final):
        same("DEAD", look["waiting"].state, "state of a killed event")
    same("DEAD", seen.final["in-work"].state, "state of an event killed in work, released")


@KILLS.check()
def a_kill_waits_for_the_claim(seen: Kills) -> None:
    """Killed while it is in work, an event stays under its claim: nobody ends another's."""
    record = seen.in_work["in-work"]
    same(("CLAIMED", "relay-1"), (record.state, record.claimed_by), "the event in work")


@KILLS.check()
def a_kill_waits_for_the_time(seen: Kills) -> None:
    """A scheduled event that is killed is not claimed before its time, then it is DEAD."""
    same("PENDING", seen.killed["scheduled"].state, "state of a killed event before its time")
    same("DEAD", seen.final["scheduled"].state, "state of a killed event after its time")


@KILLS.check(Capability.HISTORY)
def a_killed_event_is_claimed_first(seen: Kills) -> None:
    """On record, a kill is PENDING to CLAIMED to DEAD: there is no straight way."""
    for name in ("waiting", "in-work", "scheduled"):
        steps = (("PENDING", "CLAIMED"), ("CLAIMED", "DEAD"))
        same(steps, seen.history[name][-2:], f"last steps of {name!r}")


@REPLAYS.check()
def a_replay_makes_it_pending_and_eligible(seen: Replays) -> None:
    """PUBLISHED and DEAD events that are replayed are PENDING and retrieved."""
    for name in ("done", "dead"):
        same("PENDING", seen.replayed[name].state, f"state of {name!r} after its replay")
        holds(name in seen.eligible, f"{name!r} is not eligible after its replay")


@REPLAYS.check()
def only_a_replay_leaves_a_terminal_state(seen: Replays) -> None:
    """What nobody replays stays where it is, beside what is replayed."""
    for name, state in (("left-done", "PUBLISHED"), ("left-dead", "DEAD")):
        for look in (seen.over, seen.replayed, seen.claimed, seen.final):
            same(state, look[name].state, f"state of {name!r}, which nobody replays")


@REPLAYS.check()
def a_dead_event_can_be_replayed(seen: Replays) -> None:
    """A DEAD event is taken and delivered after its replay."""
    holds("dead" in seen.again, "a DEAD event is not taken after its replay")
    same("PUBLISHED", seen.final["dead"].state, "state of a DEAD event that was replayed")


@REPLAYS.check()
def a_published_event_can_be_replayed(seen: Replays) -> None:
    """A PUBLISHED event is taken and delivered again after its replay."""
    holds("done" in seen.again, "a PUBLISHED event is not taken after its replay")
    same("PUBLISHED", seen.final["done"].state, "state of a PUBLISHED event that was replayed")


@REPLAYS.check()
def a_replay_starts_counting_anew(seen: Replays) -> None:
    """A replay is a new lifecycle: its first claim is attempt 1."""
    for name in ("done", "dead"):
        same(0, seen.replayed[name].attempts, f"attempts of {name!r} after its replay")
        same(1, seen.claimed[name].attempts, f"attempts of {name!r} in its first claim since")


@REPLAYS.check()
def a_replay_clears_published_at(seen: Replays) -> None:
    """In the new lifecycle the event has not been published yet."""
    same(None, seen.replayed["done"].published_at, "published_at after a replay")


@REPLAYS.check()
def operators_can_inspect(seen: Replays) -> None:
    """An operator sees which events are DEAD, since when they exist, and why."""
    dead = {name for name, record in seen.over.items() if record.state == "DEAD"}
    same({"dead", "left-dead"}, dead, "the DEAD events")
    for name in dead:
        holds(seen.over[name].last_error, f"no reason is shown for {name!r}")

"""Breadth first through all that may happen, so that the first wrong state is the nearest."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from scripts.exploration.world import Attempted, Explored, World

FAIR_ATTEMPTS = 5  # that a task gets, once nothing goes wrong any more, to come to an end
MOST_STATES = 5_000_000


@dataclass(frozen=True, kw_only=True)
class Searched:
    """What came of an exploration.

    Args:
        states: that were seen; all there are if nothing is wrong.
        wrong: what is wrong in the last one, None if nothing is.
        trace: the shortest way there, in words.
    """

    states: int
    wrong: str | None
    trace: tuple[str, ...]


def search(explored: Explored) -> Searched:
    """Explore all there is, or up to the first wrong state.

    Args:
        explored: rules under assumptions.

    Raises:
        MemoryError: there are more states than this machine should hold.
    """
    start = explored.first()
    seen: dict[World, tuple[World, str] | None] = {start: None}
    todo = deque([start])
    while todo:
        now = todo.popleft()
        wrong = explored.wrong(now)
        rest: tuple[str, ...] = ()
        if wrong is None and is_quiet(now):
            wrong, rest = stranded(explored, now)
        if wrong is not None:
            return Searched(states=len(seen), wrong=wrong, trace=(*_way(seen, now), *rest))
        for _, words, after in explored.moves(now):
            if after not in seen:
                seen[after] = (now, words)
                todo.append(after)
        if len(seen) > MOST_STATES:
            raise MemoryError(f"more than {MOST_STATES} states")
    return Searched(states=len(seen), wrong=None, trace=())


def is_quiet(now: World) -> bool:
    """Say whether no attempt is under way.

    Args:
        now: the world.
    """
    return not now.outcomes and all(one.mode != "runs" for one in now.attempts)


def stranded(explored: Explored, now: World) -> tuple[str | None, tuple[str, ...]]:
    """Let all go well from now on, with more attempts, and say whether the task still never ends.

    Args:
        explored: rules under assumptions.
        now: the world, with no attempt under way.
    """
    now = now._replace(
        attempts=now.attempts + (Attempted(),) * FAIR_ATTEMPTS,
        locks=now.locks + ("",) * FAIR_ATTEMPTS,
    )
    way: list[str] = []
    while not now.outcomes and not now.goes_on:
        moves = [one for one in explored.moves(now) if one[0] != "trouble"]
        if not moves:
            return "the task never ends, although nothing goes wrong any more", tuple(way)
        _, words, now = min(moves, key=lambda one: one[0] != "land")
        way.append(words)
    return explored.wrong(now), tuple(way)


def _way(seen: dict[World, tuple[World, str] | None], now: World) -> list[str]:
    way: list[str] = []
    came = seen[now]
    while came is not None:
        now, words = came
        way.append(words)
        came = seen[now]
    return way[::-1]

"""The page of conditions, as the exploration finds them."""

from __future__ import annotations

from collections.abc import Iterator

from scripts.exploration.conditions import (
    CONDITIONS,
    FOLDER,
    HUMAN,
    IDEMPOTENT,
    NAMES,
    OPTIMISTIC,
    PESSIMISTIC,
    ROOT,
    WITH_LOOKUP,
    Condition,
    plain,
)
from scripts.exploration.search import search
from scripts.exploration.world import Assumptions, Explored

PAGE = "conditions.md"
UNREACHABLE = {
    "if record.decided:": (
        "a claim is an append at an expected position of the log: whoever has missed an outcome "
        "loses the position, and a task with an outcome is not claimed"
    ),
    "if record.held_by_another and not race:": "a task has one claim at a time",
    "if not record.alone:": "a task has one claim at a time",
    "if not record.alone and not all(one.expired for one in older):": (
        "a task has one claim at a time, so every other first step belongs to an attempt that "
        "is over"
    ),
    "if not record.alone and not done.expired:": (
        "the owner of another first step has no claim any more: its second step is the outcome"
    ),
}
"""Branches that nothing takes where the lock is a claim, and why."""

HEAD = """\
<!-- Written by `make conditions`. -->
# What the promises rest on

The algorithms of the four categories that call a third party are generators that yield at every
step. They are explored exhaustively: every order of steps, the death of a process at each of them,
an expiry, requests that take effect late or never, look-ups that are answered late or not at all.
No promise may break: at most one effect where the category promises it, no outcome that says
"done" or "not done" against what happened, no second outcome, no task that never ends although
nothing goes wrong any more, and none that goes on after its last attempt, whatever goes wrong. The
lock is once a claim of ours, and once a row in a plain store of locks, as the source of the
algorithms has it.

`make conditions` explores and writes this page. The exploration of more attempts is in
`tests/railway`.

"""


def page() -> str:
    """Explore everything, and return the page."""
    return HEAD + "\n".join([*_explored(), "", *_conditions(), "", *_unreachable(), "", *_proof()])


def _explored() -> Iterator[str]:
    yield "## Explored"
    yield ""
    yield "| task | lock | attempts | states | broken promises |"
    yield "|---|---|---|---|---|"
    for rules, name in NAMES.items():
        for lock, assumptions in (("claim", Assumptions()), ("plain", plain(rules))):
            found = search(Explored(rules, 2, assumptions))
            broken = found.wrong or "none"
            yield f"| {name.replace('-', ' ')} | {lock} | 2 | {found.states:,} | {broken} |"


def _conditions() -> Iterator[str]:
    yield "## Conditions"
    yield ""
    yield (
        "Each was taken away, and the exploration found the shortest way to a broken promise. "
        "A condition that is code is also a mutant of [mutants.md](../mutants.md); one that is an "
        "assumption is a promise of the third party or of whoever runs the attempts."
    )
    yield ""
    yield "| condition | kept by | without it | lock | steps |"
    yield "|---|---|---|---|---|"
    for one in CONDITIONS:
        found = one.broken()
        lock = "claim" if one.claims else "plain"
        yield (
            f"| {one.says} ({NAMES[one.rules].replace('-', ' ')}) | {_kept_by(one)} | "
            f"{found.wrong} | {lock} | {len(found.trace)} |"
        )


def _kept_by(one: Condition) -> str:
    if one.without is not None:
        return "an assumption"
    return f"[`{one.file}.py`](../../tests/mutants/railway-{one.name}.patch)"


def _unreachable() -> Iterator[str]:
    yield "## Branches that claims make unreachable"
    yield ""
    yield (
        "The algorithms are those of the source, for any store of locks. With claims of ours some "
        "of their branches are never taken; the exploration on a plain store takes all of them."
    )
    yield ""
    yield "| branch | why nobody gets there |"
    yield "|---|---|"
    for file, text in unreachable():
        yield f"| `{text}` in `{file}` | {UNREACHABLE[text]} |"


def unreachable() -> list[tuple[str, str]]:
    """Return the conditions whose branches claims never take, and fail if code is never run."""
    ours, any_store = set[tuple[str, int]](), set[tuple[str, int]]()
    for rules in (IDEMPOTENT, WITH_LOOKUP, PESSIMISTIC, OPTIMISTIC, HUMAN):
        claimed = Explored(rules, 2, Assumptions(), traces=True)
        loose = Explored(rules, 2, plain(rules), traces=True)
        assert search(claimed).wrong is None
        assert search(loose).wrong is None
        ours |= claimed.lines
        any_store |= loose.lines
    found = []
    for file, number in sorted(any_store - ours):
        lines = (ROOT / FOLDER / file).read_text(encoding="utf-8").splitlines()
        before = lines[number - 2].strip()
        if before.startswith("if ") and "is None" not in before:  # those follow from others
            found.append((file, before))
    return found


def _proof() -> Iterator[str]:
    yield "## Why a black box cannot be exactly once"
    yield ""
    yield (
        "Two worlds that look alike to whoever comes next. In both an attempt has sent its request "
        "and died; in one the request has taken effect, in the other it was lost. The record is "
        "the same, the third party cannot be asked, and so one decision falls in both: to act "
        "again is wrong in the first, to give up is wrong in the second. Hence the compromise, and "
        "hence the outcome *uncertain*."
    )
    yield ""
    yield "| step | it took effect | it was lost |"
    yield "|---|---|---|"
    for number, (one, other) in enumerate(zip(*black_box_proof(), strict=True), start=1):
        yield f"| {number} | {one} | {other} |"
    yield ""


def black_box_proof() -> tuple[list[str], list[str]]:
    """Return the shortest two traces that end alike to an attempt and differ in what happened."""
    explored = Explored(HUMAN, 2, plain(HUMAN))
    level = {explored.first(): ()}
    while True:
        views: dict[object, tuple[tuple[str, ...], bool]] = {}
        for world, way in level.items():
            first, second = world.attempts
            if first.mode != "dead" or world.order != (0, 1) or world.locks[0] != "unsure":
                continue
            # It has just read the record, when the first request had landed or was lost.
            if len(second.answers) != 2 or not second.answers[1].settled:
                continue
            view = (second.answers, world.locks)
            acted = bool(world.effects)
            if view in views and views[view][1] != acted:
                pair = {acted: list(way), views[view][1]: list(views[view][0])}
                return pair[True], pair[False]
            views.setdefault(view, (way, acted))
        following: dict[object, tuple[str, ...]] = {}
        for world, way in level.items():
            for _, words, after in explored.moves(world):
                following.setdefault(after, (*way, words))
        level = following  # type: ignore[assignment]

"""The oracle of the soak sees every kind of violation, and none where there is none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from scripts.soak.evidence import Appended, Copy, Evidence, Step
from scripts.soak.oracle import Violations, violations


def appended(number: int, *, commit: int = 1) -> Appended:
    """Return the row of an event; events share a key if their numbers are both odd or even."""
    return Appended(
        event_id=f"event-{number:03}", key=f"key-{number % 2}", position=(commit, number)
    )


def copy(number: int, offset: int, *, at: float = 2.0) -> Copy:
    """Return a message of an event."""
    return Copy(
        event_id=f"event-{number:03}",
        key=f"key-{number % 2}",
        payload=str(number),
        partition=number % 2,
        offset=offset,
        at=at,
    )


def step(number: int, sequence: int, path: str, reason: str, **more: object) -> Step:
    """Return a transition; its path is the states' first letters, such as P>C."""
    names = {"P": "PENDING", "C": "CLAIMED", "D": "DEAD", "!": "PUBLISHED"}
    known = Step(
        event_id=f"event-{number:03}",
        sequence=sequence,
        before=names[path[0]],
        after=names[path[2]],
        reason=reason,
        claim_id="c1",
        relay_id="r1",
        attempt=1,
        at=float(sequence),
    )
    return replace(known, **more)  # type: ignore[arg-type]


def delivered(*numbers: int) -> list[Step]:
    """Return the steps of events that one claim delivered."""
    return [
        *(step(number, 1, "P>C", "claimed") for number in numbers),
        *(step(number, 3, "C>!", "delivered") for number in numbers),
        step(99, 2, "P>C", "claimed"),
        step(99, 3, "C>!", "delivered"),
    ]


GOOD = Evidence(
    acknowledged=["event-001", "event-003"],
    appended=[appended(1), appended(3), appended(99)],
    steps=delivered(1, 3),
    copies=[copy(1, 0), copy(3, 1), copy(99, 2)],
)


def kinds(evidence: Evidence) -> set[str]:
    """Return the kinds of violation that are seen."""
    return {name for name, examples in vars(violations(evidence)).items() if examples}


def test_nothing_is_seen_where_nothing_is_wrong() -> None:
    """A good end has no violation, nor has a repetition after a claim that may have been sent."""
    assert violations(GOOD) == Violations()
    assert violations(GOOD).none
    again = replace(
        GOOD,
        steps=[
            step(1, 1, "P>C", "claimed"),
            step(3, 1, "P>C", "claimed"),
            step(1, 2, "C>P", "lease_expired"),
            step(3, 2, "C>P", "released"),
            step(99, 2, "P>C", "claimed", claim_id="c2"),
            # The ending of a claim and the next claim may share an append.
            step(1, 2, "P>C", "claimed", claim_id="c2", attempt=2),
            step(3, 2, "P>C", "claimed", claim_id="c2", attempt=2),
            step(1, 3, "C>!", "delivered", claim_id="c2", attempt=2),
            step(3, 3, "C>!", "delivered", claim_id="c2", attempt=2),
            step(99, 3, "C>!", "delivered", claim_id="c2"),
        ],
        copies=[copy(1, 0, at=1.5), copy(1, 1, at=2.5), copy(3, 2, at=2.5), copy(99, 3, at=2.5)],
    )
    assert violations(again) == Violations()


def _without(number: int, copies: Iterable[Copy]) -> list[Copy]:
    return [copy for copy in copies if copy.event_id != f"event-{number:03}"]


@pytest.mark.parametrize(
    ("evidence", "kind"),
    [
        (replace(GOOD, acknowledged=["event-005"]), "lost"),
        (replace(GOOD, appended=[*GOOD.appended, appended(5)]), "lost"),
        (replace(GOOD, appended=[*GOOD.appended, appended(5)]), "unfinished"),
        (replace(GOOD, steps=GOOD.steps[:-1]), "unfinished"),
        (replace(GOOD, copies=_without(3, GOOD.copies)), "unfounded"),
        (replace(GOOD, copies=_without(3, GOOD.copies)), "lost"),
        (
            replace(GOOD, copies=[copy(1, 0, at=3.5), *_without(1, GOOD.copies)]),
            "unfounded",
        ),
        (replace(GOOD, copies=[copy(3, 0), copy(1, 1), copy(99, 2)]), "disordered"),
        (
            replace(GOOD, copies=[*GOOD.copies, replace(copy(1, 0), partition=2)]),
            "disordered",
        ),
        (replace(GOOD, copies=[*GOOD.copies, copy(5, 3)]), "altered"),
        (
            replace(GOOD, copies=[replace(copy(1, 0), payload="3"), *_without(1, GOOD.copies)]),
            "altered",
        ),
        (replace(GOOD, copies=[*GOOD.copies, copy(1, 3)]), "repeated"),
        (replace(GOOD, steps=[*GOOD.steps, step(5, 3, "C>D", "exhausted")]), "dead"),
        (replace(GOOD, steps=[s for s in GOOD.steps if s.sequence != 2]), "illegal"),
        (replace(GOOD, steps=[*GOOD.steps, step(1, 5, "P>C", "claimed")]), "illegal"),
        (
            replace(GOOD, steps=[*GOOD.steps, step(7, 3, "P>C", "claimed", relay_id="r2")]),
            "illegal",
        ),
    ],
)
def test_every_kind_of_violation_is_seen(evidence: Evidence, kind: str) -> None:
    """Whatever is broken is named by its kind."""
    assert kind in kinds(evidence)


@pytest.mark.parametrize(
    "steps",
    [
        [step(1, 1, "P>!", "delivered")],
        [step(1, 1, "P>D", "exhausted")],
        [step(1, 1, "C>!", "delivered")],
        [step(1, 1, "P>C", "claimed", attempt=2)],
        [step(1, 1, "P>C", "claimed"), step(1, 2, "P>C", "claimed", claim_id="c2", attempt=2)],
        [step(1, 1, "P>C", "claimed"), step(1, 2, "C>!", "delivered", claim_id="c2")],
        [
            step(1, 1, "P>C", "claimed"),
            step(1, 2, "C>!", "delivered"),
            step(1, 3, "C>!", "delivered"),
        ],
        [
            step(1, 1, "P>C", "claimed"),
            step(1, 2, "C>!", "delivered"),
            step(1, 3, "!>P", "released"),
        ],
        [step(1, 2, "P>C", "claimed")],
    ],
)
def test_every_illegal_step_is_seen(steps: list[Step]) -> None:
    """No step may be left out, made twice, or end the claim of another; none is replayed here."""
    evidence = Evidence(appended=[appended(1)], steps=steps, copies=[copy(1, 0, at=0.0)])
    assert "illegal" in kinds(evidence)

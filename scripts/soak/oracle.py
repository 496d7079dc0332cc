"""What must hold after a soak, said anew: nothing here comes from the product.

Pure: rows in, violations out. A violation is a sentence with an id in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from scripts.soak.evidence import Appended, Copy, Evidence, Step

# The Open Outbox lifecycle as far as nobody replays anything.
LEGAL = {
    ("PENDING", "CLAIMED"),
    ("CLAIMED", "PUBLISHED"),
    ("CLAIMED", "PENDING"),
    ("CLAIMED", "DEAD"),
}
# After an ending of these the event may have been sent, or not: only then may it be sent again.
UNCERTAIN = {"lease_expired", "crashed", "unknown"}


@dataclass(frozen=True, kw_only=True)
class Violations:
    """What is wrong, by promise; all empty if every promise was kept.

    Args:
        lost: events that were appended and not delivered.
        unfinished: delivered or not, the log does not end in PUBLISHED.
        unfounded: recorded as delivered before the broker had a message.
        illegal: steps that the lifecycle does not have.
        disordered: first copies that overtook an earlier event of their key.
        dead: healthy events that were given up.
        altered: messages that nobody appended so.
        repeated: copies that no interrupted claim explains.
    """

    lost: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    unfounded: tuple[str, ...] = ()
    illegal: tuple[str, ...] = ()
    disordered: tuple[str, ...] = ()
    dead: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()

    @property
    def none(self) -> bool:
        """Say whether every promise was kept."""
        return not any(vars(self).values())


def violations(evidence: Evidence) -> Violations:
    """Hold everything against everything.

    Args:
        evidence: of a soak that has ended.
    """
    histories = by_event(evidence.steps)
    copies = evidence.copies
    return Violations(
        lost=tuple(lost(evidence.acknowledged, evidence.appended, copies)),
        unfinished=tuple(unfinished(evidence.appended, histories)),
        unfounded=tuple(unfounded(histories, copies)),
        illegal=(*torn(evidence.steps), *illegal(histories)),
        disordered=tuple(disordered(evidence.appended, copies)),
        dead=tuple(f"{s.event_id}: {s.reason}" for s in evidence.steps if s.after == "DEAD"),
        altered=tuple(altered(evidence.appended, copies)),
        repeated=tuple(repeated(histories, copies)),
    )


def by_event(steps: Iterable[Step]) -> dict[str, list[Step]]:
    """Return the history of each event; an ending comes before the claim of the same append.

    Args:
        steps: of the transition log.
    """
    found: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        found[step.event_id].append(step)
    for history in found.values():
        history.sort(key=lambda step: (step.sequence, step.before == "PENDING"))
    return dict(found)


def lost(
    acknowledged: Iterable[str], appended: Iterable[Appended], copies: Iterable[Copy]
) -> Iterator[str]:
    """Yield what was appended and is not there.

    Args:
        acknowledged: ids whose append was answered with success.
        appended: the event log.
        copies: the topic.
    """
    delivered = {copy.event_id for copy in copies}
    known = {row.event_id for row in appended}
    yield from (
        f"{name}: acknowledged, not in the log" for name in acknowledged if name not in known
    )
    yield from (f"{name}: appended, no message" for name in sorted(known - delivered))


def unfinished(appended: Iterable[Appended], histories: dict[str, list[Step]]) -> Iterator[str]:
    """Yield events whose last state is not PUBLISHED.

    Args:
        appended: the event log.
        histories: of each event.
    """
    for name in sorted({row.event_id for row in appended}):
        state = histories[name][-1].after if name in histories else "PENDING"
        if state != "PUBLISHED":
            yield f"{name}: ends as {state}"


def unfounded(histories: dict[str, list[Step]], copies: Iterable[Copy]) -> Iterator[str]:
    """Yield events that were recorded as PUBLISHED before the broker had them.

    Args:
        histories: of each event.
        copies: the topic.
    """
    first: dict[str, float] = {}
    for copy in copies:
        first[copy.event_id] = min(copy.at, first.get(copy.event_id, copy.at))
    for name, history in sorted(histories.items()):
        for step in history:
            if step.after == "PUBLISHED" and step.at < first.get(name, float("inf")):
                yield f"{name}: PUBLISHED at {step.sequence}, before any message"


def torn(steps: Iterable[Step]) -> Iterator[str]:
    """Yield gaps in the numbers of the appends, and numbers that two relays used.

    Args:
        steps: of the transition log.
    """
    writers: dict[int, set[str]] = defaultdict(set)
    for step in steps:
        writers[step.sequence].add(step.relay_id)
    numbers = sorted(writers)
    if numbers and numbers[0] != 1:
        yield f"append {numbers[0]}: the first must be 1"
    yield from (f"append {b}: comes after {a}" for a, b in pairwise(numbers) if b != a + 1)
    yield from (f"append {n}: several writers" for n in numbers if len(writers[n]) > 1)


def illegal(histories: dict[str, list[Step]]) -> Iterator[str]:
    """Yield steps that do not follow from the one before, at most one of an event.

    Args:
        histories: of each event.
    """
    for name, history in sorted(histories.items()):
        state, claim, attempt = "PENDING", "", 0
        for step in history:
            said = f"{name}: {step.before} to {step.after} at {step.sequence}"
            if (step.before, step.after) not in LEGAL:
                yield f"{said} is not legal"
            elif step.before != state:
                yield f"{said}, but it was {state}"
            elif step.after == "CLAIMED" and step.attempt != attempt + 1:
                yield f"{said} counts {step.attempt} after {attempt}"
            elif step.before == "CLAIMED" and step.claim_id != claim:
                yield f"{said} ends another claim"
            else:
                state, claim, attempt = step.after, step.claim_id, step.attempt
                continue
            break


def disordered(appended: Sequence[Appended], copies: Iterable[Copy]) -> Iterator[str]:
    """Yield events whose first copy came after that of a later event of their key.

    Args:
        appended: the event log.
        copies: the topic, in order of the offsets within each partition.
    """
    position = _first_positions(appended)
    latest: dict[tuple[str, int], tuple[tuple[int, int], str]] = {}
    partitions: dict[str, int] = {}
    seen: set[str] = set()
    for copy in copies:
        if partitions.setdefault(copy.key, copy.partition) != copy.partition:
            yield f"{copy.event_id}: its key is in two partitions"
        if copy.event_id in seen or copy.event_id not in position:
            continue
        seen.add(copy.event_id)
        place = (copy.key, copy.partition)
        here = (position[copy.event_id], copy.event_id)
        if place in latest and here < latest[place]:
            yield f"{copy.event_id}: first delivered after {latest[place][1]}"
        else:
            latest[place] = here


def altered(appended: Iterable[Appended], copies: Iterable[Copy]) -> Iterator[str]:
    """Yield messages that are not what was appended; the payload of an event is its number.

    Args:
        appended: the event log.
        copies: the topic.
    """
    keys = {row.event_id: row.key for row in appended}
    for copy in copies:
        number = copy.event_id.rpartition("-")[2].lstrip("0") or "0"
        if copy.event_id not in keys:
            yield f"{copy.event_id}: nobody appended it"
        elif copy.key != keys[copy.event_id] or copy.payload != number:
            yield f"{copy.event_id}: its key or its content is another's"


def repeated(histories: dict[str, list[Step]], copies: Iterable[Copy]) -> Iterator[str]:
    """Yield events with more copies than their uncertain claims explain.

    Args:
        histories: of each event.
        copies: the topic.
    """
    counts: dict[str, int] = defaultdict(int)
    for copy in copies:
        counts[copy.event_id] += 1
    for name, count in sorted(counts.items()):
        again = sum(step.reason in UNCERTAIN for step in histories.get(name, ()))
        if count > 1 + again:
            yield f"{name}: {count} copies, {again} claims that may have been sent"


def _first_positions(appended: Iterable[Appended]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for row in appended:
        found[row.event_id] = min(row.position, found.get(row.event_id, row.position))
    return found

"""What it costs to check what was delivered: `dbt build` after 400,000 new events."""

from __future__ import annotations

from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import broker
from benchmarks.costs import Cost, Meter, as_documents
from benchmarks.figures import median, ratio, rounded, scaled
from benchmarks.messages import Stream
from benchmarks.processes import in_own_process
from benchmarks.room import EVENT_BYTES, check_room

from delta_outbox.outbox import Outbox
from delta_outbox.dbt import BUILD, check_result, run_dbt

EVENTS: Final = 400_000
INVARIANTS: Final = "invariants"  # the tag of their models


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of events.
        rounds: of a drain, a build, and a build with nothing new.
    """
    count = scaled(EVENTS, size)
    check_room(EVENT_BYTES * count * rounds)
    with broker() as kafka:
        warm = kafka.topic(Stream(name="bench.warm", count=min(ours.WARM_UP, count)))
        streams = [
            kafka.topic(Stream(name=f"bench.checked-{n}", count=count)) for n in range(rounds)
        ]
        delivered, built, checked, idle = in_own_process(builds, kafka.bootstrap, warm, streams)
        for stream in (warm, *streams):
            kafka.check(stream)
    seconds = {
        "delivery": median([one.seconds for one in delivered]),
        "invariants": median(checked),
        "dbt build": median([one.seconds for one in built]),
        "dbt build, nothing new": median(idle),
    }
    return {
        "what": {"events": count, "rounds": rounds},
        "seconds": seconds,
        "ratios": {"invariants to delivery": ratio(seconds["invariants"], seconds["delivery"])},
        "costs": as_documents({"delivery": delivered, "dbt build": built}),
    }


def builds(
    bootstrap: str, warm: Stream, streams: list[Stream]
) -> tuple[list[Cost], list[Cost], list[float], list[float]]:
    """Deliver each stream and check it.

    Args:
        bootstrap: address of the broker.
        warm: is delivered and checked before.
        streams: of messages.

    Returns:
        Of each stream: what its delivery cost, and its build; the seconds that its invariants took
        of that, and those of a build with nothing new.
    """
    delivered, built, checked, idle = [], [], [], []
    with ours.outbox_to_kafka(bootstrap) as outbox:
        ours.append(outbox, warm)
        ours.drain(outbox, [warm])
        build(outbox)
        build(outbox)
        for stream in streams:
            ours.append(outbox, stream)
            delivered.append(ours.drain(outbox, [stream]))
            meter = Meter()
            seconds = build(outbox)
            built.append(meter.cost(len(stream)))
            checked.append(rounded(seconds))
            meter = Meter()
            build(outbox)
            idle.append(meter.cost(0).seconds)
        ours.check(outbox, [warm, *streams])
    return delivered, built, checked, idle


def build(outbox: Outbox) -> float:
    """Do what `dbt build` does, and return the seconds that its invariants took."""
    assert outbox.home is not None
    result = run_dbt(BUILD, home=outbox.home, schema=outbox.tables.schema)
    check_result(result)
    found: Any = result.result
    ran = list(found)
    models = {one.node.unique_id for one in ran if INVARIANTS in one.node.tags}
    return sum(
        float(one.execution_time)
        for one in ran
        if one.node.unique_id in models or models.intersection(one.node.depends_on_nodes)
    )

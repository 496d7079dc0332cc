"""How fast a backlog is delivered: ours, the raw producer, and two peers on PostgreSQL.

All in one run: the same messages, the same broker, the same producer settings, as many publishing
processes as the machine has cores. The batch size of each is swept, and the best taken.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks import ours, raw_producer
from benchmarks.broker import Broker, broker
from benchmarks.costs import Cost, as_documents
from benchmarks.figures import best, median, rate, ratio, scaled
from benchmarks.messages import Stream
from benchmarks.peers import procrastinate_queue, skip_locked
from benchmarks.peers.postgres import postgres, server_version
from benchmarks.processes import in_own_process
from benchmarks.progress import say

EVENTS: Final = 1_000_000
SWEPT: Final = 0.3  # of the events, while the batch size is looked for
OUR_BATCHES: Final = (10_000, 50_000, 100_000)
THEIR_BATCHES: Final = (200, 1_000, 5_000, 20_000)
JOBS_AT_ONCE: Final = (10, 30, 100)
QUEUE_SECONDS: Final = 120.0  # that procrastinate is given at size 1: a million would take it long
SWEPT_QUEUE_SECONDS: Final = 30.0
LEAST_SECONDS: Final = 4.0


@dataclass(kw_only=True)
class Contender:
    """What was measured of one who delivers.

    Args:
        rates: events per second of each round.
        batch: its batch size, or jobs at once.
        sweep: the rate of each that was tried.
        events: of each round.
    """

    rates: list[float] = field(default_factory=list)
    batch: int | None = None
    sweep: Mapping[int, float] = field(default_factory=dict)
    events: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "rate": median(self.rates),
            "rates": self.rates,
            "events": self.events,
            **({} if self.batch is None else {"batch": self.batch}),
            **({} if not self.sweep else {"sweep": {str(k): v for k, v in self.sweep.items()}}),
        }


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of events.
        rounds: of each contender.
    """
    count, processes = scaled(EVENTS, size), os.cpu_count() or 1
    with broker() as kafka:
        raw = Contender(events=count)
        _raw(kafka, raw)
        our_own, costs = _ours(kafka, count, rounds)
        _raw(kafka, raw)
        with postgres() as conninfo:
            table = _skip_locked(kafka, conninfo, count, rounds, processes)
            _raw(kafka, raw)
            queue = _procrastinate(kafka, conninfo, count, size, processes, ordered=True)
            loose = _procrastinate(kafka, conninfo, count, size, processes, ordered=False)
            version = server_version(conninfo)
        _raw(kafka, raw)
    return {
        "what": {"events": count, "rounds": rounds, "processes": processes, "partitions": 4},
        "contenders": {
            "delta-outbox": {
                **our_own.as_dict(),
                "cold": costs["cold"][0].rate,
                "seconds": [one.seconds for one in costs["rounds"]],
            },
            "raw producer": raw.as_dict(),
            "skip locked": table.as_dict(),
            "procrastinate": queue.as_dict(),
            "procrastinate, no order": loose.as_dict(),
        },
        "ratios": {
            "to the raw producer": ratio(median(our_own.rates), median(raw.rates)),
            "to skip locked": ratio(median(our_own.rates), median(table.rates)),
            "to procrastinate": ratio(median(our_own.rates), median(queue.rates)),
        },
        "costs": as_documents(costs),
        "postgresql": version,
    }


def _raw(kafka: Broker, raw: Contender) -> None:
    """Measure the raw producer once more: it is asked between all others."""
    stream = kafka.topic(Stream(name=f"bench.raw-{len(raw.rates)}", count=raw.events))
    seconds = in_own_process(raw_producer.produce_all, kafka.bootstrap, stream)
    kafka.check(stream)
    kafka.drop(stream)
    raw.rates.append(rate(len(stream), seconds))
    say(f"raw producer: {raw.rates[-1]:,.0f} events/s")


def _ours(kafka: Broker, count: int, rounds: int) -> tuple[Contender, dict[str, list[Cost]]]:
    swept = max(1000, round(count * SWEPT))
    streams = {
        "cold": Stream(name="bench.cold", count=swept),
        **{f"swept {n}": Stream(name=f"bench.swept-{n}", count=swept) for n in OUR_BATCHES},
        **{f"round {n}": Stream(name=f"bench.ours-{n}", count=count) for n in range(rounds)},
    }
    with kafka.filled([*streams.values()]):
        costs, batch = in_own_process(drain_ours, kafka.bootstrap, streams)
    rates = {name: cost.rate for name, cost in costs.items()}
    found = Contender(
        rates=[rates[f"round {n}"] for n in range(rounds)],
        batch=batch,
        sweep={n: rates[f"swept {n}"] for n in OUR_BATCHES},
        events=count,
    )
    say(f"delta-outbox: {rates}")
    in_turn = [costs[f"round {n}"] for n in range(rounds)]
    return found, {"cold": [costs["cold"]], "rounds": in_turn}


def drain_ours(bootstrap: str, streams: Mapping[str, Stream]) -> tuple[dict[str, Cost], int]:
    """Drain streams one after the other, the rounds with the best batch size of the sweep.

    Args:
        bootstrap: address of the broker.
        streams: by name; first the cold one, then those of the sweep, then the rounds.

    Returns:
        What each cost, and the batch size of the rounds.
    """
    costs: dict[str, Cost] = {}
    with ours.outbox_to_kafka(bootstrap) as outbox:
        batch = outbox.settings.relay.batch_size
        for name, stream in streams.items():
            if name.startswith("swept"):
                batch = int(name.split()[1])
            elif name.startswith("round"):
                batch = best({n: costs[f"swept {n}"].rate for n in OUR_BATCHES})
            ours.batches_of(outbox, batch)
            ours.append(outbox, stream)
            costs[name] = ours.drain(outbox, [stream])
        ours.check(outbox, streams.values())
    return costs, batch


def _skip_locked(
    kafka: Broker, conninfo: str, count: int, rounds: int, processes: int
) -> Contender:
    def once(name: str, events: int, batch: int) -> float:
        stream = Stream(name=name, count=events)
        found = skip_locked.rate_of(kafka, conninfo, stream, batch_size=batch, processes=processes)
        say(f"skip locked, batches of {batch}: {found:,.0f} events/s")
        return found

    swept = max(1000, round(count * SWEPT))
    sweep = {n: once(f"bench.table-swept-{n}", swept, n) for n in THEIR_BATCHES}
    batch = best(sweep)
    rates = [once(f"bench.table-{n}", count, batch) for n in range(rounds)]
    return Contender(rates=rates, batch=batch, sweep=sweep, events=count)


def _procrastinate(
    kafka: Broker, conninfo: str, count: int, size: float, processes: int, *, ordered: bool
) -> Contender:
    kind = "queue" if ordered else "loose"

    def once(name: str, jobs: int, limit: float) -> tuple[int, float]:
        stream = kafka.topic(Stream(name=f"bench.{kind}-{name}", count=count))
        delivered, seconds = procrastinate_queue.drain(
            conninfo,
            kafka.bootstrap,
            stream,
            concurrency=jobs,
            processes=processes,
            seconds=limit,
            ordered=ordered,
        )
        kafka.check(stream, only=delivered, in_order=ordered)
        kafka.drop(stream)
        found = rate(delivered, seconds)
        say(f"procrastinate ({kind}), {jobs} jobs at once: {found:,.0f} events/s")
        return delivered, found

    limits = [max(LEAST_SECONDS, limit * size) for limit in (SWEPT_QUEUE_SECONDS, QUEUE_SECONDS)]
    sweep = {jobs: once(f"swept-{jobs}", jobs, limits[0])[1] for jobs in JOBS_AT_ONCE}
    jobs = best(sweep)
    delivered, found = once("all", jobs, limits[1])
    return Contender(rates=[found], batch=jobs, sweep=sweep, events=delivered)

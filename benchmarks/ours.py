"""Our outbox in a benchmark: opened in a home of its own, drained, and checked afterwards."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.costs import Cost, Meter
from benchmarks.messages import Stream
from benchmarks.results import BenchmarkFailed
from tests.integration.store import Store

from delta_outbox.outbox import Outbox
from delta_outbox.opening import open_outbox
from delta_outbox.settings import DestinationLimits, PublisherSettings, SecretMapping
from delta_outbox.relay import Mode, Relay
from delta_outbox.dbt import check_result, run_dbt
from delta_outbox.home import find_home
from delta_outbox.spark_settings import DRIVER_MEMORY_VARIABLE

DRIVER_MEMORY: Final = "2g"
APPENDED_AT_ONCE: Final = 100_000  # rows per commit
WARM_UP: Final = 20_000  # events
CHECKS: Final = (
    *("build", "--select", "outbox_state", "delivery_policies", "policy_rows", "tag:invariants"),
)

_SETTINGS: Final = """\
[publishers.{name}]
type = "{type}"
{settings}
"""


@contextlib.contextmanager
def outbox_for(
    type_: str,
    settings: Mapping[str, object],
    *,
    others: Mapping[str, tuple[str, Mapping[str, object]]] | None = None,
) -> Iterator[Outbox]:
    """Open a new outbox with a destination for a block; it is removed afterwards.

    Args:
        type_: of the destination's publisher.
        settings: of the publisher.
        others: type and settings of further destinations, by name.
    """
    os.environ[DRIVER_MEMORY_VARIABLE] = DRIVER_MEMORY
    publishers = {"default": (type_, settings), **(others or {})}
    with tempfile.TemporaryDirectory(
        prefix="delta-outbox-benchmark-", ignore_cleanup_errors=True
    ) as folder:
        home = find_home(environ={"OUTBOX_HOME": str(Path(folder) / "home")}, create=True)
        home.write_settings(
            "".join(
                _SETTINGS.format(name=name, type=kind, settings=_lines(given))
                for name, (kind, given) in publishers.items()
            )
        )
        with open_outbox(home=home, create=True) as outbox:
            yield outbox


@contextlib.contextmanager
def outbox_to_kafka(
    bootstrap: str, *, others: Mapping[str, tuple[str, Mapping[str, object]]] | None = None
) -> Iterator[Outbox]:
    """Open a new outbox whose destination is a Kafka for a block.

    Args:
        bootstrap: address of the broker.
        others: type and settings of further destinations, by name.
    """
    with outbox_for("kafka", kafka_settings(bootstrap), others=others) as outbox:
        yield outbox


def kafka_settings(bootstrap: str) -> dict[str, object]:
    """Return the settings of a destination that is a Kafka.

    Args:
        bootstrap: address of the broker.
    """
    return {"bootstrap.servers": bootstrap, "topics": ["bench.*"]}


def add_policy(outbox: Outbox, event_type: str, **given: str) -> None:
    """Put a policy before all others.

    Args:
        outbox: the store, between two relays.
        event_type: the pattern.
        given: its other columns.
    """
    assert outbox.home is not None
    store = Store(
        spark=outbox.spark, home=outbox.home, tables=outbox.tables, statements=outbox.statements
    )
    store.add_policy(event_type, **given)


def drop_policy(outbox: Outbox, event_type: str) -> None:
    """Take a policy away that was put before all others.

    Args:
        outbox: the store, between two relays.
        event_type: the pattern.
    """
    rows = outbox.tables["policy_rows"]
    outbox.spark.sql(f"delete from {rows} where event_type = '{event_type}'")


def replay(outbox: Outbox, event_id: str) -> None:
    """Ask for an event to be delivered again.

    Args:
        outbox: the store.
        event_id: of an event that is PUBLISHED.

    Raises:
        BenchmarkFailed: it cannot be.
    """
    report = outbox.replay(
        state="PUBLISHED",
        event_ids=[event_id],
        actor="benchmark",
        reason="what a replay costs",
        dry_run=False,
    )
    if report.deliveries != 1:
        raise BenchmarkFailed(f"The replay of {event_id} ended so: {report}")


def _lines(settings: Mapping[str, object]) -> str:
    return "\n".join(f'"{name}" = {_toml(value)}' for name, value in settings.items())


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def batches_of(outbox: Outbox, size: int) -> None:
    """Let the relays of an outbox claim so many events at once from now on.

    Args:
        outbox: the store.
        size: events.
    """
    outbox.settings = replace(
        outbox.settings, relay=replace(outbox.settings.relay, batch_size=size)
    )


def deliver_to(
    outbox: Outbox,
    type_: str,
    settings: Mapping[str, object],
    *,
    destination: str = "default",
    limits: DestinationLimits | None = None,
) -> None:
    """Let a destination of an outbox be another one from now on.

    Args:
        outbox: the store, between two relays.
        type_: of the publisher.
        settings: of the publisher.
        destination: its name.
        limits: of the destination; none if left out.
    """
    given = PublisherSettings(
        type=type_, settings=SecretMapping(settings), limits=limits or DestinationLimits()
    )
    publishers = {**outbox.settings.publishers, destination: given}
    outbox.settings = replace(outbox.settings, publishers=publishers)


def append(outbox: Outbox, *streams: Stream, available_at: datetime | None = None) -> None:
    """Append streams as a Spark job would, in commits of `APPENDED_AT_ONCE`.

    Several streams go side by side: each commit holds the same share of every one.

    Args:
        outbox: the store.
        streams: of messages that no log has so far.
        available_at: before which nothing of them is due; at once if left out.
    """
    total = sum(len(stream) for stream in streams)
    parts = max(1, -(-total // APPENDED_AT_ONCE))
    for part in range(parts):
        frames = []
        for stream in streams:
            first, end = (len(stream) * at // parts for at in (part, part + 1))
            frames.append(
                stream.frame(
                    outbox.spark, first=first, count=end - first, available_at=available_at
                )
            )
        rows = frames[0]
        for frame in frames[1:]:
            rows = rows.unionByName(frame)
        rows.write.format("delta").mode("append").saveAsTable(outbox.tables.events)


def drain(outbox: Outbox, streams: Iterable[Stream], *, waiting: int = 0) -> Cost:
    """Deliver all that is open and return what it cost, planning included.

    Args:
        outbox: the store.
        streams: what is due.
        waiting: how many others are open, and cannot be delivered now.

    Raises:
        BenchmarkFailed: not all of it was delivered, or something else was.
    """
    wanted = sum(len(stream) for stream in streams)
    meter = Meter()
    summary = Relay(outbox).run(Mode.DRAIN)
    cost = meter.cost(wanted)
    if summary.published != wanted or summary.waiting != waiting or summary.dead:
        raise BenchmarkFailed(
            f"A drain of {wanted} events beside {waiting} ended so: {summary.as_dict()}"
        )
    return cost


def drain_each(
    outbox: Outbox, drains: Iterable[Sequence[Stream]]
) -> tuple[list[float], list[Cost]]:
    """Append and drain streams, those of a list side by side, and check all of them at the end.

    Args:
        outbox: the store.
        drains: what is open at once.

    Returns:
        When each drain began, in seconds since 1970, and what it cost.

    Raises:
        BenchmarkFailed: not all of it was delivered, or something else was.
        DbtFailed: an invariant is broken.
    """
    starts, costs, done = [], [], list[Stream]()
    for streams in drains:
        append(outbox, *streams)
        starts.append(time.time())
        costs.append(drain(outbox, streams))
        done += streams
    check(outbox, done)
    return starts, costs


def drain_in_batches(bootstrap: str, plan: Sequence[tuple[int, Stream]]) -> list[Cost]:
    """Drain streams one after the other in a new outbox, and return what each cost.

    Args:
        bootstrap: address of the broker.
        plan: how many events a batch has at most, and a stream; `batch_bytes` bounds it as well.
    """
    costs = []
    with outbox_to_kafka(bootstrap) as outbox:
        for batch, stream in plan:
            batches_of(outbox, batch)
            append(outbox, stream)
            costs.append(drain(outbox, [stream]))
        check(outbox, [stream for _, stream in plan])
    return costs


def check(outbox: Outbox, streams: Iterable[Stream], *, attempts: int | None = 1) -> None:
    """Demand what `check_states` does, and that no invariant of the project is broken.

    Raises:
        BenchmarkFailed: an event is in another state, or took more attempts.
        DbtFailed: an invariant is broken.
    """
    check_invariants(outbox)
    check_states(outbox, streams, attempts=attempts)


def check_states(outbox: Outbox, streams: Iterable[Stream], *, attempts: int | None = 1) -> None:
    """Demand that streams are PUBLISHED.

    Args:
        outbox: the store.
        streams: what was delivered.
        attempts: that each event took, and no more; None: any number.

    Raises:
        BenchmarkFailed: an event is in another state, or took more attempts.
    """
    rows = outbox.spark.sql(
        "select event_type, count_if(state = 'PUBLISHED') as published, count(*) as deliveries, "
        f"max(attempts) as attempts from {outbox.tables.state} group by event_type"
    ).collect()
    found = {row["event_type"]: row for row in rows}
    for stream in streams:
        row = found.get(stream.name)
        if row is None or not row["published"] == row["deliveries"] == len(stream):
            raise BenchmarkFailed(f"{stream.name}: {len(stream)} events should be PUBLISHED: {row}")
        if attempts is not None and row["attempts"] != attempts:
            raise BenchmarkFailed(f"{stream.name}: {row['attempts']} attempts, not {attempts}")


def check_invariants(outbox: Outbox) -> None:
    """Demand that nothing in the logs breaks a rule.

    Raises:
        DbtFailed: something does.
    """
    assert outbox.home is not None
    check_result(run_dbt(CHECKS, home=outbox.home, schema=outbox.tables.schema))


def jvm(outbox: Outbox) -> Any:
    """Return the gateway to the JVM of a local session.

    Args:
        outbox: the store.
    """
    return outbox.spark.sparkContext._jvm

"""Spans of a relay: a worker sees the trace of an event, also where only its metadata has it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from tests.integration.outboxes import Store, open_store

from delta_outbox.core.settings import PublisherSettings, RelaySettings, SecretMapping, Settings
from delta_outbox.lifecycle.results import Delivered, Result
from delta_outbox.publishers.protocol import EventBatch
from delta_outbox.relay import Mode, Relay
from delta_outbox.relay.publish.tracing import TracingUnavailable
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest

TRACES = ["1" * 32, "2" * 32]


class Configuring:
    """Configure the worker that opens it to write its spans to a file, and deliver everything."""

    ordered: ClassVar[bool] = True

    def open(self, settings: Mapping[str, object]) -> None:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

        if isinstance(trace.get_tracer_provider(), TracerProvider):
            return
        provider = TracerProvider()
        file = Path(str(settings["path"])).open("a", encoding="utf-8")  # noqa: SIM115 - to the end
        exporter = ConsoleSpanExporter(out=file, formatter=lambda one: f"{one.to_json(None)}\n")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        trace.set_tracer_provider(provider)

    def publish(self, events: EventBatch) -> list[Result]:
        return [Delivered()] * len(events)

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share."""
    with open_store(spark, home, "t_tracing") as store:
        yield store


def relay(store: Store, file: Path) -> Relay:
    """Return a relay that traces into a file."""
    settings = Settings(
        relay=RelaySettings(batch_size=10, poll_seconds=0.05, parallelism=2, tracing=True),
        publishers={
            "default": PublisherSettings(
                type=f"{__name__}:Configuring", settings=SecretMapping({"path": str(file)})
            )
        },
    )
    return Relay(store.open(settings))


def insert(store: Store, *rows: tuple[str, str, str]) -> None:
    """Insert (event_id, headers, metadata)."""
    values = ", ".join(f"('{one}', 'x', cast('' as binary), {h}, {m})" for one, h, m in rows)
    store.spark.sql(
        f"insert into {store.tables.events} (event_id, event_type, payload, headers, metadata) "
        f"values {values}"
    )


def context(trace: str) -> str:
    """Return a map with a parent in a trace."""
    return f"map('traceparent', '00-{trace}-{'5' * 16}-01')"


def test_publishing_is_part_of_the_trace_of_an_event(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether headers or metadata say so, the worker's span of an event has its parent there. A
    relay that is to trace and cannot claims nothing and names the extra.
    """
    first, second = TRACES
    insert(
        store,
        ("headers", context(first), context("3" * 32)),
        ("metadata", "map('a', 'b')", context(second)),
        ("neither", "null", "null"),
    )
    file = tmp_path / "spans.jsonl"
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "opentelemetry.trace", None)
        with pytest.raises(TracingUnavailable, match="'opentelemetry-api' is missing"):
            relay(store, file).run(Mode.ONCE)
    assert [] == store.transitions()
    summary = relay(store, file).run(Mode.DRAIN)
    assert (3, 3) == (summary.claimed, summary.published)
    spans: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
    found = {
        span["attributes"]["messaging.message.id"]: (
            span["context"]["trace_id"],
            span["parent_id"],
        )
        for span in spans
    }
    parent = f"0x{'5' * 16}"
    assert {"headers": (f"0x{first}", parent), "metadata": (f"0x{second}", parent)} == found

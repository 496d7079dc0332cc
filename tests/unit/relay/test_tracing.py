"""Spans of publish attempts: in the trace that the event carries, and at no cost to the answers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.unit.relay import test_slice
from tests.unit.relay.test_slice import CONTENT, INPUT, SECRET, Leaking, Raising, Steady

from delta_outbox.lifecycle.results import Delivered, NotSent, Result
from delta_outbox.publishers.protocol import Event, EventBatch
from delta_outbox.relay.publish.deadline import Deadline
from delta_outbox.relay.publish.slice import Job, publish_slice
from delta_outbox.relay.publish.tracing import Tracing, TracingUnavailable, check_tracing

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = ("traceparent", f"00-{TRACE}-{SPAN}-01")
OTHER = ("traceparent", f"00-{'a' * 32}-{'b' * 16}-01")
UNSAMPLED = ("traceparent", f"00-{'c' * 32}-{'d' * 16}-00")
CREATED_AT = datetime(2026, 1, 1, tzinfo=UTC)
STATE = ("tracestate", "vendor=1")
TRACED_INPUT = INPUT.append(pa.field("metadata", pa.map_(pa.string(), pa.string())))

EXPORTER = InMemorySpanExporter()


class Seeing(Steady):
    """Remember the headers that it is given."""

    headers: Sequence[Any] = ()

    def publish(self, events: EventBatch) -> list[Result]:
        Seeing.headers = [event.headers for event in events]
        return super().publish(events)


class Refraining(Steady):
    """Send the first of two."""

    def publish(self, events: EventBatch) -> list[Result]:
        return [*super().publish(events[:-1]), NotSent()]


class Breaking(SpanProcessor):
    """Raise at the end of the span of one event."""

    def on_end(self, span: ReadableSpan) -> None:
        if (span.attributes or {})["messaging.message.id"] == "breaks":
            raise RuntimeError("the exporter is broken")


@pytest.fixture(scope="module", autouse=True)
def _provider() -> None:
    """Configure this process as a user configures a worker."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
    provider.add_span_processor(Breaking())
    trace.set_tracer_provider(provider)


@pytest.fixture(autouse=True)
def _no_spans() -> Iterator[None]:
    EXPORTER.clear()
    yield
    EXPORTER.clear()


def publish(
    *given: dict[str, Any],
    publisher: type[Steady] = Steady,
    tracing: bool = True,
    budget: float = 60.0,
    **settings: object,
) -> str:
    """Publish a slice, and return its answers in short."""
    plain = test_slice.rows(*({k: v for k, v in row.items() if k != "metadata"} for row in given))
    metadata = [row.get("metadata") for row in given]
    rows = plain.append_column("metadata", pa.array(metadata, TRACED_INPUT.field("metadata").type))
    job = Job(
        claim_id="c",
        destinations={"d": (f"{publisher.__module__}:{publisher.__name__}", settings)},
        deadline=Deadline.after(60),
        budget=budget,
        tracing=tracing,
    )
    answers = publish_slice(job, [rows if tracing else plain], attempt_number=0)
    found = [row for batch in answers for row in batch.to_pylist()]
    return "".join(row["code"] for row in sorted(found, key=lambda row: row["position"]))


def spans() -> dict[str, ReadableSpan]:
    """Return the spans by message id."""
    found = {
        str((s.attributes or {})["messaging.message.id"]): s for s in EXPORTER.get_finished_spans()
    }
    assert len(found) == len(EXPORTER.get_finished_spans())
    return found


def parents() -> dict[str, tuple[str, str] | None]:
    """Return trace and parent of every span."""
    return {
        name: span.parent and (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}")
        for name, span in spans().items()
    }


def test_the_parent_is_of_headers_else_of_metadata() -> None:
    """The span of an attempt belongs to the trace of the event's headers; where these have none
    that is valid, to that of its metadata; an event without any has no span.
    """
    broken = ("traceparent", "00-no-trace-01")
    codes = publish(
        {"headers": [PARENT, STATE], "metadata": [OTHER]},
        {"headers": [("a", "b")], "metadata": [OTHER, ("source", "x")]},
        {"headers": [broken, STATE], "metadata": [OTHER]},
        {"headers": [broken], "metadata": None},
        {"headers": [("traceparent", None)], "metadata": []},
        {},
    )
    assert "DDDDDD" == codes
    other = ("a" * 32, "b" * 16)
    assert {"e0": (TRACE, SPAN), "e1": other, "e2": other} == parents()
    states = {name: dict(span.context.trace_state) for name, span in spans().items()}
    assert {"e0": {"vendor": "1"}, "e1": {}, "e2": {}} == states


def test_a_span_says_what_was_attempted() -> None:
    """Kind, name, times and attributes follow the conventions for messaging, and say which
    attempt of which claim it was.
    """
    before = time.time_ns()
    publish({"metadata": [PARENT], "lifecycle": 2, "attempt": 3, "route": "orders"}, {})
    after = time.time_ns()
    [span] = EXPORTER.get_finished_spans()
    assert ("publish d", trace.SpanKind.PRODUCER) == (span.name, span.kind)
    assert {
        "messaging.system": "tests.unit.relay.test_slice:Steady",
        "messaging.operation.name": "publish",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "messaging.message.id": "e0:2",
        "delta_outbox.destination": "d",
        "delta_outbox.event_type": "x",
        "delta_outbox.lifecycle": 2,
        "delta_outbox.attempt": 3,
        "delta_outbox.claim_id": "c",
        "delta_outbox.events_of_call": 2,
    } == dict(span.attributes or {})
    assert span.status.is_unset
    assert span.start_time is not None
    assert span.end_time is not None
    assert before <= span.start_time <= span.end_time <= after


def test_spans_of_a_call_share_its_times() -> None:
    """What went out in one call began and ended with it: nobody knows more."""
    publish({"metadata": [PARENT]}, {"metadata": [PARENT]}, {"metadata": [OTHER]})
    assert 3 == len(EXPORTER.get_finished_spans())
    assert 1 == len({(span.start_time, span.end_time) for span in EXPORTER.get_finished_spans()})


def test_an_attempt_that_failed_is_an_error() -> None:
    """A span says how the attempt ended; an event that never left has none."""
    traced = {"metadata": [PARENT]}
    codes = publish(traced, traced, traced, traced, publisher=Leaking, password="p")
    assert "FRUD" == codes
    ends = {
        name: ((span.attributes or {}).get("error.type"), span.status.status_code.name)
        for name, span in spans().items()
    }
    assert {
        "e0": ("failed", "ERROR"),
        "e1": ("rejected", "ERROR"),
        "e2": ("unknown", "ERROR"),
        "e3": (None, "UNSET"),
    } == ends
    EXPORTER.clear()
    held = {**traced, "scope": "k"}
    assert "UN" == publish(held, held, publisher=Raising)
    assert "unknown" == (spans()["e0"].attributes or {})["error.type"]
    assert ["e0"] == list(spans())
    EXPORTER.clear()
    assert "DN" == publish(traced, traced, publisher=Refraining)
    assert ["e0"] == list(spans())
    EXPORTER.clear()
    assert "N" == publish(traced, budget=0)
    assert {} == spans()


@pytest.mark.parametrize("deliveries", [4, 5])
def test_no_secret_and_no_content_is_in_a_span(deliveries: int) -> None:
    """Whatever a publisher says or raises, spans hold no payload, no value of a header or of
    metadata, and no secret.
    """
    given = {**CONTENT, "headers": [*CONTENT["headers"], PARENT], "metadata": [("who", "Ada L.")]}
    codes = publish(*[given] * deliveries, publisher=Leaking, password=SECRET)
    assert ("FRUD" if deliveries == 4 else "UUUUU") == codes
    shown = [span.to_json() for span in EXPORTER.get_finished_spans()]
    assert deliveries == len(shown)
    parts = ("hunter2", "and more", "4111-1111", "Bearer", "Ada L.")
    assert [] == [part for part in parts if part in "".join(shown)]


def test_headers_leave_as_they_are() -> None:
    """Tracing adds nothing to what is sent, nor changes it."""
    publish({"headers": [PARENT, ("a", "b")]}, {"metadata": [OTHER]}, publisher=Seeing)
    assert 2 == len(spans())
    assert [dict([PARENT, ("a", "b")]), None] == Seeing.headers


def test_off_it_makes_no_spans() -> None:
    """Without the setting no event is looked into, and rows need no metadata."""
    assert "D" == publish({"headers": [PARENT]}, tracing=False)
    assert {} == spans()


def test_what_the_producer_does_not_sample_is_not_exported() -> None:
    """A producer that samples its trace out decides so for the publish span too."""
    publish({"metadata": [UNSAMPLED]}, {"metadata": [PARENT]})
    assert ["e1"] == list(spans())


def test_a_broken_exporter_changes_no_answer() -> None:
    """Where spans cannot be made the slice goes on without, and every answer is as it was."""
    one = {"metadata": [PARENT]}
    assert "DDD" == publish(one, {**one, "event_id": "breaks"}, one)
    assert ["e0", "breaks"] == list(spans())


def test_no_span_is_made_after_the_deadline() -> None:
    """An exporter that blocks does not take the time that a lease needs for the way back."""
    row = {"destination": "d", "metadata": dict([PARENT])}
    event = Event(event_id="e", event_type="x", payload=b"", created_at=CREATED_AT)
    for seconds, expected in ((-1, []), (60, ["e"])):
        events = EventBatch([event], deadline=time.monotonic() + seconds)
        Tracing({"d": "null"}).record([row], events, [Delivered()], started=time.time_ns())
        assert expected == list(spans())


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without OpenTelemetry the driver refuses to trace and names the extra; a worker publishes."""
    check_tracing()
    for name in ("opentelemetry", "opentelemetry.trace", "opentelemetry.context"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(TracingUnavailable, match="'opentelemetry-api' is missing") as caught:
        check_tracing()
    assert "pip install 'delta-outbox[otel]'" in caught.value.remedy
    assert "D" == publish({"metadata": [PARENT]})
    assert {} == spans()


PROVIDER = """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

def configured():
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
    return provider
"""
WORKER = """
from tests.unit.relay.test_tracing import PARENT, publish
print(publish({"metadata": [PARENT]}))
"""


def test_a_worker_is_configured_by_its_environment(tmp_path: Path) -> None:
    """As docs/tracing.md says: OTEL_PYTHON_TRACER_PROVIDER names an entry point, and the first
    slice of a worker makes its provider.
    """
    (tmp_path / "shop_tracing.py").write_text(PROVIDER)
    info = tmp_path / "shop_tracing-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop-tracing\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[opentelemetry_tracer_provider]\nshop = shop_tracing:configured\n"
    )
    # pyarrow would look for it at its first array, for nothing.
    (tmp_path / "pandas.py").write_text("raise ImportError")
    root = Path(__file__).parents[3]
    path = os.pathsep.join(map(str, (tmp_path, root, root / "python")))
    ran = subprocess.run(
        [sys.executable, "-c", WORKER],
        env={**os.environ, "PYTHONPATH": path, "OTEL_PYTHON_TRACER_PROVIDER": "shop"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.endswith("D\n")
    assert f'"trace_id": "0x{TRACE}"' in ran.stdout
    assert f'"parent_id": "0x{SPAN}"' in ran.stdout

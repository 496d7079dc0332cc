"""A span per publish attempt, in the trace that the event carries; docs/tracing.md says more.

Spans are made when the answers are there, with the times of the call: what never left has none,
and whatever happens here changes no answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from delta_outbox.core.errors import OutboxError
from delta_outbox.core.redaction import describe
from delta_outbox.core.version import __version__
from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected, Result
from delta_outbox.publishers.protocol import Event, EventBatch

if TYPE_CHECKING:
    from opentelemetry.context import Context

logger = logging.getLogger(__name__)

SYSTEMS: Final[Mapping[str, str]] = {"sqs": "aws_sqs"}
"""Types of publishers whose name in OpenTelemetry's conventions is another one."""
ERROR_TYPES: Final[Mapping[type, str]] = {Failed: "failed", Rejected: "rejected"}
"""What `error.type` says; of anything else nobody knows whether it was delivered."""


class TracingUnavailable(OutboxError):
    """Tracing is on and OpenTelemetry is not installed: install it, or switch tracing off."""

    code: ClassVar[str] = "TRACING_UNAVAILABLE"
    remedy = (
        "Install it where relay and executors run: pip install 'delta-outbox[otel]', "
        "or set `relay.tracing` to false."
    )


def check_tracing() -> None:
    """Refuse what would trace nothing.

    Raises:
        TracingUnavailable: the extra is not installed.
    """
    try:
        import opentelemetry.trace  # noqa: F401
    except ModuleNotFoundError as error:
        raise TracingUnavailable(
            "relay.tracing: the Python package 'opentelemetry-api' is missing."
        ) from error


def open_tracing(destinations: Mapping[str, tuple[str, Mapping[str, object]]]) -> Tracing | None:
    """Return what makes the spans of a slice, None where it cannot be had.

    Args:
        destinations: name to (publisher type, prepared settings).
    """
    try:
        return Tracing({name: type_ for name, (type_, _) in destinations.items()})
    except Exception as error:  # noqa: BLE001 - a worker without it publishes all the same
        logger.warning("tracing_unavailable", extra={"error": describe(error)})
        return None


class Tracing:
    """Makes the spans of one slice, by the provider that this process is configured with.

    Args:
        types: destination to the type of its publisher.
    """

    def __init__(self, types: Mapping[str, str]) -> None:
        """Import OpenTelemetry and ask for a tracer."""
        from opentelemetry import context, trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._trace = trace
        self._nothing = context.Context()
        self._extract = TraceContextTextMapPropagator().extract
        self._tracer = trace.get_tracer("delta_outbox", __version__)
        self._types = types
        self._works = True

    def record(
        self,
        rows: Sequence[Mapping[str, Any]],
        events: EventBatch,
        results: Sequence[Result],
        *,
        started: int,
    ) -> None:
        """Make the spans of one call; it ends now. From the deadline on none is made.

        Args:
            rows: of one destination, with `metadata`.
            events: made of the rows.
            results: one per event.
            started: of the call, in nanoseconds since 1970.
        """
        ended = time.time_ns()
        if not self._works:
            return
        try:
            for row, event, result in zip(rows, events, results, strict=True):
                if isinstance(result, NotSent):
                    continue
                if time.monotonic() >= events.deadline:
                    logger.warning("tracing_out_of_time", extra={"events": len(events)})
                    return
                parent = self._parent(event.headers or {}, row["metadata"] or {})
                if parent is not None:
                    destination = row["destination"]
                    self._span(parent, destination, event, result, (started, ended, len(events)))
        except Exception as error:  # noqa: BLE001 - a provider is anybody's code
            self._works = False
            logger.warning("tracing_failed", extra={"error": describe(error)})

    def _parent(self, *carriers: Mapping[str, str | None]) -> Context | None:
        """Return the first valid context of a `traceparent`, with its `tracestate`."""
        for carrier in carriers:
            found = {name: value for name, value in carrier.items() if name in _CONTEXT and value}
            if "traceparent" in found:
                context = self._extract(found, self._nothing)
                if self._trace.get_current_span(context).get_span_context().is_valid:
                    return context
        return None

    def _span(
        self,
        parent: Context,
        destination: str,
        event: Event,
        result: Result,
        call: tuple[int, int, int],
    ) -> None:
        started, ended, size = call
        type_ = self._types[destination]
        attributes: dict[str, str | int] = {
            "messaging.system": SYSTEMS.get(type_, type_),
            "messaging.operation.name": "publish",
            "messaging.operation.type": "send",
            "messaging.destination.name": event.route,
            "messaging.message.id": event.delivery_id,
            "delta_outbox.destination": destination,
            "delta_outbox.event_type": event.event_type,
            "delta_outbox.lifecycle": event.lifecycle,
            "delta_outbox.attempt": event.attempt,
            "delta_outbox.claim_id": event.claim_id,
            "delta_outbox.events_of_call": size,
        }
        if not isinstance(result, Delivered):
            attributes["error.type"] = ERROR_TYPES.get(type(result), "unknown")
        span = self._tracer.start_span(
            f"publish {destination}",
            context=parent,
            kind=self._trace.SpanKind.PRODUCER,
            attributes=attributes,
            start_time=started,
        )
        if not isinstance(result, Delivered):
            span.set_status(self._trace.StatusCode.ERROR)
        span.end(end_time=ended)


_CONTEXT: Final = ("traceparent", "tracestate")

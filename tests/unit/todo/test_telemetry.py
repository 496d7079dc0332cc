"""What the server of items tells whoever traces its process: nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
# In a process of its own: the provider of a process is set once, and other tests have theirs.
TRACED = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

from tests.unit.todo.memory_items import office

with office() as desk:
    found = desk.client.get("/todo/link?id=review-o1&until=&signature=secret")
print(found.status_code, [span.name for span in exporter.get_finished_spans()])
"""


def test_no_span_has_the_address_of_a_link() -> None:
    """Where the process is traced, no span is made: a link is a secret, and stands in addresses."""
    done = subprocess.run(
        [sys.executable, "-c", TRACED], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert "404 []\n" == done.stdout, done.stderr

"""Large payloads are delivered whatever their number: bytes bound what is held at once."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from tests.integration.outboxes import Store, events

from delta_outbox.lifecycle.results import Delivered, Rejected, Result
from delta_outbox.publishers.protocol import EventBatch
from delta_outbox.relay import Mode, Relay
from delta_outbox.relay.publish.event_places import with_sizes
from delta_outbox.runtime.home import find_home

MIB = 1024**2
LARGE = 875 * 1024  # bytes of a payload
WORKER_MIB = 1024


_SEED = f"""
import sys
from delta_outbox.api import open_outbox
with open_outbox(create=True) as outbox:
    key, start = "md5(string(id))", "unhex(repeat('00', 16))"
    payload = f"aes_encrypt(repeat('x', {LARGE}), {{key}}, 'CBC', 'PKCS', {{start}})"
    outbox.spark.sql(
        f"insert into {{outbox.tables.events}} (event_id, event_type, payload) "
        f"select string(id), 'order.created', {{payload}} from range(0, 1200, 1, 2)"
    )
    if sys.argv[1] == "by Spark":
        outbox.refresh()
"""
_DRAIN = "import sys; from delta_outbox.cli.main import main; sys.exit(main())"


class Weighing:
    """Take payloads of one size, and say how much memory the worker has taken so far."""

    ordered: ClassVar[bool] = True

    def open(self, settings: Mapping[str, object]) -> None:
        """Learn how large a payload is to be."""
        self._size = int(str(settings["size"]))

    def publish(self, events: EventBatch) -> list[Result]:
        """Deliver what has the size."""
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        said = Delivered(outcome_data={"mib": most, "call": sum(len(e.payload) for e in events)})
        return [
            said if len(event.payload) == self._size else Rejected(error="it has another size")
            for event in events
        ]

    def close(self) -> None:
        """Have nothing to release."""


@pytest.fixture
def store(shared_store: Store) -> Store:
    """Return an outbox in which nothing is open; each test leaves it so."""
    return shared_store


def insert(store: Store, prefix: str, count: int, size: int) -> None:
    """Insert large events in one commit."""
    text = f"repeat(concat(id, '-abcdefghijklmn'), {size // 8})"
    store.spark.sql(
        f"insert into {store.tables.events} (event_id, event_type, payload) "
        f"select concat('{prefix}-', lpad(string(id), 6, '0')), 'order.created', "
        f"cast(substr({text}, 1, {size}) as binary) from range(0, {count}, 1, 2)"
    )


def claims(store: Store, prefix: str) -> list[int]:
    """Return how many events each claim has taken."""
    found: dict[str, int] = defaultdict(int)
    for row in store.transitions(prefix):
        found[row["claim_id"]] += row["to_state"] == "CLAIMED"
    return list(found.values())


@pytest.mark.parametrize(
    ("read", "count"),
    [
        ("by Spark", 200),
        pytest.param("by Spark", 600, marks=pytest.mark.rest),
        pytest.param("from files", 600, marks=pytest.mark.rest),
    ],
)
def test_a_commit_of_large_payloads_is_delivered(
    store: Store, tmp_path: Path, read: str, count: int
) -> None:
    """Half a gigabyte in one commit, which no claim by number would cut, is delivered in one
    attempt each, in claims and calls of so many bytes, and no worker takes more than its memory.
    """
    prefix = f"{read}-{count}".replace(" ", "-")
    insert(store, prefix, count, LARGE)
    outbox = store.outbox(
        tmp_path, publisher=f"{__name__}:Weighing", further={"size": LARGE}, batch_size=1_000_000
    )
    if read == "by Spark":
        outbox.refresh()
    summary = Relay(outbox).run(Mode.DRAIN)
    assert (count, count, 0) == (summary.claimed, summary.published, summary.waiting)
    whole, left = divmod(count, 74)
    assert [74] * whole + [left] == sorted(claims(store, prefix), reverse=True)
    said = [json.loads(r["outcome_data"]) for r in store.transitions(prefix) if r["outcome_data"]]
    assert WORKER_MIB > max(one["mib"] for one in said)
    assert 16 * MIB >= max(one["call"] for one in said)


@pytest.mark.rest
def test_a_size_that_no_row_says_is_looked_up(store: Store) -> None:
    """Of deliveries whose sizes nobody knows, as in a log of format 1, the payloads are looked at;
    what is known stays as it is.
    """
    payloads = [b"x" * n for n in range(40)]
    outbox = store.outbox(Path())
    outbox.append(events("looked", 40, payloads=payloads)).raise_if_rejected()
    claim = outbox.claim(40)
    assert claim is not None
    given = claim.deliveries
    index = given.schema.get_field_index("payload_bytes")
    told = pa.array([7] + [None] * 39, pa.int32())
    unknown = given.set_column(index, given.schema.field(index), told)
    found = with_sizes(outbox.spark, outbox.tables, unknown)
    assert [7, *range(1, 40)] == found["payload_bytes"].to_pylist()
    assert given.drop_columns(["payload_bytes"]) == found.drop_columns(["payload_bytes"])
    outbox.end(claim, [Delivered()] * 40)


@pytest.mark.rest
def test_a_large_batch_is_appended_and_known_again(store: Store, tmp_path: Path) -> None:
    """A batch that Spark is not to hold at once is appended, compared with what is there when it
    comes again, and delivered in order.
    """
    payloads = [b"%04d" % n * (LARGE // 4) for n in range(100)]
    batch = events("batch", 100, payloads=payloads)
    outbox = store.outbox(
        tmp_path, publisher=f"{__name__}:Weighing", further={"size": LARGE}, batch_size=1_000_000
    )
    assert batch.nbytes > 64 * MIB
    first, again = outbox.append(batch), outbox.append(batch)
    assert [(100, 0), (0, 100)] == [(r.appended, r.already_present) for r in (first, again)]
    other = events("batch", 100, payloads=[*payloads[:99], b"other"])
    rejected = outbox.append(other).rejected
    assert [(100, "same_id_same_content")] == [(one.line, one.rule) for one in rejected]
    assert 100 == Relay(outbox).run(Mode.DRAIN).published
    assert [74, 26] == claims(store, "batch")


@pytest.mark.rest
@pytest.mark.local
@pytest.mark.parametrize("read", ["by Spark", "from files"])
def test_a_gigabyte_is_delivered_with_a_small_heap(
    tmp_path: Path, plain_environment: Mapping[str, str], read: str
) -> None:
    """1 GB of large payloads in one commit is delivered by `outbox relay --drain` whose Java has
    half of that.
    """
    home = find_home(environ={"OUTBOX_HOME": str(tmp_path / "home")}, create=True)
    home.write_settings('[publishers.default]\ntype = "null"\n')
    environment = {**plain_environment, "OUTBOX_HOME": str(home.root)}
    seeded = subprocess.run(
        [sys.executable, "-c", _SEED, read], env=environment, capture_output=True, check=False
    )
    assert 0 == seeded.returncode, seeded.stderr
    drained = subprocess.run(
        [sys.executable, "-c", _DRAIN, "relay", "--drain", "--json"],
        env={**environment, "OUTBOX_DRIVER_MEMORY": "512m"},
        capture_output=True,
        check=False,
    )
    assert 0 == drained.returncode, drained.stderr
    found = json.loads(drained.stdout)
    assert (1200, 1200, 0) == (found["claimed"], found["published"], found["waiting"])

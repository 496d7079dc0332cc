"""The relay through a server, as on a local session.

The very tests of the folder above, on one store; they find their fixtures here. Left out are
those that rest on having the home for oneself (through a server nothing proves at once that a
worker is gone), and two relays at once, which tests/faults/served shows with processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.outboxes import Store, as_if_ended, check_lives, events, open_store
from tests.integration.relay.test_relay import (  # noqa: F401 - collected here
    test_drain_delivers_everything_once,
)
from tests.integration.relay.test_trouble import (  # noqa: F401 - collected here
    GIVES_UP_SOON,
    test_failures_are_retried_then_dead,
)

from delta_outbox.lifecycle.results import Delivered
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share."""
    with open_store(spark, home, "t_connect") as store:
        store.add_policy("trouble.*", **GIVES_UP_SOON)
        yield store


def test_nobody_is_taken_for_gone(store: Store, tmp_path: Path) -> None:
    """A worker of another client is not gone because it is unknown here: its claim is its own
    until the lease has run out.
    """
    one, other = store.outbox(tmp_path / "one"), store.outbox(tmp_path / "other")
    one.append(events("away", 2)).raise_if_rejected()
    claim = one.claim(2)
    assert claim is not None
    as_if_ended(one)
    assert 0 == other.release_expired_claims()
    one.end(claim, [Delivered()] * 2)
    rows = store.transitions("away")
    check_lives(rows)
    assert ["claimed", "claimed", "delivered", "delivered"] == [row["reason"] for row in rows]

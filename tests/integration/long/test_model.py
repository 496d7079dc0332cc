"""The model of an outbox on Delta: any order of steps, and relays that die within one."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.integration.outboxes import Store, check_derived, check_lives, open_store
from tests.unit.testing.outbox_model import ANSWERS, FINAL, NEW_EVENTS, RELAYS, SECONDS, OutboxModel
from tests.unit.testing.outbox_oracle import HOLDING

from delta_outbox.api import Outbox
from delta_outbox.delta.numbered_writes import NumberedWrite
from delta_outbox.lifecycle.claims import Claim
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.states import State
from delta_outbox.runtime.home import Home
from delta_outbox.testing.conformance.adapter import EVENT, Adapter, Held
from delta_outbox.testing.conformance.delta import DeltaStore
from delta_outbox.testing.conformance.delta_setup import (
    BACKOFF_SECONDS,
    LEASE_SECONDS,
    TERMS,
    set_policies,
)
from delta_outbox.testing.conformance.memory import MemoryStore
from delta_outbox.testing.conformance.memory_policies import POLICIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS = int(os.environ.get("OUTBOX_MODEL_STEPS_ON_DELTA", "12"))  # of a run
RUNS = int(os.environ.get("OUTBOX_MODEL_RUNS_ON_DELTA", "1"))
SEED = int(os.environ.get("OUTBOX_MODEL_SEED_ON_DELTA", "1"))
ARGUMENTS = {
    "given": NEW_EVENTS,
    "limit": st.integers(1, 5),
    "answer": ANSWERS,
    "seconds": SECONDS,
    "state": FINAL,
}
HOLD = {**POLICIES.policies[-1].as_row(), "event_type": HOLDING, "on_dead": "hold"}
IN_MEMORY = PolicySet.parse([HOLD, *(policy.as_row() for policy in POLICIES.policies)])


class Died(Exception):
    """A process ended in the middle of a call."""


class MortalStore(DeltaStore):
    """The outbox on Delta, whose processes may die within a call."""

    def forget(self, worker: str) -> None:
        """End the process of a worker: what it has in its memory is gone."""
        outbox = self._workers.pop(worker, None)
        if outbox is not None:
            outbox.close()

    def replay(self, event_ids: Sequence[str], *, state: State) -> None:
        """Replay at once, as a command does that finds no relay alive."""
        super().replay(event_ids, state=state)
        self._outbox().apply_commands()

    def claim_and_die(self, worker: str, limit: int) -> Held | None:
        """Claim, and die before it is known that it worked."""
        outbox = self._outbox(worker)
        made: list[Claim] = []
        new_claim, append = outbox.new_claim, outbox.log.append

        def remember(deliveries: pa.Table) -> Claim:
            made.append(new_claim(deliveries))
            return made[-1]

        def append_and_die(rows: pa.Table) -> None:
            append(rows)
            raise Died

        outbox.new_claim = remember  # type: ignore[method-assign]
        outbox.log.append = append_and_die  # type: ignore[method-assign]
        try:
            assert outbox.claim(limit) is None
        except Died:
            ids = tuple(made[-1].deliveries["event_id"].to_pylist())
            return Held(worker=worker, event_ids=ids, token=made[-1])
        finally:
            self.forget(worker)
        return None

    def die_while_refreshing(self) -> None:
        """Plan a refresh, and die before its rows are written."""
        outbox: Outbox = self._outbox()

        def die(plan: NumberedWrite) -> bool:
            raise Died

        outbox.projection._refreshing._apply = die  # type: ignore[method-assign]
        with pytest.raises(Died):
            outbox.refresh(touch=True)
        self.forget("operator")


class DeltaModel(OutboxModel):
    """The steps of the model, and crashes within the steps of Delta."""

    most_events = 9
    second = 6.0  # so that its longest wait is over a lease

    def forget(self, name: str) -> None:
        if isinstance(self.store, MortalStore):
            self.store.forget(name)

    def claim_and_die(self, data: st.DataObject, limit: int) -> None:
        if isinstance(self.store, MortalStore):
            name = data.draw(st.sampled_from([one for one in RELAYS if one not in self.workers]))
            self.oracle.claimed(self.store.claim_and_die(name, limit), limit)

    def die_while_refreshing(self) -> None:
        if isinstance(self.store, MortalStore):
            self.store.die_while_refreshing()

    def replay_what_is_over(self, data: st.DataObject) -> None:
        event_id = data.draw(st.sampled_from(self.over()))
        state = State(self.oracle.known[event_id].state)
        self.store.replay([event_id], state=state)
        self.oracle.replayed(event_id, state)

    def over(self) -> list[str]:
        known = self.oracle.known
        return [name for name in known if known[name].state in ("PUBLISHED", "DEAD")]

    def possible(self) -> list[str]:
        """Return what may happen next; what a relay does more than once."""
        names = ["wait", "wait", "reap", "kill", "replay", "append_again", "restart"]
        names += ["die_while_refreshing"]
        if len(self.oracle.known) < self.most_events:
            names += ["append", "append"]
        if len(self.workers) < len(RELAYS):
            names += ["claim", "claim", "claim", "claim_and_die"]
        if self.workers:
            names += ["send", "send_all", "send_all", "end", "end", "end", "die", "freeze"]
        if self.over():
            names += ["replay_what_is_over", "replay_what_is_over"]
        if self.frozen:
            names += ["thaw_and_end"]
        return names

    def step(self, data: st.DataObject) -> None:
        """Let anything happen, and check everything."""
        call = getattr(self, data.draw(st.sampled_from(self.possible())))
        wanted = inspect.signature(call).parameters
        call(**{one: data if one == "data" else data.draw(ARGUMENTS[one]) for one in wanted})
        self.oracle.check()


@pytest.fixture
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox with the policies of the model."""
    with open_store(spark, home, "t_model") as store:
        set_policies(spark, store.tables)
        terms = {
            "max_attempts": TERMS.max_attempts,
            "max_crashes": TERMS.max_crashes,
            "lease_seconds": LEASE_SECONDS,
            "backoff_max_seconds": BACKOFF_SECONDS,
            "backoff_jitter": 0,
        }
        given = {name: str(value) for name, value in terms.items()}
        store.add_policy(HOLDING, on_dead="hold", **given)
        yield store


def finish(adapter: MortalStore, store: Store) -> None:
    """Leave nothing open: what a run has left behind is none of the next one's business."""
    adapter.reopen()
    while left := _open_events(adapter, store):
        adapter.kill(left)
        adapter.advance(2 * TERMS.lease_seconds)
        adapter.reap()


def _open_events(adapter: MortalStore, store: Store) -> list[str]:
    adapter.read(["refreshed by this"])
    rows = store.rows(
        f"select event_id from {store.tables.state} where state in ('PENDING', 'CLAIMED')"
    )
    return [row["event_id"] for row in rows]


def test_nothing_is_ever_wrong_on_delta(
    store: Store, home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever relays, producers, operators and the clock do, and wherever a process dies, every
    invariant holds after each step.
    """
    on_delta = MortalStore(
        store.spark,
        home=home,
        tables=store.tables,
        statements=store.statements,
        folder=tmp_path,
    )
    # Hypothesis begins with the plainest run there is; that is not worth a Spark.
    stores: Iterator[Adapter] = itertools.chain(
        [MemoryStore(policies=IN_MEMORY)], itertools.repeat(on_delta)
    )

    @seed(SEED)
    @settings(
        max_examples=1 + RUNS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def play(data: st.DataObject) -> None:
        finish(on_delta, store)
        DeltaModel.open_store = lambda: next(stores)
        model = DeltaModel()
        model.append([("a", EVENT, 0.0), ("a", EVENT, 0.0), (None, EVENT, 0.0)])
        for _ in range(STEPS):
            model.step(data)

    with capsys.disabled():
        print(f"\nmodel: OUTBOX_MODEL_SEED_ON_DELTA={SEED}", end=" ", flush=True)  # noqa: T201
    play()
    on_delta.reopen()
    check_lives(store.transitions())
    check_derived(store)

"""Relays, producers, operators and a clock in any order, against the in-memory store."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.unit.testing.outbox_model import OutboxModel
from tests.unit.testing.outbox_oracle import HOLDING

from delta_outbox.lifecycle.claims import DELIVERIES
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.results import Result
from delta_outbox.lifecycle.states import State
from delta_outbox.relay.plan.window import Kind, Window
from delta_outbox.testing.conformance.adapter import Held
from delta_outbox.testing.conformance.memory import MemoryStore
from delta_outbox.testing.conformance.memory_policies import POLICIES
from delta_outbox.testing.conformance.memory_row import LiveClaim, Row

STEPS = int(os.environ.get("OUTBOX_MODEL_STEPS", "2000"))
SEED = int(os.environ.get("OUTBOX_MODEL_SEED") or secrets.randbelow(2**32))
STEPS_A_RUN = 40
HOLD = {**POLICIES.policies[-1].as_row(), "event_type": HOLDING, "on_dead": "hold"}
ALL_POLICIES = PolicySet.parse(
    [POLICIES.policies[0].as_row(), HOLD, *(one.as_row() for one in POLICIES.policies[1:])]
)


def play(kind: type[MemoryStore], steps: int, seed_: int, *, shrink: bool = True) -> int:
    """Play at least so many steps, and return how many it were.

    Args:
        kind: the store.
        steps: at least.
        seed_: makes the run repeatable.
        shrink: look for the shortest way to a failure.
    """

    class Model(OutboxModel):
        open_store = staticmethod(lambda: kind(policies=ALL_POLICIES))

    once = settings(
        stateful_step_count=STEPS_A_RUN,
        deadline=None,
        database=None,
        print_blob=True,
        phases=list(Phase) if shrink else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    number = 0
    while Model.steps < steps:
        left = settings(once, max_examples=max(1, (steps - Model.steps) // STEPS_A_RUN))
        run_state_machine_as_test(seed(seed_ + number)(Model), settings=left)
        number += 1
    return Model.steps


def test_nothing_is_ever_wrong(capsys: pytest.CaptureFixture[str]):
    """Whatever relays, producers, operators and the clock do, every invariant holds after it."""
    with capsys.disabled():
        print(f"\nmodel: OUTBOX_MODEL_SEED={SEED}", end=" ", flush=True)  # noqa: T201
        steps = play(MemoryStore, STEPS, SEED)
        print(f"{steps} steps", end=" ", flush=True)  # noqa: T201
    assert steps >= STEPS


class SelectsByTheWindow(MemoryStore):
    """Takes what a relay's window says is eligible of all that is open or holds its key."""

    def _eligible(self) -> list[Row]:
        rows = [
            row for row in self.rows.values() if row.state is State.PENDING or self._holds_up(row)
        ]
        listed = [{**row.delivery(), "started_at": None} for row in rows]
        table = pa.Table.from_pylist(listed, DELIVERIES)
        window = Window(table, self._policies, batch_size=len(rows))
        window.select(now=self.now())
        found: set[str] = set()
        while len(window):
            for kind in Kind:
                found |= {*window.take(kind, len(rows))["event_id"].to_pylist()}
        return [row for row in rows if row.event.event_id in found]


def test_what_the_window_selects_is_never_wrong() -> None:
    """Whatever happens, what the window says is eligible is what may be taken."""
    assert play(SelectsByTheWindow, STEPS // 4, SEED) >= STEPS // 4


class TrustsNames(MemoryStore):
    def _is_live(self, row: Row, held: Held) -> bool:
        return row.claim is not None and row.claim.worker == held.worker


class ExpiresEarly(MemoryStore):
    def _is_over(self, claim: LiveClaim) -> bool:
        return True


class Overtakes(MemoryStore):
    def _holds_up(self, row: Row) -> bool:
        return row.claim is not None


class EndsInPart(MemoryStore):
    def end(self, held: Held, results: Sequence[Result]) -> None:
        first = Held(worker=held.worker, event_ids=held.event_ids[:1], token=held.token)
        super().end(first, results[:1])


class CutsAnyhow(MemoryStore):
    def _cut(self, rows: Sequence[Row], limit: int) -> Sequence[Row]:
        return rows[-limit:]


@pytest.mark.parametrize("wrong", [TrustsNames, ExpiresEarly, Overtakes, EndsInPart, CutsAnyhow])
def test_the_model_notices(wrong: type[MemoryStore]):
    """A store that gets one thing wrong does not survive the model."""
    with pytest.raises(AssertionError):
        play(wrong, 20_000, 0, shrink=False)

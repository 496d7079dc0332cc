"""Workflows on Delta, whatever relays, operators, people, third parties and the clock do."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.integration.invariants import build
from tests.integration.railway.engine_model import EngineModel
from tests.integration.railway.played import Play, opened_play
from tests.integration.railway.scripted_parties import parties

from delta_outbox.runtime.dbt import check_result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.home import Home

TIMES = int(os.environ.get("OUTBOX_ENGINE_TIMES", "1"))  # so many times the runs
SEED = int(os.environ.get("OUTBOX_ENGINE_SEED") or secrets.randbelow(2**32))


@pytest.fixture(scope="module")
def play(spark: SparkSession, home: Home) -> Iterator[Play]:
    """Return an outbox; each run leaves nothing open there."""
    with parties() as town, opened_play(spark, home, "t_engine", town) as found:
        yield found


def run(play: Play, *, runs: int, steps: int, seed_: int) -> None:
    """Let anything happen, and judge it, some times."""

    @seed(seed_)
    @settings(
        max_examples=runs + 1,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def once(data: st.DataObject) -> None:
        number = next(numbers)
        if not number:  # Hypothesis begins with the plainest run there is
            return
        model = EngineModel(play, f"{seed_}x{number}", random.Random(seed_ + number))
        model.start(data)
        try:
            for _ in range(steps):
                model.step(data)
            model.finish()
        except BaseException:
            print("\n".join(model.done))  # noqa: T201
            raise

    numbers = iter(range(runs + 2))
    print(f"OUTBOX_ENGINE_SEED={seed_}")  # noqa: T201 - shown if it fails
    once()


def test_no_promise_is_broken(play: Play) -> None:
    """A few things that happen to a few instances lead each of them where its picture says, and no
    third party has done more than its category allows.
    """
    run(play, runs=1, steps=8, seed_=SEED)


@pytest.mark.rest
def test_no_promise_is_broken_in_many_runs(play: Play) -> None:
    """The same for many runs; in the end every invariant of workflows is empty."""
    run(play, runs=6 * TIMES, steps=25, seed_=SEED + 1)
    check_result(build(play.store))

"""What the kit says of scripts of troubles is what becomes of them in the engine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.railway.played import Play, ended_tasks, last_events, opened_play
from tests.integration.railway.served_parties import Parties, parties
from tests.unit.workflow_engine import categories
from tests.unit.workflow_engine.kit_scripts import ALL, SOME, Case, by_the_kit, without_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.home import Home


@pytest.fixture(scope="module")
def town() -> Iterator[Parties]:
    """Return the third parties."""
    with parties() as found:
        yield found


@pytest.fixture(scope="module")
def play(spark: SparkSession, home: Home, town: Parties) -> Iterator[Play]:
    """Return an outbox in which each category has a workflow."""
    with opened_play(spark, home, "t_kit_scripts", town) as found:
        yield found


def by_the_engine(play: Play, of_cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Return what has become of scripts in the engine."""
    keys = [f"{task.third_party}-{name}" for task, name, _ in of_cases]
    play.parties.follow({key: script for key, (_, _, script) in zip(keys, of_cases, strict=True)})
    play.start(
        *(
            (f"start-{key}", task.third_party, json.dumps({"name": name}))
            for key, (task, name, _) in zip(keys, of_cases, strict=True)
        )
    )
    play.run_to_the_end()
    told, endings, ends = (
        play.parties.told(everything=True),
        ended_tasks(play.store),
        last_events(play.store),
    )
    found = []
    for key, (task, name, _) in zip(keys, of_cases, strict=True):
        ids = [key, f"look-{name}"] if task is categories.Asked else [key]
        passed = [(one, *ending) for one in ids for ending in endings.get(one, [])]
        end = ends[f"workflow:{task.third_party}/{name}"]
        found.append({"passed": passed, "end": end, **without_time(told[key])})
    return found


def compare(play: Play, of_cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Demand that scripts come to the same in both, and return to what."""
    engine = by_the_engine(play, of_cases)
    kit = [by_the_kit(*one) for one in of_cases]
    different = [
        (task.third_party, name, [one.name for one in script[:3]], its, other)
        for (task, name, script), its, other in zip(of_cases, kit, engine, strict=True)
        if its != other
    ]
    assert different == []
    return kit


def test_scripts_come_to_what_the_kit_says(play: Play) -> None:
    """Some scripts, of each category at least one, workers that die among them, end in the engine
    as in the kit: the same calls, effects, reasons, outcomes and last event.
    """
    found = compare(play, SOME[::5])
    assert set(categories.SINGLE) == {task for task, _, _ in SOME[::5]}
    reasons = {one["passed"][0][1] for one in found}
    assert reasons == {"completed", "rejected", "exhausted", "expired", "uncertain"}


@pytest.mark.rest
def test_every_script_comes_to_what_the_kit_says(play: Play) -> None:
    """All scripts of at most two troubles of every category and compromise, hundreds of tasks
    beside each other, end in the engine as in the kit.
    """
    compare(play, ALL)

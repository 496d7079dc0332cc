"""What the kit says of a script is what the code comes to that decides in the engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.workflow_engine.engine_judge import Known
from tests.unit.workflow_engine.kit_scripts import ALL, SOME, Case, by_the_kit, without_time
from tests.unit.workflow_engine.simulated_engine import Engine, run_to_the_end

from delta_outbox.lifecycle.states import OUTCOME_REASONS


def by_the_engine(case: Case) -> dict[str, Any]:
    """Return what becomes of a script in the engine."""
    task, name, script = case
    key = f"{task.third_party}-{name}"
    engine, one = Engine({key: script}), Known(task.third_party, name)
    engine.start(one, json.dumps({"name": name}).encode())
    run_to_the_end(engine, people=lambda: None)
    passed = [
        (task_id, str(row["reason"]), str(row["outcome"]))
        for task_id, rows in engine.transitions.items()
        for row in rows
        if row["reason"] in OUTCOME_REASONS
    ]
    (end,) = [row.event_type for row in engine.log.rows.values() if row.event_id == one.key]
    told = json.loads(json.dumps(engine.told()[key]))
    return {"passed": passed, "end": end, **without_time(told)}


def compare(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Demand that scripts come to the same in both, and return to what."""
    found = [by_the_kit(*one) for one in cases]
    for case, kit in zip(cases, found, strict=True):
        assert kit == by_the_engine(case), case
    return found


def test_scripts_come_to_what_the_kit_says() -> None:
    """Of each category: some troubles alone, and what lasts, end in the engine as in the kit, also
    where a host or a relay dies: the same calls, effects, reasons, outcomes and last event.
    """
    found = compare(SOME)
    reasons = {one["passed"][0][1] for one in found}
    assert reasons == {"completed", "rejected", "exhausted", "expired", "uncertain"}


@pytest.mark.rest
def test_every_script_comes_to_what_the_kit_says() -> None:
    """So does every script of at most two troubles, of every category and compromise."""
    compare(ALL)

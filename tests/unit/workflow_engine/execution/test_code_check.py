"""Whether the code of a relay is that of the workflows in force."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.railway.workflow import Check, Label, graph

from delta_outbox.railway.rows import rows_of
from delta_outbox.railway.tasks import Category, State
from delta_outbox.workflow_engine.derivation.plans import Plan
from delta_outbox.workflow_engine.execution.code_check import WorkflowsDiffer, check_code
from delta_outbox.workflow_engine.hosts.call import TaskFacts

WORKFLOW = graph()
ROWS = rows_of(WORKFLOW)
LABEL, CHECK = (f"{WORKFLOW.name}/{one.task_name()}" for one in (Label, Check))
FACTS = {
    f"{WORKFLOW.name}/{task.task_name()}": TaskFacts(
        category=str(task.category),
        third_party=task.third_party,
        asynchronous=False,
        hash=ROWS["railway_workflows"][0]["hash"],
    )
    for task in WORKFLOW.tasks
    if issubclass(task, State)
}


def plan(**changes: str) -> Plan:
    """Return a plan of the rows, in which the workflow has other cells."""
    workflows = [{**row, **changes} for row in ROWS["railway_workflows"]]
    return Plan(1, {"rows": {**ROWS, "railway_workflows": workflows}})


@pytest.mark.parametrize("cells", [{}, {"hash": ""}], ids=["built", "by hand"])
def test_rows_whose_tasks_the_code_has_are_taken(cells: dict[str, str]) -> None:
    """Rows that were made of this code pass, and rows by hand whose tasks it has."""
    check_code(plan(**cells), FACTS)


def test_rows_of_other_code_are_refused() -> None:
    """Rows that were made of other code, and rows with a task that the code lacks, do not pass."""
    without = {name: one for name, one in FACTS.items() if name != LABEL}
    for made, there in ((plan(hash="another"), FACTS), (plan(hash=""), without)):
        with pytest.raises(WorkflowsDiffer, match=WORKFLOW.name):
            check_code(made, there)


@pytest.mark.parametrize("changed", [LABEL, CHECK], ids=["a call", "an item"])
def test_rows_by_hand_must_have_the_categories_of_the_code(changed: str) -> None:
    """Rows by hand that call a black box idempotent, or an item, would let it be called twice."""
    box = replace(FACTS[LABEL], category=str(Category.BLACK_BOX))
    with pytest.raises(WorkflowsDiffer, match=WORKFLOW.name):
        check_code(plan(hash=""), {**FACTS, changed: box})

"""Random workflows, random scripts: every instance ends or waits for somebody, as it is drawn."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import assume, given, note
from hypothesis import strategies as st
from tests.unit.railway.drawn import ENDS, Again, Holds, graphs
from tests.unit.railway.workflow import Finding, Parcel

from delta_outbox.railway import ToDo
from delta_outbox.railway.checks import problems_of
from delta_outbox.railway.drawing import draw
from delta_outbox.testing.workflows import TROUBLES, Answer, run_workflow


@given(
    workflow=graphs(odd=False),
    script=st.lists(st.sampled_from(TROUBLES), max_size=40),
    for_ever=st.lists(st.sampled_from(TROUBLES), min_size=5, max_size=5),
    answers=st.lists(
        st.tuples(st.sampled_from(["left", "right"]), st.integers(0, 40)), max_size=20
    ),
)
def test_every_instance_ends_or_waits(workflow, script, for_ever, answers) -> None:
    """Whatever is drawn, and whatever each third party then does for ever, an instance ends with a
    declared event, by arrows of the picture.
    """
    assume(not [one for one in problems_of(workflow) if not one.warning])

    def says(finding: str) -> Any:
        return lambda task_id: Finding(task_id=task_id, finding=finding)

    parties = {task: Holds(script, task.category) for task in workflow.tasks}
    for party, trouble in zip(parties.values(), for_ever, strict=False):
        party.script = Again([*script, trouble])
    people = [
        Answer(
            task=task,
            data=says(finding),
            after=timedelta(hours=hours),
        )
        for finding, hours in answers
        for task in workflow.tasks
        if issubclass(task, ToDo)
    ]
    run = run_workflow(
        workflow,
        [task(parties[task]) for task in workflow.tasks],
        Parcel(parcel_id="p", grams=1),
        people=people,
        third_parties=list(parties.values()),
        spare_answers=True,
    )
    note(run.trace)
    assert run.end in {one.event_type for one in ENDS}
    ends = {f"event_{one.event_type.replace('.', '_')}": one for one in ENDS}
    arrows = {(arrow.start, arrow.end) for arrow in draw(workflow).arrows}
    (last,) = [name for name, one in ends.items() if one.event_type == run.end]
    assert set(zip(run.path, [*run.path[1:], last], strict=True)) <= arrows

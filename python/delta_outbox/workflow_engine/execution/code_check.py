"""Whether the code of a relay is that of the workflows in force."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from delta_outbox.core.errors import OutboxError
from delta_outbox.railway.tasks import Category
from delta_outbox.workflow_engine.derivation.plans import Plan
from delta_outbox.workflow_engine.hosts.call import TaskFacts


class WorkflowsDiffer(OutboxError):
    """The workflows in force are not those of the code."""

    code = "WORKFLOWS_DIFFER"
    remedy = (
        "Run `outbox workflow build` and `dbt build` with the code of this relay, or start the "
        "relay with the code of the workflows in force."
    )

    def __init__(self, names: Collection[str]) -> None:
        super().__init__(
            f"The workflows in force are not those of the code: {', '.join(sorted(names))}."
        )


def check_code(plan: Plan, tasks: Mapping[str, TaskFacts]) -> None:
    """Demand that hosts have the workflows that a plan was made of. Rows that were written by hand
    have no hash: of those only that each task is there, in the category that they say.

    Args:
        plan: to be put into force.
        tasks: what hosts say, by `workflow/task`.

    Raises:
        WorkflowsDiffer: they have others.
    """
    differ = set()
    for name, version in plan.versions.items():
        for task, row in version.routing.tasks.items():
            facts = tasks.get(f"{name}/{task}")
            category = Category.TO_DO if facts is None else facts.category  # hosts have no To-Dos
            is_other = facts is not None and version.routing.row["hash"] not in {"", facts.hash}
            if is_other or row["category"] != category:
                differ.add(name)
    if differ:
        raise WorkflowsDiffer(differ)

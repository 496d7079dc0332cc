"""The versions of workflows that a numbered write of `workflows` keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_outbox.railway.contracts import Contract
from delta_outbox.railway.routing import Routing


class Version:
    """A workflow as one plan has it: what starts it, and where its instances go.

    Args:
        plan: number of the plan.
        routing: of the workflow.
    """

    def __init__(self, plan: int, routing: Routing) -> None:
        self.plan = plan
        self.routing = routing
        self.number = int(routing.row["version"])
        self.contract = Contract(routing.row.get("start_contract", ""))


class Plan:
    """The workflows that were in force from one numbered write to the next.

    Args:
        number: of the numbered write.
        plan: what it holds: the rows of all workflows, by seed.
    """

    def __init__(self, number: int, plan: Mapping[str, Any]) -> None:
        rows = plan["rows"]
        self.number = number
        self.versions = {
            name: Version(number, Routing(rows, name))
            for name in sorted(row["workflow"] for row in rows["railway_workflows"])
        }

    def started_by(self, event_type: str) -> list[Version]:
        """Return the workflows that an event starts, in the order of their names.

        Args:
            event_type: of the event.
        """
        return [one for one in self.versions.values() if one.routing.row["starts_on"] == event_type]


Plans = Mapping[int, Plan]
"""By number. It holds the newest plan, and each that an open instance has started with: one whose
plan is not there is stranded. Plans of instances that have ended may be there or not.
"""

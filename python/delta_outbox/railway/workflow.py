"""A workflow: a graph of tasks that keeps every rule."""

from __future__ import annotations

from dataclasses import dataclass

from delta_outbox.railway.checks import problems_of
from delta_outbox.railway.graph import Graph
from delta_outbox.railway.problems import BadWorkflow
from delta_outbox.railway.triggers import StartT


@dataclass(frozen=True, kw_only=True)
class Workflow(Graph[StartT]):
    """A graph of tasks that keeps every rule. Made when its module is imported; a bad one raises.

    The arguments are those of `Graph`.

    Raises:
        BadWorkflow: with every problem.
    """

    def __post_init__(self) -> None:
        problems = [one for one in problems_of(self) if not one.warning]
        if problems:
            raise BadWorkflow(problems)

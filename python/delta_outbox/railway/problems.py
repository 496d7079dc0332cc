"""What is wrong with a workflow, said so that its author can mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from delta_outbox.core.errors import OutboxError


# twin: macros/workflows/workflow_problem.sql::workflow_problem
@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """A rule that a workflow breaks.

    Args:
        workflow: its name.
        task: the name of the task, None if it is about the workflow as a whole.
        rule: a short name of the rule.
        says: what is wrong.
        remedy: what to do.
        warning: it is allowed, and somebody should know.
    """

    workflow: str
    task: str | None
    rule: str
    says: str
    remedy: str
    warning: bool = False

    def __str__(self) -> str:
        where = f"{self.workflow}.{self.task}" if self.task else self.workflow
        return f"{where}: [{self.rule}] {self.says} {self.remedy}"


class BadWorkflow(OutboxError):
    """A workflow breaks a rule: each message names the task, the rule and the remedy."""

    code: ClassVar[str] = "BAD_WORKFLOW"
    remedy = "Mend the declaration; `outbox workflow explain RULE` says why there is a rule."

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

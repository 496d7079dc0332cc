"""What a task is told: the event that triggered it, and what earlier tasks decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

StartT = TypeVar("StartT")
ReadT = TypeVar("ReadT", bound=BaseModel)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trigger(Generic[StartT]):
    """The event that triggered a task: all that the task and its identifier may depend on.

    Args:
        instance: of the workflow, unique among those of the same workflow.
        start: the event that started the instance.
        visit: how often the instance has come to this task, this time included.
        facts: by task, the data of its latest decision.
    """

    instance: str
    start: StartT
    visit: int = 1
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Item(Generic[ReadT]):
    """An open To-Do item, as the decision about it sees it.

    Args:
        task_id: the task identifier.
        read_model: all that whoever answers was shown.
        due_at: when it should be answered, None if nothing is said.
        expires_at: when its expiry becomes its outcome, None if never.
    """

    task_id: str
    read_model: ReadT
    due_at: datetime | None = None
    expires_at: datetime | None = None

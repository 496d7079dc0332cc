"""Workflows of third-party calls: declared, checked, drawn and tested before anything runs."""

from __future__ import annotations

from delta_outbox.railway.compromises import (
    AskHuman,
    AtLeastOnce,
    AtMostOnce,
    Compromise,
    Concerns,
    Hurt,
    Necessity,
    Risk,
    UpTo,
    Visibility,
)
from delta_outbox.railway.graph import Event, Route, route
from delta_outbox.railway.outcomes import (
    DEFAULT_EXIT,
    CertainlyNot,
    Decided,
    Exit,
    FinallyRefused,
    NotDue,
    Outcome,
)
from delta_outbox.railway.problems import BadWorkflow, Problem
from delta_outbox.railway.tasks import (
    BlackBox,
    Category,
    FirstStep,
    Idempotent,
    Never,
    OptimisticLock,
    PessimisticLock,
    State,
    Task,
    ToDo,
)
from delta_outbox.railway.triggers import Item, Trigger
from delta_outbox.railway.workflow import Workflow

__all__ = [
    "DEFAULT_EXIT",
    "AskHuman",
    "AtLeastOnce",
    "AtMostOnce",
    "BadWorkflow",
    "BlackBox",
    "Category",
    "CertainlyNot",
    "Compromise",
    "Concerns",
    "Decided",
    "Event",
    "Exit",
    "FinallyRefused",
    "FirstStep",
    "Hurt",
    "Idempotent",
    "Item",
    "Necessity",
    "Never",
    "NotDue",
    "OptimisticLock",
    "Outcome",
    "PessimisticLock",
    "Problem",
    "Risk",
    "Route",
    "State",
    "Task",
    "ToDo",
    "Trigger",
    "UpTo",
    "Visibility",
    "Workflow",
    "route",
]

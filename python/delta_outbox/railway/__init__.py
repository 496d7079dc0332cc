"""Workflows of third-party calls: declared, checked, drawn and tested before anything runs.

- algorithms: what an attempt does, by category, step by step
- author_decisions: asks `back_off`, `on_fault` and `still_needed`, and waits a second at most
- checks: the rules of a declaration
- compromises: what the business decides about a black box
- contracts: reads a payload by the JSON Schema of its workflow
- drawing: a workflow as boxes and arrows, and as Mermaid
- explanations: why there is each rule, and what to do
- generated_files: what `outbox workflow build` writes, and what of it is stale
- graph: where each outcome leads; instances and task identifiers of a workflow
- graphviz_files: a drawing as SVG or PNG
- identifiers: templates, and whether two can make the same text
- modules: finds the workflows of a project
- names: snake case for machines, words and durations for people
- nesting: how deep the data of a decision may be nested
- outcomes: what a task may decide, and what an attempt may raise
- pages: the page of a workflow, for people of the business
- problems: a rule that is broken, and the error that names all of them
- providers: the tasks with their clients, as a module provides them
- routing: where an instance goes, by the rows of its version
- rows: a workflow as rows of seeds, and their hash
- scaffold: what `outbox workflow new` writes
- tasks: the class of each category, with all that an author writes into it
- triggers: what a task is told
- workflow: a graph that keeps every rule
"""

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

"""The tasks with their clients: what `provide(settings)` of a module of workflows returns."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import iscoroutine
from typing import Any

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.settings import SecretMapping
from delta_outbox.railway.graph import Graph
from delta_outbox.railway.modules import BadWorkflowModule, where_raised
from delta_outbox.railway.tasks import State, Task

Provide = Callable[[Mapping[str, Any]], Iterable[Task[Any, Any]]]
"""Makes the tasks of a module, of the tables `[third_parties.NAME]` by name."""


def provided(
    provide: Provide, workflows: Sequence[Graph[Any]], settings: Mapping[str, Any]
) -> list[Task[Any, Any]]:
    """Call `provide`, and return the tasks if there is one object for each class.

    What an error of it says is not repeated: it may hold a secret of the settings.

    Args:
        provide: of a module.
        workflows: of the same module.
        settings: by third party, its table of outbox.toml.

    Raises:
        BadWorkflowModule: it fails, or a task is missing, is there twice, or is of no workflow.
        BadSettings: it needs an environment variable that is not set.
    """
    name = f"{provide.__module__}.{provide.__qualname__}"
    try:
        given: Any = provide(settings)
        if iscoroutine(given):
            given.close()
        tasks = None if given is None else list(given)
    except BadSettings:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, its author is told where
        missing = error.args[0] if isinstance(error, KeyError) and error.args else None
        if missing in called_by(workflows) and missing not in settings:
            raise BadWorkflowModule(
                f"{name}: the settings have no third party '{missing}'. "
                f"They have {', '.join(sorted(settings)) or 'none'}.",
                remedy=f"Add [third_parties.{missing}] to outbox.toml, or rename the misspelt one.",
            ) from None
        where = where_raised(error)
        raise BadWorkflowModule(
            f"{name} failed with {type(error).__name__} ({where}).",
            remedy=f"It takes the tables of [third_parties] and returns tasks: mend {where}.",
        ) from None
    if tasks is None:
        raise BadWorkflowModule(
            f"{name} returned None.",
            remedy="Return a list of tasks, such as `[ReserveStock(client)]`.",
        )
    strange = [one for one in tasks if not isinstance(one, Task)]
    if strange:
        raise BadWorkflowModule(
            f"{name} returned an object of {type(strange[0]).__name__}, which is no task.",
            remedy="Return a list of tasks, such as `[ReserveStock(client)]`.",
        )
    classes = {task: one.name for one in workflows for task in one.tasks}
    counted = Counter(type(one) for one in tasks)
    for task in [*classes, *counted]:
        if counted[task] != 1 or task not in classes:
            number = {0: "no", 1: "one"}.get(counted[task], str(counted[task]))
            of = f"; {classes[task]} has one" if task in classes else ", which no workflow has"
            raise BadWorkflowModule(
                f"{name} returned {number} {task.__name__}{of}.",
                remedy="Return one object of each task of the module's workflows.",
            )
    return tasks


def tasks_of(
    names: Sequence[str], settings: Mapping[str, SecretMapping]
) -> dict[type[Task[Any, Any]], Task[Any, Any]]:
    """Call `provide` of each module, and return the tasks with their clients by class.

    Args:
        names: of modules that are imported.
        settings: the tables of third parties.

    Raises:
        BadWorkflowModule: a `provide` is missing or fails, or leaves a task out.
        BadSettings: one needs an environment variable that is not set.
    """
    tasks: dict[type[Task[Any, Any]], Task[Any, Any]] = {}
    for name in names:
        provide, workflows = _provider(name)
        if provide is None and called_by(workflows):
            raise BadWorkflowModule(
                f"The module {name} has no function `provide`, so its tasks have no clients.",
                remedy="Add `def provide(settings)`; it returns one object of each task.",
            )
        if provide is not None:
            tasks |= {type(one): one for one in provided(provide, workflows, settings)}
    return tasks


def _provider(name: str) -> tuple[Any, list[Graph[Any]]]:
    """Return the function `provide` of a module, None if it has none, and its workflows."""
    module = sys.modules[name]
    workflows = [one for one in vars(module).values() if isinstance(one, Graph)]
    return getattr(module, "provide", None), workflows


def called_by(workflows: Iterable[Graph[Any]]) -> set[str]:
    """Return the third parties that the tasks of workflows call.

    Args:
        workflows: that keep every rule.
    """
    return {task.third_party for one in workflows for task in one.tasks if issubclass(task, State)}


def check_providers(
    names: Sequence[str], settings: Callable[[], Mapping[str, SecretMapping]]
) -> list[str]:
    """Call `provide` of each module that has one, and refuse what is not all of its tasks.

    A check needs no secrets: what refers to a variable that is not set is given as it is written.

    Args:
        names: of modules that are imported.
        settings: returns the tables of third parties; asked if they are needed.

    Returns:
        A sentence to warn with, if variables are not set.

    Raises:
        BadWorkflowModule: a `provide` fails, or leaves a task out.
    """
    unset: dict[str, None] = {}
    for name in names:
        provide, workflows = _provider(name)
        if provide is None:
            continue
        tables = settings()
        unset |= dict.fromkeys(one for table in tables.values() for one in table.unset)
        written = {party: table.as_written() for party, table in tables.items()}
        try:
            provided(provide, workflows, written)
        except BadWorkflowModule as error:
            if unset:
                raise BadWorkflowModule(
                    str(error), remedy=f"{error.remedy} Not set: {', '.join(unset)}."
                ) from None
            raise
    names = ", ".join(unset)
    says = "not set in the environment. `provide` was called with the texts as they are written."
    return [f"{names}: {says}"] if unset else []


def has_provider(names: Sequence[str]) -> bool:
    """Say whether one of the modules has a function `provide`.

    Args:
        names: of modules that are imported.
    """
    return any(hasattr(sys.modules[name], "provide") for name in names)


def uncalled(workflows: Sequence[Graph[Any]], settings: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each table of the settings that no task asks for by its name.

    Args:
        workflows: all of the project.
        settings: the tables of third parties.
    """
    called = called_by(workflows)
    return [
        f"[third_parties.{name}] of the settings: no task calls it. "
        f"Tasks call {', '.join(sorted(called)) or 'nobody'}."
        for name in settings
        if name not in called
    ]

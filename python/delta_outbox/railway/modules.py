"""Finds the workflows of a project: in the modules that its settings name."""

from __future__ import annotations

import importlib
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from delta_outbox.core.errors import OutboxError
from delta_outbox.railway.checks import problems_among, problems_of
from delta_outbox.railway.outcomes import Outcome
from delta_outbox.railway.problems import BadWorkflow, Problem
from delta_outbox.railway.workflow import Workflow

PROJECT_FILE = "dbt_project.yml"


class BadWorkflowModule(OutboxError):
    """A module of workflows cannot be imported, or holds none: correct its name or its code."""

    code: ClassVar[str] = "BAD_WORKFLOW_MODULE"
    remedy = (
        "Name importable modules in `[workflows] modules` of outbox.toml or on the command line; "
        "they are found from the folder that holds dbt_project.yml."
    )


def project_folder(start: Path) -> Path:
    """Return the folder that modules are found from: the nearest one with dbt_project.yml.

    Args:
        start: where to look first; it is returned if no folder above it has one either.
    """
    folders = [start, *start.parents]
    return next((one for one in folders if (one / PROJECT_FILE).is_file()), start)


def load(names: Sequence[str], folder: Path) -> list[Workflow[Any]]:
    """Import modules and return their workflows, by name.

    Args:
        names: of the modules.
        folder: that they are found from, beside what is installed.

    Raises:
        BadWorkflowModule: a module is missing, fails, or holds no workflow.
        BadWorkflow: a workflow breaks a rule, or two do not go together.
    """
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    found: dict[int, Workflow[Any]] = {}
    for name in names:
        module = _imported(name, folder)
        workflows = [one for one in vars(module).values() if isinstance(one, Workflow)]
        if not workflows:
            raise BadWorkflowModule(f"The module {name} holds no workflow.")
        found |= {id(one): one for one in workflows}
    workflows = sorted(found.values(), key=lambda one: one.name)
    problems = list(problems_among(workflows))
    if problems:
        raise BadWorkflow(problems)
    return workflows


def _imported(name: str, folder: Path) -> ModuleType:
    try:
        return importlib.import_module(name)
    except OutboxError:
        raise
    except Exception as error:
        text = (str(error).strip().splitlines() or [""])[0]
        says = f"The module {name} cannot be imported: {type(error).__name__}: {text}"
        if isinstance(error, ModuleNotFoundError) and _is_part(error.name, name):
            raise BadWorkflowModule(
                f"{says}. Looked for in {folder}, and among what is installed."
            ) from error
        if isinstance(error, AttributeError) and isinstance(error.obj, type(Outcome)):
            says += f". {error.obj.__name__} has {', '.join(error.obj.__members__)}"
        where = where_raised(error)
        raise BadWorkflowModule(
            f"{says} ({where})", remedy=f"The module was found and fails: mend {where}."
        ) from error


def _is_part(missing: str | None, name: str) -> bool:
    """Say whether the module that is missing is the one asked for, or a package of it."""
    return missing is not None and (name == missing or name.startswith(f"{missing}."))


def where_raised(error: BaseException) -> str:
    """Return file and line where code of an author has failed.

    Args:
        error: that it raised.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frames = [
        one
        for one in traceback.extract_tb(error.__traceback__)
        if not one.filename.startswith(("<", *_LIBRARIES))
    ]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else "its code"


_LIBRARIES = (
    *(sysconfig.get_path(one) for one in ("stdlib", "platstdlib", "purelib", "platlib")),
    str(Path(__file__).parents[1]),
)
"""Where nothing is to be mended by an author: a failure there is told by who called."""


def warnings(workflows: Sequence[Workflow[Any]]) -> list[Problem]:
    """Return what is allowed in workflows, and somebody should know by name.

    Args:
        workflows: that keep every rule.
    """
    return [one for workflow in workflows for one in problems_of(workflow) if one.warning]

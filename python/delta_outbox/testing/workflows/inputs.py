"""What an author gives to the kit, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from delta_outbox.railway import State, Task, ToDo, Trigger
from delta_outbox.railway.graph import Graph
from delta_outbox.testing.workflows.errors import KitError
from delta_outbox.testing.workflows.third_parties import ThirdParty


def check_given_task(workflow: Graph[Any], task: object, trigger: object) -> None:
    """Refuse what is no object of a task that calls somebody, or no trigger of its workflow.

    Args:
        workflow: to which it belongs.
        task: that is to be run.
        trigger: of it.

    Raises:
        KitError: with what to give instead.
    """
    check_object("task", task, Task)
    if isinstance(task, ToDo):
        raise KitError(
            f"{type(task).__name__}: a To-Do calls nobody; use run_workflow with `people=`."
        )
    check_object("trigger", trigger, Trigger)
    assert isinstance(trigger, Trigger)
    check_object("trigger.start", trigger.start, workflow.start)


def check_object(name: str, value: object, kind: type[Any]) -> None:
    """Refuse a class where an object is asked for, and an object of another kind.

    Args:
        name: of the argument.
        value: that was given.
        kind: that it must be of.

    Raises:
        KitError: with what to give instead.
    """
    if isinstance(value, type):
        raise KitError(
            f"`{name}`: {value.__name__} is a class; give an object, `{value.__name__}(...)`."
        )
    if not isinstance(value, kind):
        raise KitError(f"`{name}`: {value!r} is no {kind.__name__}.")


def check_third_parties(
    tasks: Iterable[Task[Any, Any]], third_parties: Sequence[ThirdParty], *, needed: bool = True
) -> None:
    """Refuse to go on without a third party that a task calls: its ledger would not be read.

    Args:
        tasks: with their clients.
        third_parties: that were given.
        needed: whether ledgers are read, so that tasks that call somebody need one at least.

    Raises:
        KitError: a third party is missing, or is none.
    """
    if isinstance(third_parties, (ThirdParty, type)):
        raise KitError("`third_parties`: give a list of objects, `[...]`.")
    for party in third_parties:
        check_object("third_parties", party, ThirdParty)
    for task in tasks:
        if not isinstance(task, State):
            continue
        for path, party in held_by(task):
            if not any(party is one for one in third_parties):
                raise KitError(
                    f"{type(task).__name__} calls `{path}`, a {type(party).__name__} that is not "
                    "among the third parties: its ledger would not be read and its clock would "
                    "stand still. Add this object to `third_parties`."
                )
        if needed and not third_parties:
            raise KitError(
                f"{type(task).__name__} calls {task.third_party}, and no third party was given "
                "whose ledger can be read. Add the scripted one to `third_parties`."
            )


def held_by(task: Task[Any, Any]) -> Iterator[tuple[str, ThirdParty]]:
    """Yield the scripted third parties that a task holds, itself or in a client, with the names.

    Args:
        task: with its clients.
    """
    for name, value in vars(task).items():
        if isinstance(value, ThirdParty):
            yield name, value
            continue
        for inner, one in getattr(value, "__dict__", {}).items():
            if isinstance(one, ThirdParty) and not isinstance(value, type):
                yield f"{name}.{inner}", one

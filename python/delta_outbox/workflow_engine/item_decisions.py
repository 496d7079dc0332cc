"""What the code of authors says about To-Do items, bounded as what hosts return is."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from delta_outbox.core.errors import OutboxError
from delta_outbox.core.json_pointers import step
from delta_outbox.core.settings import MAX_ID_BYTES, SecretMapping
from delta_outbox.railway.author_decisions import DECISION_LIMIT, within
from delta_outbox.railway.modules import load
from delta_outbox.railway.nesting import MOST_LEVELS, levels_of
from delta_outbox.railway.providers import tasks_of
from delta_outbox.railway.tasks import ToDo
from delta_outbox.railway.triggers import Item, Trigger
from delta_outbox.workflow_engine.derivation.events import TaskEvent, task_type
from delta_outbox.workflow_engine.hosts.answers import WrongValue, decision, place
from delta_outbox.workflow_engine.hosts.call import MOST_DATA

logger: Final = logging.getLogger(__name__)

MOST_PROBLEMS: Final = 50  # that are told of one answer
MOST_POINTER: Final = 200  # characters; what is no field has the name that came


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Where an answer breaks its contract. Nothing of what was given is in it.

    Args:
        pointer: to the value, as RFC 6901 has it; empty for the whole answer.
        rule: that it breaks.
    """

    pointer: str
    rule: str


class BadAnswer(OutboxError):
    """The data is not what the contract of the item asks for; nothing was written."""

    code = "BAD_ANSWER"
    remedy = "Give the data as the contract of the item has it: `outbox todo show ID`."

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        """Keep the message, and what is wrong where."""
        super().__init__(message)
        self.problems = tuple(problems)


class UndecidedAnswer(OutboxError):
    """The code that decides about answers has failed; the item stays open."""

    code = "UNDECIDED_ANSWER"
    remedy = "Mend `read_model`, `correlate` or `decide` of the task."


def has_slow_patterns(contract: type[BaseModel]) -> bool:
    """Say whether a contract has patterns that Python's engine judges, which may take for ever and
    lets nothing else run meanwhile; pydantic's own takes linear time.

    Args:
        contract: a model.
    """
    # Of a compiled pattern, or of a model with `regex_engine="python-re"`.
    schema = repr(contract.__pydantic_core_schema__)
    return "'python-re'" in schema or "re.compile(" in schema


class NoSuchItem(Exception):
    """The code has no such To-Do task."""


class ItemDecisions:
    """Asks the code of authors about items. Each question has a second.

    Args:
        modules: that hold the workflows.
        folder: that they are found from.
        third_parties: by name, its table of outbox.toml.
    """

    def __init__(
        self, modules: Sequence[str], folder: Path, third_parties: Mapping[str, SecretMapping]
    ) -> None:
        self._workflows = {one.name: one for one in load(modules, folder)}
        self._tasks = tasks_of(modules, third_parties)

    def task(self, event: TaskEvent) -> ToDo[Any, Any, Any, Any]:
        """Return the task of an item, with its clients.

        Args:
            event: of the item.

        Raises:
            NoSuchItem: the code has none, or it is no To-Do.
        """
        return self._to_do(event.workflow, event.place.task)

    def _to_do(self, workflow: str, task: str) -> ToDo[Any, Any, Any, Any]:
        its = self._workflows.get(workflow)
        for one in its.tasks if its else ():
            if one.task_name() == task and issubclass(one, ToDo):
                found = self._tasks[one]
                assert isinstance(found, ToDo)
                return found
        raise NoSuchItem

    def to_dos(self) -> Sequence[tuple[str, ToDo[Any, Any, Any, Any]]]:
        """Return the To-Do tasks with the names of their workflows, in the order of both names."""
        found = [
            (name, self._tasks[one])
            for name, workflow in self._workflows.items()
            for one in workflow.tasks
        ]
        to_dos = [(name, task) for name, task in found if isinstance(task, ToDo)]
        return sorted(to_dos, key=lambda pair: (pair[0], pair[1].task_name()))

    def event_types(self) -> Sequence[str]:
        """Return the event types of items."""
        return [task_type(name, task.task_name()) for name, task in self.to_dos()]

    def not_by(self, event: TaskEvent) -> Sequence[str]:
        """Return the names of the tasks whose answerers may not answer an item.

        Args:
            event: of the item.
        """
        return [one.task_name() for one in self.task(event).not_by]

    def needs_names(self, event: TaskEvent) -> bool:
        """Say whether people who answer an item are told apart: `not_by` names others, or it.

        Args:
            event: of the item.
        """
        its = self._workflows[event.workflow].tasks
        named = {two for one in its if issubclass(one, ToDo) for two in one.not_by}
        return type(self.task(event)) in named or bool(self.task(event).not_by)

    def read_model(self, event: TaskEvent) -> Mapping[str, Any]:
        """Return all that whoever answers may see, as values of JSON.

        Args:
            event: of the item.

        Raises:
            UndecidedAnswer: the code fails, or returns something else.
        """
        model = self._shown(event)
        found: Mapping[str, Any] = self._asked(event, "read_model", model.model_dump, mode="json")
        return found

    def decided(self, event: TaskEvent, data: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return the outcome that an answer means, and its data.

        Args:
            event: of the item.
            data: the answer.

        Raises:
            BadAnswer: the data breaks the contract, or is about another item.
            UndecidedAnswer: the code fails, or decides what it cannot.
        """
        task = self.task(event)
        answer, about = self._read(event.workflow, task, data)
        if about != event.task_id:
            raise BadAnswer(f"{event.task_id}: the data is about another item.")
        item: Item[Any] = Item(
            task_id=event.task_id,
            read_model=self._shown(event),
            due_at=event.due_at,
            expires_at=event.expires_at,
        )
        found = self._asked(
            event, "decide", lambda: decision(task.decide(item, answer), type(task).outcomes())
        )
        return found["outcome"], found["data"]

    def correlated(self, workflow: str, task: str, data: Mapping[str, Any]) -> str | None:
        """Return the identifier of the item that an answer is about, None if it is about none.

        Args:
            workflow: whose.
            task: its name in the workflow.
            data: the answer.

        Raises:
            NoSuchItem: the code has no such To-Do task.
            BadAnswer: the data breaks the contract.
            UndecidedAnswer: the code fails.
        """
        canonical(data)
        return self._read(workflow, self._to_do(workflow, task), data)[1]

    def _read(
        self, workflow: str, task: ToDo[Any, Any, Any, Any], data: Mapping[str, Any]
    ) -> tuple[BaseModel, str | None]:
        """Return an answer, and the identifier of the item that it is about."""
        where = f"{workflow}.{task.task_name()}"
        try:
            answer = within(DECISION_LIMIT, lambda: task.contract.model_validate(data))
        except ValidationError as error:
            problems = _problems(error)
            told = "; ".join(f"{one.pointer or '/'}: {one.rule}" for one in problems)
            raise BadAnswer(f"{where}: {told}.", problems) from None
        except Exception as error:  # noqa: BLE001 - an author's
            raise _failed(f"{where}.contract", error) from None
        try:
            about: object = within(DECISION_LIMIT, lambda: task.correlate(answer))
        except Exception as error:  # noqa: BLE001 - an author's
            raise _failed(f"{where}.correlate", error) from None
        if about is None:
            return answer, None
        if not isinstance(about, str) or len(about.encode()) > MAX_ID_BYTES:
            raise _failed(f"{where}.correlate", WrongValue("it returned no identifier"))
        return answer, about

    def _shown(self, event: TaskEvent) -> BaseModel:
        task = self.task(event)
        trigger: Trigger[Any] = Trigger(
            instance=event.instance,
            start=self._asked(
                event, "start", self._workflows[event.workflow].parse, event.origin.payload
            ),
            visit=event.place.visit,
            facts=event.place.facts,
        )
        model = self._asked(event, "read_model", task.read_model, trigger)
        if not isinstance(model, BaseModel):
            raise self._failed(event, "read_model", WrongValue("it returned no pydantic model"))
        text = self._asked(event, "read_model", model.model_dump_json)
        if len(text.encode()) > MOST_DATA or levels_of(text) > MOST_LEVELS:
            raise self._failed(
                event,
                "read_model",
                WrongValue(f"it has more than {MOST_DATA} bytes or {MOST_LEVELS} levels"),
            )
        return model

    def _asked(
        self, event: TaskEvent, function: str, call: Any, *arguments: Any, **named: Any
    ) -> Any:
        try:
            return within(DECISION_LIMIT, lambda: call(*arguments, **named))
        except Exception as error:  # noqa: BLE001 - an author's
            raise self._failed(event, function, error) from None

    def _failed(self, event: TaskEvent, function: str, error: Exception) -> UndecidedAnswer:
        return _failed(f"{event.task_id}: {event.workflow}.{event.place.task}.{function}", error)


def _failed(where: str, error: Exception) -> UndecidedAnswer:
    """Return what is said of an error of authors' code: its text only if it is ours, for any other
    may hold what was sent. So none is the cause of what is raised, which traces show.
    """
    is_ours = isinstance(error, WrongValue)
    logger.warning("item_undecided", extra={"error": str(error) if is_ours else place(error)})
    return UndecidedAnswer(f"{where}: {error if is_ours else type(error).__name__}.")


def canonical(data: Mapping[str, Any]) -> str:
    """Return an answer as the one JSON text that stands for it.

    Args:
        data: the answer.

    Raises:
        BadAnswer: it is none, or too large.
    """
    if not isinstance(data, Mapping):
        raise BadAnswer("The data must be an object of JSON.")
    try:
        text = json.dumps(
            dict(data), allow_nan=False, ensure_ascii=False, separators=(",", ":"), sort_keys=True
        )
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError):
        raise BadAnswer("The data must be values of JSON.") from None
    if size > MOST_DATA or levels_of(text) > MOST_LEVELS:
        raise BadAnswer(f"The data must have at most {MOST_DATA} bytes and {MOST_LEVELS} levels.")
    return text


def _problems(error: ValidationError) -> list[Problem]:
    """Return what is wrong, without what was given."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [
        Problem(
            pointer="".join(map(step, one["loc"]))[:MOST_POINTER],
            rule=one["type"].replace("_", " "),
        )
        for one in found[:MOST_PROBLEMS]
    ]

"""What the code of authors says about items is bounded, as what hosts return is."""

from __future__ import annotations

import textwrap
import traceback
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.workflow_engine.derived_log import NOW

from delta_outbox.railway.routing import Place
from delta_outbox.workflow_engine.derivation.events import Origin, TaskEvent
from delta_outbox.workflow_engine.item_decisions import (
    BadAnswer,
    ItemDecisions,
    NoSuchItem,
    UndecidedAnswer,
    canonical,
)

MODULE = '''
import time
from dataclasses import dataclass
from datetime import timedelta

from typing import Annotated

from pydantic import BaseModel, Field, field_validator

from delta_outbox.railway import Decided, Event, Outcome, ToDo, Workflow, route


@dataclass(frozen=True, kw_only=True)
class Start:
    name: str
    does: Annotated[str, Field(max_length=20)]


class Answered(Outcome):
    YES = "yes"
    NO = "no"


class Answer(BaseModel):
    name: str
    says: str = ""

    @field_validator("says")
    @classmethod
    def check(cls, says):
        if says == "secret of the contract":
            raise KeyError(says)
        return says


class Shown(BaseModel):
    name: str


class Ask(ToDo[Start, Answered, Answer, Shown]):
    """Somebody is asked."""

    identifier = "ask-{name}"
    roles = frozenset({"support"})
    contract = Answer
    expires = timedelta(hours=1)

    def read_model(self, trigger):
        does = trigger.start.does
        if does == "shows_nothing":
            return None
        return Shown(name="x" * 2_000_000 if does == "shows_much" else trigger.start.name)

    def correlate(self, data):
        if data.says == "secret of correlate":
            raise ValueError(data.says)
        if data.name == "nobody":
            return None
        return 7 if data.name == "seven" else f"ask-{data.name}"

    def decide(self, item, data):
        match item.read_model.name:
            case "hangs":
                time.sleep(60)
            case "raises":
                raise ValueError("a secret")
            case "no_decision":
                return "yes"
            case "much":
                return Decided(outcome=Answered.YES, data={"much": "x" * 2_000_000})
            case "no_json":
                return Decided(outcome=Answered.YES, data={"no": object()})
        return Decided(outcome=Answered.YES, data={"name": data.name})


ended = Event(event_type="asked")
asking = Workflow(
    name="asking",
    starts_on="ask",
    start=Start,
    instance="{name}",
    first=Ask,
    routes=(route(Ask, {Answered.YES: ended, Answered.NO: ended}),),
    default_exit=ended,
)


def provide(settings):
    return [Ask()]
'''

Asked = Callable[..., TaskEvent]


@pytest.fixture(scope="module")
def decisions(tmp_path_factory: pytest.TempPathFactory) -> ItemDecisions:
    """Return the code of a workflow with one item."""
    folder: Path = tmp_path_factory.mktemp("author")
    (folder / "asking_items.py").write_text(textwrap.dedent(MODULE))
    return ItemDecisions(["asking_items"], folder, {})


def item(name: str, *, does: str = "", task: str = "ask") -> TaskEvent:
    """Return the event of an item."""
    return TaskEvent(
        workflow="asking",
        plan=1,
        version=1,
        instance=name,
        place=Place(task=task, visits={task: 1}),
        task_id=f"ask-{name}",
        origin=Origin(
            event_id="e-1",
            started_at=NOW.isoformat(),
            payload=f'{{"name": "{name}", "does": "{does}"}}',
            ordering_key=None,
            partition_key=None,
        ),
        fields={"name": name},
        created_at=NOW,
        expires_at=NOW + timedelta(hours=1),
    )


def test_an_answer_decides(decisions: ItemDecisions) -> None:
    """An answer that fits its contract becomes an outcome with data."""
    assert ("yes", {"name": "a"}) == decisions.decided(item("a"), {"name": "a"})
    assert {"name": "a"} == decisions.read_model(item("a"))


@pytest.mark.parametrize(
    ("name", "does", "why"),
    [
        ("hangs", "", "asking.ask.decide: DecisionHangs"),
        ("raises", "", "asking.ask.decide: ValueError"),
        ("no_decision", "", "it returned a value of str"),
        ("much", "", "more than 1048576 bytes"),
        ("no_json", "", "no values of JSON"),
        ("seven", "", "it returned no identifier"),
        ("a", "shows_nothing", "it returned no pydantic model"),
        ("a", "shows_much", "more than 1048576 bytes"),
    ],
)
def test_code_that_fails_decides_nothing(
    decisions: ItemDecisions, name: str, does: str, why: str
) -> None:
    """What hangs, raises, or returns something of the wrong kind or size leaves the item open; of
    an error only its class is told.
    """
    with pytest.raises(UndecidedAnswer, match=why) as raised:
        decisions.decided(item(name, does=does), {"name": name})
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("does", "data", "kind"),
    [
        ("secret of a start event", {"name": "a"}, "ValidationError"),
        ("", {"name": "a", "says": "secret of the contract"}, "KeyError"),
        ("", {"name": "a", "says": "secret of correlate"}, "ValueError"),
        ("", {"name": "raises"}, "ValueError"),
    ],
)
def test_what_code_says_reaches_no_log(
    decisions: ItemDecisions,
    caplog: pytest.LogCaptureFixture,
    does: str,
    data: Mapping[str, str],
    kind: str,
) -> None:
    """Of an error of an author's code, or of a payload that its `start` refuses, the class and the
    place are logged: its text may hold what was sent. Traces do not show it either.
    """
    with pytest.raises(UndecidedAnswer) as raised:
        decisions.decided(item(data["name"], does=does), data)
    (record,) = caplog.records
    told = vars(record)["error"]
    assert told.startswith(f"{kind} (")
    shown = "".join(traceback.format_exception(raised.value))
    assert "secret" not in told + shown


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({}, "/name: missing"),
        ({"name": "b"}, "about another item"),
        ({"name": "nobody"}, "about another item"),
    ],
)
def test_an_answer_must_fit(decisions: ItemDecisions, data: Mapping[str, Any], why: str) -> None:
    """An answer that breaks its contract, or is about another item, is refused."""
    with pytest.raises(BadAnswer, match=why):
        decisions.decided(item("a"), data)


def test_an_answer_finds_its_item_or_none(decisions: ItemDecisions) -> None:
    """The code says which item data is about, or that it is about none."""
    assert "ask-a" == decisions.correlated("asking", "ask", {"name": "a"})
    assert decisions.correlated("asking", "ask", {"name": "nobody"}) is None


def test_only_items_are_answered(decisions: ItemDecisions) -> None:
    """A task that the code does not have, or that is no To-Do, is no item."""
    with pytest.raises(NoSuchItem):
        decisions.decided(item("a", task="other"), {"name": "a"})


def test_an_answer_has_one_text() -> None:
    """Equal answers are known by one text; what is no object of JSON, or too large, is refused."""
    assert canonical({"a": 1, "b": [2]}) == canonical({"b": [2], "a": 1})
    deep: Any = []
    for _ in range(70):
        deep = [deep]
    for wrong in ({"a": "x" * 1_100_000}, {"a": float("nan")}, {"a": deep}):
        with pytest.raises(BadAnswer):
            canonical(wrong)

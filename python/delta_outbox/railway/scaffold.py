"""Writes the class of a new workflow and its test, from the answers to the checklist."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from delta_outbox.railway.compromises import Hurt, Necessity, Risk, Visibility
from delta_outbox.railway.names import is_plain, title
from delta_outbox.railway.problems import BadWorkflow, Problem

QUESTIONS: Final = (
    ("waits", "Do we wait for somebody to come to us, such as a person or a notice?"),
    ("keys", "Does the third party take a key, and act once per key however often it is asked?"),
    ("lookup", "Can it be asked, by an identifier of ours, whether it has acted?"),
)
"""The decision tree of docs/railway/categories.md: the first "yes" decides; without one the task
is a black box.
"""
CATEGORIES: Final = {
    "waits": "ToDo",
    "keys": "Idempotent",
    "lookup": "PessimisticLock",
    "": "BlackBox",
}
COMPROMISES: Final = {
    "at_most_once": "AtMostOnce()",
    "at_least_once": "AtLeastOnce()",
    "up_to": "UpTo(3)",
    "human": "AskHuman()",
}
CHECKLIST: Final[Mapping[str, tuple[str, type[Visibility | Necessity | Hurt | Risk]]]] = {
    "visibility": ("Who would notice if it was not done?", Visibility),
    "necessity": ("What is the workflow without it?", Necessity),
    "hurt": ("Who is hurt first?", Hurt),
    "risk": ("What is at risk most?", Risk),
}


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What the author of a new workflow has answered.

    Args:
        name: of the task, in snake case.
        category: name of the base class.
        third_party: whom the task calls, or who answers it.
        compromise: of a black box, a key of `COMPROMISES`.
        concerns: of a black box: visibility, necessity, hurt, risk, decided_by, why.
    """

    name: str
    category: str
    third_party: str
    compromise: str = "human"
    concerns: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        for what, value in (("name", self.name), ("third party", self.third_party)):
            if not is_plain(value):
                raise BadWorkflow(
                    [
                        Problem(
                            workflow=self.name,
                            task=None,
                            rule="workflow_name",
                            says=f"the {what} '{value}' is no name.",
                            remedy="Use lower-case words joined by `_`.",
                        )
                    ]
                )

    @property
    def kind(self) -> str:
        """Return the name of the class."""
        return "".join(word.capitalize() for word in self.name.split("_"))


def files(answers: Answers) -> dict[str, str]:
    """Return the files of a new workflow: its module and its test, by name.

    Args:
        answers: to the questions.
    """
    return {
        f"{answers.name}.py": module(answers),
        f"test_{answers.name}.py": test(answers),
    }


def module(answers: Answers) -> str:
    """Return the module of a new workflow.

    Args:
        answers: to the questions.
    """
    if answers.category == "ToDo":
        return _TO_DO_MODULE.format(**_words(answers))
    values = _words(answers) | _BODIES[answers.category](answers)
    return _MODULE.format(**values)


def test(answers: Answers) -> str:
    """Return the test of a new workflow.

    Args:
        answers: to the questions.
    """
    kind = answers.kind
    text, names = _TEST, ["Finding", f"Review{kind}", "Start", kind, f"{kind}Outcome"]
    if answers.category == "ToDo":
        text, names = _TO_DO_TEST, ["Reply", "Start", kind]
    keys = ", remembers_keys=True" if answers.category == "Idempotent" else ""
    imports = "".join(f"    {one},\n" for one in [*sorted(names), answers.name])
    script = "[Trouble.ACTS_SILENTLY] * 200"
    if answers.category == "PessimisticLock":  # which looks up first
        script = f"[Trouble.ANSWERS] + {script}"
    outcomes = [f"{kind}Outcome.DONE", "DEFAULT_EXIT"]
    if answers.category == "BlackBox":  # two calls that leave it uncertain are enough
        outcomes.insert(1, f"{kind}Outcome.NOBODY_KNOWS")
    return text.format(
        **_words(answers),
        keys=keys,
        imports=imports,
        script=script,
        outcomes="".join(f"        {one},\n" for one in outcomes),
    )


def _words(answers: Answers) -> dict[str, str]:
    party = "".join(word.capitalize() for word in answers.third_party.split("_"))
    return {
        "name": answers.name,
        "kind": answers.kind,
        "title": title(answers.name),
        "dashed": answers.name.replace("_", "-"),
        "party": party if party != answers.kind else f"{party}Service",
        "third_party": answers.third_party,
        "category": answers.category,
    }


def _imports(answers: Answers, more: Sequence[str] = ()) -> str:
    names = ["Decided", "Event", "Item", "Never", "Outcome", "ToDo", "Trigger", "Workflow"]
    classes = sorted({*names, answers.category, *more})
    return "".join(f"    {name},\n" for name in [*classes, "route"])


def _idempotent(answers: Answers) -> dict[str, str]:
    return {
        "imports": _imports(answers),
        "facts": "    key_valid_for = timedelta(hours=24)  # ask the third party\n",
        "more": "",
        "find": "",
    }


def _pessimistic(answers: Answers) -> dict[str, str]:
    return {
        "imports": _imports(answers),
        "facts": "    settles_within = timedelta(minutes=1)  # ask the third party\n",
        "more": (
            "\n    def lookup(\n"
            "        self, trigger: Trigger[Start], task_id: str\n"
            f"    ) -> Decided[{answers.kind}Outcome] | None:\n"
            '        """Return what an earlier attempt did, None if certainly nothing."""\n'
            "        if self.client.find(task_id) is None:\n"
            "            return None\n"
            f"        return Decided(outcome={answers.kind}Outcome.DONE)\n"
        ),
        "find": (
            "\n    def find(self, key: str) -> object | None:\n"
            '        """Return what was done for a key, None if nothing."""\n'
        ),
    }


def _black_box(answers: Answers) -> dict[str, str]:
    given = answers.concerns or {}
    concerns = {
        "visibility": Visibility(given.get("visibility", Visibility.TRACEABLE)).name,
        "necessity": Necessity(given.get("necessity", Necessity.MUST)).name,
        "hurt": Hurt(given.get("hurt", Hurt.CUSTOMER)).name,
        "risk": Risk(given.get("risk", Risk.REPUTATION)).name,
    }
    compromise = COMPROMISES[answers.compromise]
    names = ["Concerns", "Hurt", "Necessity", "Risk", "Visibility", compromise.split("(")[0]]
    return {
        "imports": _imports(answers, names),
        "facts": (
            f"    compromise = {compromise}\n"
            "    concerns = Concerns(\n"
            f"        visibility=Visibility.{concerns['visibility']},\n"
            f"        necessity=Necessity.{concerns['necessity']},\n"
            f"        hurt=Hurt.{concerns['hurt']},\n"
            f"        risks=frozenset({{Risk.{concerns['risk']}}}),\n"
            f"        decided_by={_quoted(given.get('decided_by', 'nobody yet'))},\n"
            f"        why={_quoted(given.get('why', 'nobody has said yet'))},\n"
            "    )\n"
        ),
        "more": "",
        "find": "",
    }


def _quoted(text: str) -> str:
    """Return a text as code has it, in double quotes."""
    return json.dumps(text, ensure_ascii=False)


_BODIES: Final = {
    "Idempotent": _idempotent,
    "PessimisticLock": _pessimistic,
    "BlackBox": _black_box,
}

_MODULE = '''\
"""{title}: a workflow of one task, and a person where nobody knows what happened."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol

from delta_outbox.railway import (
{imports})
from pydantic import BaseModel

DONE = Event(event_type="{name}.done")
NOT_DONE = Event(event_type="{name}.not_done")


@dataclass(frozen=True, kw_only=True)
class Start:
    """The payload of the event that starts the workflow."""

    id: str


class {party}(Protocol):
    """The third party, as the task sees it."""

    def act(self, key: str, what: str, answer: str) -> str:
        """Do it."""
{find}

class {kind}Outcome(Outcome):
    """All that the task can decide."""

    DONE = "done"
    NOBODY_KNOWS = "nobody_knows"


class {kind}({category}[Start, {kind}Outcome]):
    """Say in a sentence what the task does."""

    third_party = "{third_party}"
    identifier = "{dashed}-{{id}}"
    time_limit = timedelta(seconds=20)
    expires = timedelta(hours=1)
    when_uncertain = {kind}Outcome.NOBODY_KNOWS
{facts}
    def __init__(self, client: {party}) -> None:
        self.client = client

    def attempt(self, trigger: Trigger[Start], task_id: str) -> Decided[{kind}Outcome]:
        """Call the third party once, and decide by its answer."""
        self.client.act(task_id, trigger.start.id, "done")
        return Decided(outcome={kind}Outcome.DONE)
{more}

class Looked(Outcome):
    """What a person can find out."""

    DONE = "done"
    NOT_DONE = "not_done"


class Finding(BaseModel):
    """What a person answers."""

    id: str
    finding: Literal["done", "not_done"]


class Case(BaseModel):
    """What a person is shown."""

    id: str


class Review{kind}(ToDo[Start, Looked, Finding, Case]):
    """Let a person find out whether it was done."""

    identifier = "review-{dashed}-{{id}}"
    roles = frozenset({{"support"}})
    contract = Finding
    due = timedelta(days=1)
    expires = Never(why="a person must look")

    def read_model(self, trigger: Trigger[Start]) -> Case:
        """Show what it is about."""
        return Case(id=trigger.start.id)

    def correlate(self, data: Finding) -> str:
        """Find the item."""
        return f"review-{dashed}-{{data.id}}"

    def decide(self, item: Item[Case], data: Finding) -> Decided[Looked]:
        """Take the finding."""
        return Decided(outcome=Looked(data.finding))


{name} = Workflow(
    name="{name}",
    starts_on="{name}.asked",
    start=Start,
    instance="{{id}}",
    first={kind},
    default_exit=NOT_DONE,
    routes=(
        route(
            {kind},
            {{
                {kind}Outcome.DONE: DONE,
                {kind}Outcome.NOBODY_KNOWS: Review{kind},
            }},
        ),
        route(
            Review{kind},
            {{
                Looked.DONE: DONE,
                Looked.NOT_DONE: NOT_DONE,
            }},
        ),
    ),
)
'''

_TEST = '''\
"""Tests of {name}: whatever happens to its calls, it keeps its promise."""

from __future__ import annotations

from collections.abc import Sequence

from delta_outbox.railway import DEFAULT_EXIT, Trigger
from delta_outbox.testing.workflows import (
    Answer,
    ThirdParty,
    Trouble,
    check_task,
    explore,
    run_workflow,
)

from {name} import (
{imports})

START = Start(id="1")
TRIGGER = Trigger(instance="1", start=START)


def build(script: Sequence[Trouble]) -> tuple[{kind}, ThirdParty]:
    """Return the task and its third party, which follows a script."""
    party = ThirdParty(script{keys})
    return {kind}(party), party


def test_it_is_done_once() -> None:
    """What is asked for stands in the ledger of the third party."""
    task, party = build([])
    run = check_task({name}, task, TRIGGER, [party])
    assert run.outcome == {kind}Outcome.DONE
    assert party.effects("{dashed}-1") == ["1"]


def test_whatever_happens_it_keeps_its_promise() -> None:
    """Scripts of two troubles break no promise, and lead to these outcomes."""
    assert explore({name}, build, TRIGGER).outcomes == {{
{outcomes}    }}


def test_when_nobody_knows_a_person_looks() -> None:
    """An attempt that nobody knows of leads to a person, who decides."""
    task, party = build({script})
    found = Answer(task=Review{kind}, data=Finding(id="1", finding="done"))
    run = run_workflow(
        {name},
        [task, Review{kind}()],
        START,
        people=[found],
        third_parties=[party],
    )
    assert run.end == "{name}.done"
'''

_TO_DO_MODULE = '''\
"""{title}: a workflow in which somebody else continues."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from delta_outbox.railway import (
    Decided,
    Event,
    Item,
    Outcome,
    ToDo,
    Trigger,
    Workflow,
    route,
)
from pydantic import BaseModel

DONE = Event(event_type="{name}.done")
NOT_DONE = Event(event_type="{name}.not_done")


@dataclass(frozen=True, kw_only=True)
class Start:
    """The payload of the event that starts the workflow."""

    id: str


class {kind}Outcome(Outcome):
    """All that can be decided."""

    DONE = "done"
    NOT_DONE = "not_done"


class Reply(BaseModel):
    """What is answered."""

    id: str
    reply: Literal["done", "not_done"]


class Shown(BaseModel):
    """What is shown to whoever answers."""

    id: str


class {kind}(ToDo[Start, {kind}Outcome, Reply, Shown]):
    """Say in a sentence who is waited for, and for what."""

    identifier = "{dashed}-{{id}}"
    roles = frozenset({{"{third_party}"}})
    contract = Reply
    due = timedelta(hours=1)
    expires = timedelta(days=1)
    when_expired = {kind}Outcome.NOT_DONE

    def read_model(self, trigger: Trigger[Start]) -> Shown:
        """Show what it is about."""
        return Shown(id=trigger.start.id)

    def correlate(self, data: Reply) -> str:
        """Find the item."""
        return f"{dashed}-{{data.id}}"

    def decide(self, item: Item[Shown], data: Reply) -> Decided[{kind}Outcome]:
        """Take the reply."""
        return Decided(outcome={kind}Outcome(data.reply))


{name} = Workflow(
    name="{name}",
    starts_on="{name}.asked",
    start=Start,
    instance="{{id}}",
    first={kind},
    routes=(
        route(
            {kind},
            {{
                {kind}Outcome.DONE: DONE,
                {kind}Outcome.NOT_DONE: NOT_DONE,
            }},
        ),
    ),
)
'''

_TO_DO_TEST = '''\
"""Tests of {name}: whoever answers decides, and whoever does not lets it expire."""

from __future__ import annotations

from delta_outbox.testing.workflows import Answer, run_workflow

from {name} import (
{imports})

START = Start(id="1")


def test_an_answer_decides() -> None:
    """What is answered in time is the outcome."""
    reply = Answer(task={kind}, data=Reply(id="1", reply="done"))
    run = run_workflow({name}, [{kind}()], START, people=[reply])
    assert run.end == "{name}.done"


def test_without_an_answer_it_expires() -> None:
    """Nobody waits for ever."""
    run = run_workflow({name}, [{kind}()], START)
    assert run.end == "{name}.not_done"
'''

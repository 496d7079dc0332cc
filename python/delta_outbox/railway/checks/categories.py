"""Rules of a category: the facts about its third party that its promise rests on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Set
from datetime import timedelta
from enum import Enum
from typing import Final

from pydantic import BaseModel, PydanticUserError

from delta_outbox.railway.checks.shared_checks import (
    AnyWorkflow,
    Finding,
    has_text,
    is_number_from,
    span,
)
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
from delta_outbox.railway.names import duration
from delta_outbox.railway.tasks import (
    AnyTask,
    BlackBox,
    Idempotent,
    OptimisticLock,
    PessimisticLock,
    ToDo,
)

# Kafka has 249 characters; of a topic the names of its dead letters, and of who answers, are made.
_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,180}")


def locks(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """Each category states the facts about its third party that its promise rests on."""
    if issubclass(task, PessimisticLock):
        if not hasattr(task, "settles_within"):
            yield (
                "settles_within_missing",
                "it does not say how late a request may take effect after its attempt has ended.",
                "Ask the third party, and write `settles_within = timedelta(...)`.",
            )
        else:
            yield from span("settles_within", task.settles_within)
    if issubclass(task, OptimisticLock) and not has_text(
        getattr(task, "why_not_pessimistic", None)
    ):
        yield (
            "performance_reason_missing",
            "an optimistic lock needs a performance problem that was measured.",
            "Write `why_not_pessimistic`, or make it a PessimisticLock.",
        )
    if issubclass(task, Idempotent):
        valid = getattr(task, "key_valid_for", None)
        if valid is None:
            yield (
                "key_valid_for_missing",
                "it does not say how long the third party remembers a key.",
                "Write `key_valid_for = timedelta(...)`, or `Never(why=...)` if it never forgets.",
            )
            return
        yield from span("key_valid_for", valid, never=True)
        parts = (valid, getattr(task, "time_limit", None), task.settles_within)
        if not all(isinstance(one, timedelta) for one in parts):
            return
        least = task.time_limit + task.settles_within
        if isinstance(valid, timedelta) and valid <= least:
            yield (
                "key_valid_too_short",
                (
                    f"a key is valid for {duration(valid)}, and one attempt may need "
                    f"{duration(least)} until it has settled."
                ),
                "Shorten time_limit or settles_within, or choose another category.",
            )


def compromises(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """A black box has a compromise, and somebody who decided on it."""
    if not issubclass(task, BlackBox):
        return
    compromise = getattr(task, "compromise", None)
    if compromise is None:
        yield (
            "compromise_missing",
            "a black box needs a compromise.",
            "Write `compromise = AtMostOnce()`, `AtLeastOnce()`, `UpTo(n)` or `AskHuman()`.",
        )
    elif not isinstance(compromise, Compromise):
        yield from no_compromise(compromise)
    if isinstance(compromise, UpTo) and not is_number_from(2, compromise.executions):
        yield (
            "up_to_too_few",
            f"up to {compromise.executions!r} executions.",
            "Write AtMostOnce(), or a number from 2.",
        )
    concerns = getattr(task, "concerns", None)
    if not isinstance(concerns, Concerns):
        yield (
            "concerns_missing",
            "nobody has filled in the checklist of the business.",
            "Write `concerns = Concerns(...)`; `outbox workflow new` asks for it.",
        )
        return
    yield from no_members(concerns)
    if not has_text(concerns.decided_by) or not has_text(concerns.why) or not concerns.risks:
        yield (
            "concerns_incomplete",
            "its concerns lack who decided, why, or every risk.",
            "Fill in decided_by, why and at least one risk.",
        )


def no_members(concerns: Concerns) -> Iterator[Finding]:
    """Yield what is no member of the closed lists of the checklist, such as a word.

    Args:
        concerns: the checklist.
    """
    wrong: list[tuple[str, object, str]] = []
    for name, members in (("visibility", Visibility), ("necessity", Necessity), ("hurt", Hurt)):
        value = getattr(concerns, name)
        if not isinstance(value, members):
            wrong.append((name, value, f"`{name}` one of {_listed(members)}"))
    risks: object = concerns.risks
    if not isinstance(risks, Set) or not all(isinstance(one, Risk) for one in risks):
        wrong.append(("risks", risks, f"`risks=frozenset({{...}})` of {_listed(Risk)}"))
    for name, value, right in wrong:
        yield "concerns_no_members", f"`{name}` of its concerns is {value!r}.", f"Write {right}."


def _listed(members: type[Enum]) -> str:
    return ", ".join(f"{members.__name__}.{one}" for one in members.__members__)


def no_compromise(value: object) -> Iterator[Finding]:
    """Yield what is wrong with a value that is no compromise, such as the class of one.

    Args:
        value: in its place.
    """
    objects = {AtMostOnce: "AtMostOnce()", AtLeastOnce: "AtLeastOnce()", UpTo: "UpTo(2)"}
    objects[AskHuman] = "AskHuman()"
    for kind, written in objects.items():
        if value is kind:
            says, remedy = f"the class {kind.__name__}", f"Write `{written}`."
            break
    else:
        says = repr(value)
        remedy = f"Write {', '.join(f'`{one}`' for one in objects.values())}."
    yield "compromise_no_object", f"`compromise` is {says}.", remedy


def to_dos(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """A To-Do item says who may answer, and what an answer looks like."""
    if not issubclass(task, ToDo):
        return
    roles: object = getattr(task, "roles", None)
    if not roles:
        yield (
            "roles_missing",
            "nobody may answer it.",
            "Write `roles = frozenset({...})`.",
        )
    elif not isinstance(roles, Set) or not all(map(has_text, roles)):
        given = roles if isinstance(roles, Iterable) and not isinstance(roles, str) else [roles]
        written = ", ".join(sorted({json.dumps(one) for one in given if has_text(one)})) or "..."
        yield (
            "roles_no_set",
            f"`roles` is {roles!r}, which is no set of names.",
            f"Write `roles = frozenset({{{written}}})`.",
        )
    else:
        for one in sorted(roles):
            if "|" in one or one != one.strip():
                yield (
                    "role_name",
                    f"a role is {one!r}.",
                    "Leave out `|` and blanks around a role: a row joins roles by `|`.",
                )
    contract = getattr(task, "contract", None)
    if not (isinstance(contract, type) and issubclass(contract, BaseModel)):
        yield (
            "contract_missing",
            "it does not say what an answer looks like.",
            "Write `contract = Model`, a pydantic model.",
        )
    else:
        try:
            contract.model_json_schema()
        except PydanticUserError as error:
            yield (
                "contract_no_schema",
                f"its contract cannot be told to others: {str(error).splitlines()[0]}.",
                "Use types that JSON has: texts, numbers, lists, models of them.",
            )
    topic: object = getattr(task, "topic", None)
    if topic is not None and not (isinstance(topic, str) and _TOPIC.fullmatch(topic)):
        yield (
            "topic_name",
            f"`topic` is {topic!r}, which is no name of a topic of Kafka.",
            "Use up to 180 letters, digits, `.`, `_` and `-`.",
        )
    if task.due is not None:
        yield from span("due", task.due)
        expires = getattr(task, "expires", None)
        if isinstance(expires, timedelta) and task.due >= expires:
            yield (
                "due_after_expiry",
                f"it is due after {duration(task.due)}, when it has expired.",
                "Let it expire later, or be due sooner.",
            )


def four_eyes(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """Of people who answer two items of an instance it can be told whether they are two."""
    if not issubclass(task, ToDo):
        return
    others = [one for one in workflow.tasks if one is not task and issubclass(one, ToDo)]
    given: dict[object, object] = {one: one.not_by for one in (task, *others)}
    not_by = given.pop(task)
    if not isinstance(not_by, tuple) or not all(one in others for one in not_by):
        yield (
            "not_by_no_to_dos",
            "`not_by` must be a tuple of other To-Do classes of this workflow.",
            "Write `not_by = (Approve,)`; a third party answers for nobody.",
        )
        return
    is_named = any(isinstance(one, tuple) and task in one for one in given.values())
    for name in ("sends_link", "topic") if not_by or is_named else ():
        if getattr(task, name):
            yield (
                "not_by_no_names",
                f"`{name}` lets it be answered without a name, by which `not_by` goes.",
                "Leave one of them out.",
            )


def item_events(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """What events tell of items is said by yes or no, and a link has an event that carries it."""
    if not issubclass(task, ToDo):
        return
    for name in ("tells_opened", "sends_link"):
        if not isinstance(getattr(task, name), bool):
            yield (
                "neither_yes_nor_no",
                f"`{name}` is {getattr(task, name)!r}.",
                "Write True or False.",
            )
    if task.sends_link and task.due is None and not task.tells_opened:
        yield (
            "link_in_no_event",
            "`sends_link` is set, and no event tells of its items.",
            "Write `due = timedelta(...)` or `tells_opened = True`.",
        )

"""The conditions that the promises rest on, each with the code or the assumption that keeps it.

Take one away, and the exploration finds the shortest way to a broken promise. A condition that is
code is also a mutant: `tests/mutants/railway-<name>.patch` is written from here.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from scripts.exploration.search import Searched, search
from scripts.exploration.world import Assumptions, Explored, Table

from delta_outbox.railway import AskHuman, AtLeastOnce, AtMostOnce, Category, UpTo
from delta_outbox.railway.algorithms.attempt_endings import conclude
from delta_outbox.railway.algorithms.steps import Algorithm, Rules

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path("python/delta_outbox/railway/algorithms")
PACKAGE = "delta_outbox.railway.algorithms"
MODULES: Final = (
    "attempt_endings",
    "shared_steps",
    "idempotent",
    "pessimistic_lock",
    "optimistic_lock",
    "black_box",
)
CHECK = "tests/railway/test_exploration.py::test_two_workers_break_no_promise"

IDEMPOTENT = Rules(category=Category.IDEMPOTENT)
WITH_LOOKUP = Rules(category=Category.IDEMPOTENT, can_look_up=True)
PESSIMISTIC = Rules(category=Category.PESSIMISTIC_LOCK, can_look_up=True)
OPTIMISTIC = Rules(category=Category.OPTIMISTIC_LOCK)
AT_MOST_ONCE = Rules(category=Category.BLACK_BOX, compromise=AtMostOnce())
UP_TO_TWO = Rules(category=Category.BLACK_BOX, compromise=UpTo(2))
AT_LEAST_ONCE = Rules(category=Category.BLACK_BOX, compromise=AtLeastOnce())
HUMAN = Rules(category=Category.BLACK_BOX, compromise=AskHuman())

NAMES: Final = {
    IDEMPOTENT: "idempotent",
    WITH_LOOKUP: "idempotent-with-a-look-up",
    PESSIMISTIC: "pessimistic-lock",
    OPTIMISTIC: "optimistic-lock",
    AT_MOST_ONCE: "black-box-at-most-once",
    UP_TO_TWO: "black-box-up-to-2-times",
    AT_LEAST_ONCE: "black-box-at-least-once",
    HUMAN: "black-box-a-person-decides",
}


def plain(rules: Rules, **changes: bool) -> Assumptions:
    """Return the assumptions of a plain store of locks.

    Args:
        rules: of the task.
        changes: assumptions to take away.
    """
    races = rules.category is Category.OPTIMISTIC_LOCK
    return Assumptions(**{"claims": False, "stops": not races, **changes})


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Something that must hold.

    Args:
        name: of the mutant; of an assumption too.
        says: what must hold, in a sentence.
        rules: of a task that breaks without it.
        without: the assumption to take away; None where the condition is code.
        file: the module that keeps the condition.
        old: its code.
        new: what stands there without it.
        claims: whether it breaks with claims of ours; else on a plain store of locks.
        attempts: that the shortest broken promise needs.
    """

    name: str
    says: str
    rules: Rules
    without: str | None = None
    file: str = ""
    old: str = ""
    new: str = ""
    claims: bool = True
    attempts: int = 2

    def broken(self) -> Searched:
        """Return what the exploration finds without the condition."""
        gone = {self.without: False} if self.without else {}
        assumptions = Assumptions(**gone) if self.claims else plain(self.rules, **gone)
        algorithm, table = (
            (None, conclude) if self.without else altered(self.file, self.old, self.new)
        )
        explored = Explored(self.rules, self.attempts, assumptions, algorithm, table)
        return search(explored)

    def patch(self) -> str:
        """Return the mutant as a patch, with the head that mutants have."""
        path = FOLDER / f"{self.file}.py"
        before = (ROOT / path).read_text(encoding="utf-8")
        after = replaced(before, self.old, self.new)
        lines = difflib.unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            f"a/{path}",
            f"b/{path}",
        )
        store = "claims" if self.claims else "plain"
        check = f"{CHECK}[{NAMES[self.rules]}-{store}]"
        return f"fault: Not kept: {self.says}\ncheck: {check}\n\n{''.join(lines)}"


def replaced(text: str, old: str, new: str) -> str:
    """Return a text with one part of it replaced.

    Args:
        text: of a module.
        old: a part that it has once.
        new: the part instead.
    """
    assert text.count(old) == 1, f"{text.count(old)} times in the module: {old!r}"
    return text.replace(old, new)


def altered(file: str, old: str, new: str) -> tuple[Callable[[Rules], Algorithm], Table]:
    """Return the algorithms and the table, of which one module is altered.

    Args:
        file: the module.
        old: a part of it.
        new: the part instead.
    """
    made = f"altered_{abs(hash((file, old, new)))}"
    for name in MODULES:
        text = (ROOT / FOLDER / f"{name}.py").read_text(encoding="utf-8")
        if name == file:
            text = replaced(text, old, new)
        for other in MODULES:
            text = text.replace(f"from {PACKAGE}.{other} import", f"from {made}.{other} import")
        module = ModuleType(f"{made}.{name}")
        sys.modules.setdefault(made, ModuleType(made))
        sys.modules[f"{made}.{name}"] = module
        exec(compile(text, f"altered/{name}.py", "exec"), vars(module))
    categories = {
        Category.IDEMPOTENT: "idempotent",
        Category.PESSIMISTIC_LOCK: "pessimistic_lock",
        Category.OPTIMISTIC_LOCK: "optimistic_lock",
        Category.BLACK_BOX: "black_box",
    }

    def algorithm(rules: Rules) -> Algorithm:
        name = categories[rules.category]
        run: Algorithm = vars(importlib.import_module(f"{made}.{name}"))[name](rules)
        return run

    table: Table = vars(sys.modules[f"{made}.attempt_endings"])["conclude"]
    return algorithm, table


CONDITIONS: Final = (
    Condition(
        name="outcome-is-not-asked-for",
        says="After the lock is written, the first question is whether an outcome is on record.",
        rules=AT_MOST_ONCE,
        claims=False,
        file="shared_steps",
        old="    if record.decided:\n",
        new="    if False:\n",
    ),
    Condition(
        name="turn-of-another-is-taken",
        says="An attempt stands back while an older lock has neither ended nor run out.",
        rules=PESSIMISTIC,
        claims=False,
        file="shared_steps",
        old="    if record.held_by_another and not race:\n",
        new="    if False:\n",
    ),
    Condition(
        name="key-is-not-remembered-long-enough",
        says=(
            "The third party remembers a key until the last request with it has arrived: its life "
            "by our clock ends a time limit and a settling time earlier."
        ),
        rules=IDEMPOTENT,
        without="key_margin",
    ),
    Condition(
        name="forgotten-key-is-used",
        says="A key whose life is over is not used again after an attempt that may have acted.",
        rules=IDEMPOTENT,
        file="idempotent",
        old="    if record.unsure and not record.key_alive:\n",
        new="    if False:\n",
    ),
    Condition(
        name="key-is-not-looked-at-again",
        says="After a look-up without an answer, whether the key is still alive is read anew.",
        rules=WITH_LOOKUP,
        file="idempotent",
        old="(yield from ReadRecord().ask()) if isinstance(looked, NoAnswer) else looked",
        new="record if isinstance(looked, NoAnswer) else looked",
    ),
    Condition(
        name="calls-go-on-after-their-lease",
        says="The time limit is hard: a lock runs out only after its process has ended.",
        rules=PESSIMISTIC,
        claims=False,
        without="hard_limit",
    ),
    Condition(
        name="settling-time-is-too-short",
        says="Nothing takes effect after the settling time of the third party.",
        rules=PESSIMISTIC,
        without="settles",
    ),
    Condition(
        name="nobody-waits-for-settling",
        says="Nobody looks up before earlier requests have settled.",
        rules=PESSIMISTIC,
        file="shared_steps",
        old="    if record.unsure and not record.settled:\n",
        new="    if False:\n",
    ),
    Condition(
        name="lookup-is-left-out",
        says="Under a pessimistic lock every attempt looks up first.",
        rules=PESSIMISTIC,
        file="pessimistic_lock",
        old="    record = yield from be_sure(record)\n",
        new="",
    ),
    Condition(
        name="older-first-steps-stay",
        says="Whoever takes over undoes the first steps of earlier attempts before going on.",
        rules=OPTIMISTIC,
        file="optimistic_lock",
        old="    if not (yield from undo(others)):\n",
        new="    if others is None:\n",
    ),
    Condition(
        name="failed-undo-goes-on",
        says="If it is not certain that a first step is undone, the attempt ends and comes again.",
        rules=OPTIMISTIC,
        file="optimistic_lock",
        old="(yield from Undo(one.reference).ask()):\n            return False\n",
        new="(yield from Undo(one.reference).ask()):\n            continue\n",
    ),
    Condition(
        name="second-step-of-the-dead-is-left",
        says=(
            "A second step that was taken is the outcome once its owner's lock is over; to stop "
            "without an outcome, as the source's prose has it, strands the task."
        ),
        rules=OPTIMISTIC,
        file="optimistic_lock",
        old="        if not record.alone and not done.expired:\n",
        new="        if done is not None:\n",
    ),
    Condition(
        name="undone-steps-are-taken",
        says="The third party refuses a second step whose first step was undone.",
        rules=OPTIMISTIC,
        without="refuses_undone",
    ),
    Condition(
        name="timeout-is-a-fault",
        says="Only what certainly was not done is a fault; a read that timed out is not.",
        rules=AT_MOST_ONCE,
        without="faults_are_certain",
    ),
    Condition(
        name="compromise-is-not-asked",
        says="After an attempt that may have acted, the compromise says whether there is another.",
        rules=AT_MOST_ONCE,
        claims=False,
        file="black_box",
        old="record.over or (record.unsure and not rules.may_act_again(record.executions))",
        new="record.over",
    ),
    Condition(
        name="uncertain-is-called-rejected",
        says="A refusal proves nothing about an earlier request that may have acted.",
        rules=UP_TO_TWO,
        file="attempt_endings",
        old="record.unsure and rules.category is not Category.IDEMPOTENT",
        new="False",
    ),
    Condition(
        name="uncertain-is-called-exhausted",
        says="A fault proves nothing about an earlier request that may have acted.",
        rules=IDEMPOTENT,
        file="attempt_endings",
        old="            if not record.unsure:\n",
        new="            if True:\n",
    ),
    Condition(
        name="uncertain-is-called-expired",
        says="Expiry proves nothing about an earlier request that may have acted.",
        rules=AT_LEAST_ONCE,
        file="attempt_endings",
        old="    if record.unsure:\n        return AttemptEnding(reason=Reason.UNCERTAIN)\n",
        new="",
    ),
    Condition(
        name="last-attempt-is-made-again",
        says=(
            "An attempt that begins when the task is over, to find out what earlier ones did, is "
            "the last one, even if it dies or sends nothing."
        ),
        rules=PESSIMISTIC,
        file="attempt_endings",
        old=" if record.over and record.unsure:\n",
        new=" if False:\n",
    ),
)

"""Scripts of what goes wrong, and what the kit for authors says of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.unit.workflow_engine import categories
from tests.unit.workflow_engine.scripted_parties import Party

from delta_outbox.testing.workflows import TROUBLES, Trouble, run_workflow

Script = Sequence[Trouble]
Case = tuple[Any, str, Script]  # the task, the name of the instance, and what goes wrong
EVERY = [script for length in range(3) for script in itertools.product(TROUBLES, repeat=length)]
LASTING = [(one,) * 20 for one in (Trouble.REFUSES, Trouble.STAYS_SILENT)]
# The kit waits after a death as the back-off says; who takes over from a relay cannot ask it. So
# where deaths are among the troubles, no pace is slow: the number of attempts would differ.
REFUSED_AFTER_DEATH = (Trouble.DIES_BEFORE, *(Trouble.REFUSES,) * 20)
# What is asked before the call that has the effect; it is answered.
BEFORE = {
    categories.Locked: (Trouble.ANSWERS,),
    categories.TwoSteps: (Trouble.ANSWERS, Trouble.ANSWERS),
}


def lasting(task: Any, name: str, paces: Sequence[str]) -> list[Case]:
    """Return cases of what lasts until the back-off ends, or until the task expires if slow."""
    before = BEFORE.get(task, ())
    return [
        (task, f"{name}-refused-after-death", (*before, *REFUSED_AFTER_DEATH)),
        *(
            (task, f"{name}-{script[0].name.lower()}-{pace}", (*before, *script))
            for script in LASTING
            for pace in paces
        ),
    ]


# Of two that are alike, one has every other trouble, and the other the rest.
SOME: list[Case] = [
    case
    for n, task in enumerate(categories.SINGLE)
    for case in (
        *(
            (task, f"some-{one.name.lower()}", (*BEFORE.get(task, ()), one))
            for one in TROUBLES[n % 2 :: 2]
        ),
        *lasting(task, "some-lasting", [("usual", "slow")[n % 2]]),
    )
]
ALL: list[Case] = [
    case
    for task in categories.SINGLE
    for case in (
        *((task, f"all-{n}", script) for n, script in enumerate(EVERY)),
        *lasting(task, "all-lasting", ("usual", "slow")),
    )
]


def by_the_kit(task: Any, name: str, script: Script) -> dict[str, Any]:
    """Return what the kit says of a script."""
    party = Party(script, party=task.third_party)
    workflow = getattr(categories, task.task_name())
    made = [task(party), categories.Look()]
    given = [one for one in made if type(one) in workflow.tasks]
    run = run_workflow(workflow, given, categories.Start(name=name), third_parties=[party])
    passed = [
        (one.task_id, str(one.run.reason if one.run else one.cause), str(one.outcome))
        for one in run.passed
    ]
    return {"passed": passed, "end": run.end, **without_time(json.loads(json.dumps(party.told)))}


def without_time(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the effects and calls of a third party; in the engine time is another."""
    return {name: told[name] for name in ("effects", "calls")}

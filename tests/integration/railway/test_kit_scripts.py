"""What the kit says of scripts of troubles is what becomes of them in the engine."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.railway.author import categories
from tests.integration.railway.played import Play, ended, opened_play
from tests.integration.railway.scripted_parties import Parties, Party, parties

from delta_outbox.railway import BlackBox
from delta_outbox.railway.routing import CAUSES
from delta_outbox.testing.workflows import TROUBLES, Trouble, run_workflow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.home import Home

Script = Sequence[Trouble]
EVERY = [script for length in range(3) for script in itertools.product(TROUBLES, repeat=length)]

DEATHS = {Trouble.DIES_BEFORE, Trouble.DIES_AFTER}


@pytest.fixture(scope="module")
def town() -> Iterator[Parties]:
    """Return the third parties."""
    with parties() as found:
        yield found


@pytest.fixture(scope="module")
def play(spark: SparkSession, home: Home, town: Parties) -> Iterator[Play]:
    """Return an outbox in which each category has a workflow."""
    with opened_play(spark, home, "t_kit_scripts", town) as found:
        yield found


def by_the_kit(task: Any, name: str, script: Script) -> dict[str, Any]:
    """Return what the kit says of a script."""
    party = Party(script, party=task.third_party)
    workflow = getattr(categories, task.task_name())
    made = [task(party), categories.Look()]
    given = [one for one in made if type(one) in workflow.tasks]
    run = run_workflow(workflow, given, categories.Start(name=name), third_parties=[party])
    passed = [(one.task_id, one.cause, str(one.outcome)) for one in run.passed]
    return {"passed": passed, "end": run.end, **_without_time(json.loads(json.dumps(party.told)))}


def by_the_engine(
    play: Play, scripts: Mapping[tuple[Any, str], Script]
) -> dict[tuple[Any, str], dict[str, Any]]:
    """Return what has become of scripts, by task and name of the instance."""
    keys = {(task, name): f"{task.third_party}-{name}" for task, name in scripts}
    play.parties.follow({keys[one]: script for one, script in scripts.items()})
    starts = [
        (f"start-{keys[task, name]}", task.third_party, json.dumps({"name": name}))
        for task, name in scripts
    ]
    play.start(*starts)
    play.run_to_the_end()
    told = play.parties.told(everything=True)
    looks = {one: f"look-{one[1]}" for one in scripts if one[0] is categories.Asked}
    endings = ended(play.store, [*keys.values(), *looks.values()])
    ends = play.store.rows(
        f"select event_id, event_type from {play.store.tables.events} "
        "where startswith(event_id, 'workflow:')"
    )
    found = {}
    for one, key in keys.items():
        instance = f"workflow:{one[0].third_party}/{one[1]}"
        passed = [
            (task_id, CAUSES[row["reason"]], row["outcome"])
            for task_id in (key, looks.get(one, ""))
            for row in endings.get(task_id, [])
        ]
        end = [row["event_type"] for row in ends if row["event_id"] == instance]
        found[one] = {"passed": passed, "end": end[0] if len(end) == 1 else end}
        found[one] |= _without_time(told[key])
    return found


def _without_time(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name != "first_at"}


def compare(play: Play, prefix: str, cases: Sequence[tuple[Any, Script]]) -> None:
    """Demand that scripts come to the same in both."""
    scripts = {(task, f"{prefix}{n}"): script for n, (task, script) in enumerate(cases)}
    engine = by_the_engine(play, scripts)
    for (task, name), script in scripts.items():
        kit = by_the_kit(task, name, script)
        assert kit == engine[task, name], (task.third_party, script)


def test_scripts_come_to_what_the_kit_says(play: Play) -> None:
    """Some scripts of each category, a host and a relay that die among them, end in the engine as
    in the kit: the same calls, effects, causes, outcomes and last event.
    """
    chance = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")  # noqa: T201 - shown if it fails
    cases: list[tuple[Any, Script]] = [(categories.Locked, (Trouble.ANSWERS, Trouble.DIES_AFTER))]
    for task in categories.SINGLE:
        cases.append((task, (Trouble.ACTS_SILENTLY,)))
        cases.append((task, chance.choice([one for one in EVERY if not DEATHS & {*one}])))
        if issubclass(task, BlackBox):
            cases += [(task, (Trouble.ACTS_SILENTLY,) * 3), (task, (Trouble.DIES_AFTER,))]
    compare(play, "some", cases)


@pytest.mark.rest
def test_every_script_comes_to_what_the_kit_says(play: Play) -> None:
    """All scripts of two troubles of every category and compromise, a thousand tasks beside each
    other, end in the engine as in the kit.
    """
    compare(play, "every", [(task, script) for task in categories.SINGLE for script in EVERY])

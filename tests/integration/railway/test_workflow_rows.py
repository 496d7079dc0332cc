"""Rows of workflows in a dbt project that has ours as a package: checked, kept, put into force."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from order_compensation import order_compensation
from order_creation import order_creation
from scripts.hatch_build import REQUIRED
from tests.integration.conftest import REPOSITORY, SHARED_SCHEMA
from tests.integration.other_project import run_in
from tests.integration.outboxes import Store
from tests.unit.railway.workflow import Check, graph

from delta_outbox.core.clock import SystemClock
from delta_outbox.core.errors import DbtFailed
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.railway.generated_files import files_of, write
from delta_outbox.railway.graph import Graph
from delta_outbox.railway.rows import COLUMNS, from_csv, to_csv
from delta_outbox.runtime.dbt import check_result

SHOP = "t_workflows_shop"
PROJECT = """\
name: shop
version: "1.0"
profile: shop
dispatch: [{macro_namespace: dbt, search_order: [shop, delta_outbox, dbt]}]
"""
PROFILE = f"""\
shop:
  target: local
  outputs: {{local: {{type: spark, method: session, host: NA, schema: {SHOP}, threads: 1}}}}
"""
Build = Callable[[Sequence[Graph[Any]] | None], list[str]]

ODD = "it's \"50%\" \\n \\' {{ tea }} ${env:HOME} 🍵, {% do %}"
"""What a loader that quotes without escaping would break, or what Spark would fill in."""


@pytest.fixture(scope="module")
def store(shared_store: Store) -> Iterator[Store]:
    """Return an outbox in which nobody has put workflows into force."""
    yield shared_store
    shared_store.spark.sql(f"drop schema if exists {SHOP} cascade")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dbt project with the files that a wheel carries as a package."""
    folder: Path = tmp_path_factory.mktemp("shop")
    package = tmp_path_factory.mktemp("installed") / "dbt_project"
    for name in REQUIRED:
        source, target = REPOSITORY / name, package / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    (folder / "dbt_project.yml").write_text(PROJECT)
    (folder / "profiles.yml").write_text(PROFILE)
    (folder / "packages.yml").write_text(f"packages: [{{local: '{package}'}}]\n")
    dbt(folder, "deps")
    return folder


def dbt(folder: Path, *words: str) -> list[str]:
    """Run dbt in a project, in this process's session, and return what it warned of.

    Raises:
        DbtFailed: it failed; with its words.
    """
    warned: list[str] = []

    def listen(event: Any) -> None:
        if event.info.level == "warn":
            warned.append(event.info.msg)

    variables = {"outbox_schema": SHARED_SCHEMA}
    check_result(run_in(folder, words, variables=variables, listeners=[listen]))
    return warned


@pytest.fixture
def build(store: Store, project: Path) -> Build:
    """Return a function that writes what follows from workflows, and lets dbt build it."""
    del store

    def run(workflows: Sequence[Graph[Any]] | None) -> list[str]:
        if workflows is not None:
            write(files_of(workflows, project, whole=True))
        return dbt(project, "build", "--select", "package:shop")

    return run


def plans(store: Store) -> list[dict[str, Any]]:
    """Return the sets of workflows that were put into force, in order."""
    found = store.rows(
        f"select number, plan from {store.tables.progress} where writer = 'workflows' "
        "order by number"
    )
    assert list(range(1, len(found) + 1)) == [row["number"] for row in found]
    return [json.loads(row["plan"]) for row in found]


def in_force(store: Store) -> list[tuple[str, str]]:
    """Return what the view for people shows: name and title of each workflow."""
    rows = store.rows(f"select workflow, title from {SHOP}.railway_in_force order by workflow")
    return [(row["workflow"], row["title"]) for row in rows]


def test_the_last_set_that_passed_every_check_is_in_force(
    store: Store, project: Path, build: Build
) -> None:
    """Rows arrive as they were written and are kept once; a bad row fails the build, named with
    its rule, and leaves in force what was.
    """
    build([order_compensation, replace(order_creation, title=ODD)])
    (first,) = plans(store)
    expected = {
        seed: from_csv((project / "seeds" / f"{seed}.csv").read_text(encoding="utf-8"))
        for seed in COLUMNS
    }
    for seed, rows in expected.items():
        assert sorted(map(str, rows)) == sorted(
            str({name: row[name] for name in COLUMNS[seed]}) for row in first["rows"][seed]
        )
    titles = [("order_compensation", "Order compensation"), ("order_creation", ODD)]
    assert titles == in_force(store)
    contract = json.loads(expected["railway_contracts"][0]["contract"])
    assert "object" == contract["type"]

    routes = project / "seeds" / "railway_routes.csv"
    text = routes.read_text(encoding="utf-8")
    routes.write_text(text.replace("order.cancelled", "", 1), encoding="utf-8")
    with pytest.raises(DbtFailed) as refused:
        build(None)
    assert "BAD_WORKFLOW: the workflows that passed last stay in force." in str(refused.value)
    assert "leads_nowhere] " in str(refused.value)
    assert [first] == plans(store)
    assert titles == in_force(store)


@pytest.mark.rest
def test_a_set_is_kept_once_and_another_follows_it(store: Store, build: Build) -> None:
    """The same rows again are no new set; a changed one has the next number, also after one that
    another writer of the same plans has made.
    """
    build([graph(title=ODD)])
    before = plans(store)
    build(None)
    assert before == plans(store)
    build([graph(version=2)])
    (*rest, last) = plans(store)
    assert before == rest
    assert ["2"] == [row["version"] for row in last["rows"]["railway_workflows"]]
    assert [("shipping", "Shipping")] == in_force(store)
    others = NumberedWrites(store.spark, store.tables, writer="workflows", clock=SystemClock())
    (found,) = others.last()
    assert last == found.plan
    others.append(lambda _: {**last, "version": "another"}, planned_by="somebody else")
    build(None)
    (*_, another, again) = plans(store)
    assert ("another", last) == (another["version"], again)
    build([order_compensation])  # without a To-Do, so with a seed of no rows
    assert [("order_compensation", "Order compensation")] == in_force(store)
    assert [] == plans(store)[-1]["rows"]["railway_contracts"]


@pytest.mark.rest
def test_rows_of_a_hand_are_checked_too(store: Store, project: Path, build: Build) -> None:
    """Without a hash, without types of columns and without empty columns rows are taken, and
    refused, by the same rules.
    """
    build([graph()])
    (project / "seeds" / "railway.yml").unlink()
    seeds = {seed: project / "seeds" / f"{seed}.csv" for seed in COLUMNS}
    rows = {seed: from_csv(file.read_text(encoding="utf-8")) for seed, file in seeds.items()}
    rows["railway_workflows"][0] |= {"hash": "", "title": "By hand"}
    for row in rows["railway_routes"]:
        if (row["task"], row["cause"]) == ("check", "expired"):
            row |= {"outcome": "", "to_event": "parcel.lost"}
    for seed, file in seeds.items():
        file.write_text(to_csv(seed, rows[seed]), encoding="utf-8")
    text = seeds["railway_workflows"].read_text(encoding="utf-8")
    seeds["railway_workflows"].write_text(
        text.replace(",hash\n", "\n").replace(",120,\n", ",120\n")
    )
    warned = build(None)
    assert any("shipping.tell: [uncertainty_expires]" in one for one in warned), warned
    assert [("shipping", "By hand")] == in_force(store)
    assert Check.task_name() in {row["task"] for row in plans(store)[-1]["rows"]["railway_tasks"]}
    seeds["railway_workflows"].write_text(
        seeds["railway_workflows"]
        .read_text()
        .replace(",120\n", ",5\n")
        .replace("version", "versoin")
    )
    with pytest.raises(DbtFailed) as refused:
        build(None)
    for rule in ("no_such_column", "version", "time_limit_too_long"):
        assert f"[{rule}]" in str(refused.value)
    rows["railway_workflows"][0]["title"] = "2026"
    seeds["railway_workflows"].write_text(to_csv("railway_workflows", rows["railway_workflows"]))
    with pytest.raises(DbtFailed, match=r"railway_workflows: \[type_guessed\] dbt took its title"):
        build(None)
    assert [("shipping", "By hand")] == in_force(store)


@pytest.mark.rest
def test_a_project_without_workflows_is_left_alone(store: Store, project: Path) -> None:
    """Where nothing was written, nothing of it is built or kept."""
    before = plans(store)
    for file in [*project.glob("seeds/*"), *project.glob("models/*")]:
        file.unlink()
    dbt(project, "build", "--select", "outbox_state", "policy_rows", "delivery_policies")
    assert before == plans(store)

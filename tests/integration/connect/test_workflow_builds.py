"""Two dbt builds beside each other on one outbox, each with a set of workflows of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.conftest import REPOSITORY
from tests.integration.other_project import run_in
from tests.integration.outboxes import Store, open_store
from tests.unit.railway.workflow import graph

from delta_outbox.railway.generated_files import files_of, write
from delta_outbox.railway.rows import COLUMNS, Rows, rows_of, to_csv
from delta_outbox.runtime.dbt import check_result
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.served_home import REMOTE_VARIABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest

SCHEMA, SHOP = "t_builds", "t_builds_shop"
VARIABLES = {"outbox_schema": SCHEMA}
BUILD = ("build", "--select", "package:shop")
FILES = {
    "dbt_project.yml": """\
name: shop
version: "1.0"
profile: shop
dispatch: [{macro_namespace: dbt, search_order: [shop, delta_outbox, dbt]}]
""",
    "profiles.yml": f"""\
shop:
  target: local
  outputs: {{local: {{type: spark, method: session, host: NA, schema: {SHOP}, threads: 1}}}}
""",
    "packages.yml": f"packages: [{{local: '{REPOSITORY}'}}]\n",
}
Listener = Callable[[Any], None]


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox for the tests of this file."""
    with open_store(spark, home, SCHEMA) as store:
        yield store
        spark.sql(f"drop schema if exists {SHOP} cascade")


def by_hand(title: str) -> Rows:
    """Return rows that a hand could have written: each seed has something of its own, and any
    mixture of two such sets keeps every rule.
    """
    rows = rows_of(graph(title=title))
    rows["railway_workflows"][0]["hash"] = ""
    for row in rows["railway_tasks"]:
        row["title"] = title
    for row in rows["railway_contracts"]:
        row["contract"] = json.dumps({**json.loads(row["contract"]), "title": title})
    if title == "theirs":
        for row in rows["railway_routes"]:
            if (row["task"], row["cause"]) == ("check", "expired"):
                row |= {"outcome": "", "to_event": "parcel.lost"}
    return rows


@pytest.fixture(scope="module")
def projects(store: Store, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return two projects that build into the same schemas, by the title of their rows."""
    del store
    made = {}
    for title in ("mine", "theirs"):
        folder = made[title] = tmp_path_factory.mktemp(title)
        for name, text in FILES.items():
            (folder / name).write_text(text)
        check_result(run_in(folder, ("deps",), variables=VARIABLES))
        write(files_of([graph()], folder, whole=True))
        for seed, rows in by_hand(title).items():
            (folder / "seeds" / f"{seed}.csv").write_text(to_csv(seed, rows), encoding="utf-8")
    return made


def build_mine(projects: Mapping[str, Path], *listeners: Listener) -> None:
    """Build the one project in this process."""
    check_result(run_in(projects["mine"], BUILD, variables=VARIABLES, listeners=listeners))


@pytest.fixture
def build_theirs(
    projects: dict[str, Path], plain_environment: Mapping[str, str], remote_url: str
) -> Callable[[], subprocess.Popen[str]]:
    """Return a function that starts a build of the other project, in a process of its own."""
    folder = str(projects["theirs"])
    words = [*BUILD, "--project-dir", folder, "--profiles-dir", folder, "--log-path", folder]
    environment = {
        **plain_environment,
        REMOTE_VARIABLE: remote_url,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONWARNINGS": os.environ.get("PYTHONWARNINGS", ""),
    }

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "dbt.cli.main", *words, "--vars", json.dumps(VARIABLES)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start


def ended(build: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for a build, and return its exit code and what it said."""
    said, _ = build.communicate()
    return build.returncode, said


def in_force(store: Store) -> dict[str, list[str]]:
    """Return the rows in force, comparable."""
    (row,) = store.rows(
        "select max_by(plan, number) as plan from "
        f"{store.tables.progress} where writer = 'workflows'"
    )
    return comparable(json.loads(row["plan"])["rows"])


def comparable(rows: Rows) -> dict[str, list[str]]:
    """Return rows whose order does not count."""
    return {
        seed: sorted(str({name: row[name] for name in COLUMNS[seed]}) for row in rows[seed])
        for seed in COLUMNS
    }


@pytest.mark.parametrize("loaded", [2, 4])
def test_a_build_that_is_overtaken_mixes_nothing(
    store: Store,
    projects: dict[str, Path],
    build_theirs: Callable[[], subprocess.Popen[str]],
    loaded: int,
) -> None:
    """Another build between two seeds, or between the seeds and their check, is in force at once;
    who was overtaken puts the rows of its own files into force, and none of the other's.
    """
    finished: list[str] = []

    def overtake(event: Any) -> None:
        if event.info.name != "NodeFinished" or event.data.node_info.resource_type != "seed":
            return
        finished.append(event.data.node_info.node_name)
        if len(finished) == loaded:
            code, said = ended(build_theirs())
            assert 0 == code, said
            assert comparable(by_hand("theirs")) == in_force(store)

    build_mine(projects, overtake)
    assert sorted(COLUMNS) == sorted(finished)
    assert comparable(by_hand("mine")) == in_force(store)


def test_two_builds_at_once_end_well(
    store: Store,
    projects: dict[str, Path],
    build_theirs: Callable[[], subprocess.Popen[str]],
) -> None:
    """Whoever is first where, one of the two sets is in force, whole."""
    theirs = build_theirs()
    build_mine(projects)
    code, said = ended(theirs)
    assert 0 == code, said
    assert in_force(store) in [comparable(by_hand(title)) for title in projects]

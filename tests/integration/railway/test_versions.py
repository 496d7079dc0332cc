"""docs/railway/versions.md, step by step: its code is built, and its commands are run."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.conftest import REPOSITORY
from tests.integration.other_project import run_in
from tests.integration.outboxes import Store, open_store
from tests.integration.railway.test_workflow_rows import PROJECT

from delta_outbox.cli.main import main
from delta_outbox.core.errors import DbtFailed
from delta_outbox.runtime.dbt import check_result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.home import Home

SCHEMA, SHOP = "t_versions", "t_versions_shop"
PAGE = (REPOSITORY / "docs" / "railway" / "versions.md").read_text(encoding="utf-8")
PROFILE = f"""\
shop:
  target: local
  outputs: {{local: {{type: spark, method: session, host: NA, schema: {SHOP}, threads: 1}}}}
"""


def blocks(language: str) -> list[str]:
    """Return the blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox of which nobody has put workflows into force."""
    with open_store(spark, home, SCHEMA) as opened, opened.commands():
        yield opened
    spark.sql(f"drop schema if exists {SHOP} cascade")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a dbt project in which the module of the page is found, as the working folder."""
    (tmp_path / "dbt_project.yml").write_text(PROJECT)
    (tmp_path / "profiles.yml").write_text(PROFILE)
    (tmp_path / "packages.yml").write_text(f"packages: [{{local: '{REPOSITORY}'}}]\n")
    (tmp_path / "outbox.toml").write_text(
        '[workflows]\nmodules = ["refunds"]\n[publishers.default]\ntype = "null"\n'
    )
    for name in ("first", "second", "third"):
        event = {"event_id": f"asked-{name}", "event_type": "refund.asked"}
        text = json.dumps({**event, "payload": {"refund": name}})
        (tmp_path / f"{name}.jsonl").write_text(f"{text}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OUTBOX_CONFIG", str(tmp_path / "outbox.toml"))
    dbt(tmp_path, "deps")
    yield tmp_path
    sys.modules.pop("refunds", None)


def dbt(folder: Path, *words: str) -> None:
    """Run dbt in the project, in this process's session."""
    only = ("--select", "package:shop") if words[0] == "build" else ()
    check_result(run_in(folder, [*words, *only], variables={"outbox_schema": SCHEMA}))


def declare(folder: Path, version: int) -> None:
    """Write the module as the page has it in a version."""
    common, *versions = blocks("python")
    (folder / "refunds.py").write_text(f"{common}\n\n{versions[version - 1]}")
    sys.modules.pop("refunds", None)
    importlib.invalidate_caches()


def follow(folder: Path, block: str, capsys: pytest.CaptureFixture[str]) -> list[Any]:
    """Run the commands of a block, and return the documents that they print."""
    found = []
    for line in block.splitlines():
        command, *words = shlex.split(line, comments=True)
        assert "outbox" == command
        if words[0] == "dbt":
            dbt(folder, *words[1:])
            continue
        capsys.readouterr()
        code = main([*words, "--json"])
        printed = capsys.readouterr().out
        assert 0 == code, printed
        found.append(json.loads(printed))
    return found


def between(folder: Path, removes: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Demand that an instance counts whose task has ended and whose next one is not written yet,
    and cancel that instance, which counts no more.
    """
    follow(
        folder,
        """
        outbox append third.jsonl
        outbox relay --drain
        outbox todo complete look-third-1 --data '{"refund": "third", "pay": true}'
        """.strip(),
        capsys,
    )
    declare(folder, 3)
    with pytest.raises(DbtFailed, match=r"refunds\.check: .* 2 open instance"):
        follow(folder, removes, capsys)
    declare(folder, 2)
    follow(
        folder,
        """
        outbox workflow build
        outbox relay --drain
        outbox workflow cancel third --actor ann --reason "it was a test" --apply
        """.strip(),
        capsys,
    )


@pytest.mark.rest
def test_the_page_about_versions_is_true(
    store: Store, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An open instance goes on by the version that it has started with; rows that would strand one
    are refused with how many there are, and are put into force once these were moved.
    """
    begins, changes, removes, moves = blocks("sh")
    declare(project, 1)
    follow(project, begins, capsys)
    declare(project, 2)
    *_, listed = follow(project, changes, capsys)
    assert {("first", 1, "refund.paid", None), ("second", 2, None, "check")} == {
        (one["instance"], one["version"], one["exit"], one["task"]) for one in listed["instances"]
    }
    between(project, removes, capsys)
    declare(project, 3)
    with pytest.raises(DbtFailed) as refused:
        follow(project, removes, capsys)
    (told,) = blocks("text")
    assert told.strip() in str(refused.value)
    migrated, moved, completed, summary = follow(project, moves, capsys)
    assert [("check", "look-second-2")] == [
        (one["task"], one["to_task_id"]) for one in migrated["migrated"]
    ]
    assert (1, "pay", 0) == (moved["open_items"], completed["outcome"], summary["open_items"])
    rows = store.rows(f"select instance, exit from {store.tables['workflow_instances']}")
    assert {"first": "refund.paid", "second": "refund.paid", "third": "refund.refused"} == {
        row["instance"]: row["exit"] for row in rows
    }
    in_force = store.rows(f"select version, number from {SHOP}.railway_in_force")
    assert [{"version": "3", "number": 3}] == in_force

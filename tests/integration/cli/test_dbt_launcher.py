"""The dbt launcher: dbt as it is, with the session it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click import Option
from dbt.cli.main import cli

from delta_outbox.cli.dbt_launcher import OPTIONS_WITH_VALUE

pytestmark = pytest.mark.local

LAUNCHER = "from delta_outbox.cli.dbt_launcher import main; exit(main())"

PROJECT = {
    "dbt_project.yml": """
name: stranger
version: "1.0"
profile: stranger
""",
    "profiles.yml": """
stranger:
  target: local
  outputs:
    local: {type: spark, method: session, host: NA, schema: strange, threads: 1}
""",
    "models/good.sql": "{{ config(materialized='table', file_format='delta') }} select 1 as id",
    "models/bad.sql": "select no_such_column from {{ ref('good') }}",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return somebody else's dbt project, with one model that works and one that does not."""
    folder = tmp_path / "project"
    for name, text in PROJECT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def launch(*args: str, cwd: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the launcher as a command."""
    return subprocess.run(
        [sys.executable, "-c", LAUNCHER, *args],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.rest
def test_dbt_runs_in_a_session_of_the_home(project: Path, plain_environment: dict[str, str]):
    """`build` makes the home, the tables lie in it, and dbt's exit code is passed on; nothing of
    Spark appears in the folder or on the terminal.
    """
    built = launch("build", "--select", "good", cwd=project, environment=plain_environment)
    assert 0 == built.returncode, built.stdout + built.stderr
    assert "Completed successfully" in built.stdout
    assert "" == built.stderr
    assert (project / ".outbox/warehouse/strange.db/good/_delta_log").is_dir()
    assert {".outbox", "dbt_project.yml", "logs", "models", "profiles.yml", "target"} == {
        path.name for path in project.iterdir()
    }
    failed = launch("run", cwd=project, environment=plain_environment)
    assert 1 == failed.returncode
    assert "no_such_column" in failed.stdout


def test_no_outbox_is_created_by_other_commands(project: Path, plain_environment: dict[str, str]):
    """Without a home, a command other than `build` says so with exit code 2 and makes none."""
    ended = launch("run", cwd=project, environment=plain_environment)
    assert 2 == ended.returncode
    assert ended.stderr.startswith("NO_OUTBOX_HERE: No outbox here: ")
    assert set(PROJECT) == {
        str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()
    }


def test_commands_that_read_files_need_no_outbox(project: Path, plain_environment: dict[str, str]):
    """`dbt ls` and `dbt --version` work without a home and without Java."""
    environment = {**plain_environment, "PATH": ""}
    listed = launch("--quiet", "ls", cwd=project, environment=environment)
    assert (0, ["stranger.bad", "stranger.good"]) == (
        listed.returncode,
        sorted(listed.stdout.split()),
    )
    assert 0 == launch("--help", cwd=project, environment=environment).returncode
    assert not (project / ".outbox").exists()


@pytest.mark.rest
def test_the_environment_names_the_schema(tmp_path: Path, plain_environment: dict[str, str]):
    """With OUTBOX_SCHEMA dbt works on the outbox that the commands of `outbox` work on."""
    folders = ("--target-path", str(tmp_path), "--log-path", str(tmp_path))
    listed = launch(
        *("--quiet", "ls", *folders, "--output", "json", "--output-keys", "schema"),
        *("--resource-types", "model", "seed", "source"),
        cwd=tmp_path,
        environment={**plain_environment, "OUTBOX_SCHEMA": "of_the_shop"},
    )
    assert 0 == listed.returncode, listed.stdout + listed.stderr
    assert {"of_the_shop"} == {json.loads(line)["schema"] for line in listed.stdout.splitlines()}


def test_missing_java_is_one_sentence(project: Path, plain_environment: dict[str, str]):
    """Without Java `build` ends with exit code 2, one sentence and how to install it."""
    environment = {k: v for k, v in plain_environment.items() if k != "JAVA_HOME"}
    ended = launch("build", cwd=project, environment={**environment, "PATH": ""})
    assert (2, "") == (ended.returncode, ended.stdout)
    message, remedy = ended.stderr.splitlines()
    assert "NO_JAVA: Java 17 or newer is needed. Found: none." == message
    assert "apt-get install openjdk-17-jre-headless" in remedy


def test_options_before_the_command_are_dbts():
    """The options that the launcher steps over are exactly dbt's own that take a value."""
    options = [option for option in cli.params if isinstance(option, Option)]
    with_value = [option for option in options if not option.is_flag and not option.count]
    assert {name for option in with_value for name in option.opts} == OPTIONS_WITH_VALUE

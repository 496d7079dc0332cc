"""The dbt command with a Spark session around it: `.venv/bin/dbt` and `outbox dbt`."""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path

from delta_outbox.cli.serve import suggest_up
from delta_outbox.core.errors import OutboxError
from delta_outbox.delta.durability import sync_folder
from delta_outbox.runtime.dbt import ignore_columns_left_out, ignore_static_setting, project_dir
from delta_outbox.runtime.home import Home, find_home
from delta_outbox.runtime.interrupts import INTERRUPTED, MESSAGE, Interruption, interruptible
from delta_outbox.runtime.served_home import REMOTE_VARIABLE, Served, find_served
from delta_outbox.runtime.session import local_session, stop_session, using_server

# What reads only files; everything else reaches for the warehouse.
WITHOUT_SPARK = frozenset({"clean", "deps", "init", "list", "ls", "parse"})
# dbt's options that may stand before its command and take a value. Importing dbt to ask it takes
# seconds, and whoever finds the home in use is to learn that before.
OPTIONS_WITH_VALUE = frozenset(
    {
        *("--defer-state", "--deprecated-defer", "--deprecated-favor-state", "--deprecated-state"),
        *("--indirect-selection", "--log-file-max-bytes", "--log-format", "--log-format-file"),
        *("--log-level", "--log-level-file", "--log-path", "--partial-parse-file-path"),
        *("--printer-width", "--profile", "--record-timing-info", "-r", "--state"),
        *("--target", "-t", "--warn-error-options"),
    }
)
CREATES_THE_HOME = "build"
_ONLY_WORDS = frozenset({"-h", "--help", "-v", "-V", "--version"})


def needs_spark(args: Sequence[str]) -> bool:
    """Return whether a dbt command line reaches for the warehouse."""
    command = dbt_command(args)
    if command is None or command in WITHOUT_SPARK or _ONLY_WORDS.intersection(args):
        return False
    return not (command == "docs" and "serve" in args)


def dbt_command(args: Sequence[str]) -> str | None:
    """Return which of dbt's commands a command line holds; options may come before it."""
    rest = iter(args)
    for arg in rest:
        if not arg.startswith("-"):
            return arg
        if arg in OPTIONS_WITH_VALUE:
            next(rest, None)
    return None


def run_launcher(args: Sequence[str]) -> int:
    """Run dbt as it is, with the session that it needs, and return its exit code.

    With SPARK_REMOTE, or while `outbox serve` runs for the home, the session is behind that
    address, and nothing is locked or started here.

    Raises:
        OutboxError: the home or the session is not to be had.
    """
    home: Home | None = None
    served: Served | None = None
    if os.environ.get(REMOTE_VARIABLE):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    elif needs_spark(args):
        home = find_home(create=dbt_command(args) == CREATES_THE_HOME)
        served = find_served(home)
        if served is None:
            home.lock.acquire()
    point_at_project(args, home=home, environ=os.environ)
    if home is None:
        return _dbt(args)
    if served is not None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        with using_server(served.url, served=served):
            return _dbt_on_disk(args, home)
    try:
        everything = "--full-refresh" in args
        local_session(
            home, app_name="dbt", short_lived=not everything, small_query_mode=not everything
        )
        suggest_up(sys.stderr)
        return _dbt_on_disk(args, home)
    finally:
        stop_session()
        home.lock.release()


def point_at_project(
    args: Sequence[str], *, home: Home | None, environ: MutableMapping[str, str]
) -> None:
    """Fill in, as dbt's own variables, what the user left open.

    Outside any dbt project ours is meant. Where ours cannot be written (installed), dbt's files
    go into the home.
    """
    environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    named = any(arg.split("=", 1)[0] == "--project-dir" for arg in args)
    if named or "DBT_PROJECT_DIR" in environ or Path("dbt_project.yml").exists():
        return
    project = project_dir()
    environ["DBT_PROJECT_DIR"] = str(project)
    if not Path("profiles.yml").exists():
        environ.setdefault("DBT_PROFILES_DIR", str(project / "profiles"))
    if home is not None and (project.name == "dbt_project" or not os.access(project, os.W_OK)):
        environ.setdefault("DBT_TARGET_PATH", str(home.dbt_target))
        environ.setdefault("DBT_LOG_PATH", str(home.logs))


def _dbt_on_disk(args: Sequence[str], home: Home) -> int:
    """Run dbt; what it derives from is on the disk before, what it wrote afterwards."""
    sync_folder(home.warehouse, what=home.warehouse)
    exit_code = _dbt(args)
    sync_folder(home.warehouse, what=home.warehouse)
    return exit_code


def _dbt(args: Sequence[str]) -> int:
    from dbt.cli.main import cli

    ignore_static_setting()
    ignore_columns_left_out()
    try:
        cli(args=list(args), prog_name="dbt")
    except SystemExit as exit_:
        code = exit_.code
        if isinstance(code, int):
            return code
        return 0 if code is None else 1
    return 0


def main() -> int:
    """Run the dbt command line of this process; errors of ours become one sentence."""
    with interruptible(until_end=True) as interruption:
        try:
            exit_code = _run_main(interruption)
        except KeyboardInterrupt:
            interruption.came = True
        if interruption.came:
            sys.stderr.write("{code}: {message}\n{remedy}\n".format(**MESSAGE))
            return INTERRUPTED
    return exit_code


def _run_main(interruption: Interruption) -> int:
    try:
        return run_launcher(sys.argv[1:])
    except OutboxError as error:
        if not interruption.came:
            sys.stderr.write(f"{error.code}: {error}\n{error.remedy}\n")
        return error.exit_code
    except Exception:
        if not interruption.came:
            raise
        return INTERRUPTED

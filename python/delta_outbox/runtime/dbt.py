"""Runs dbt in this process: finds its project, runs commands, compiles SQL."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delta_outbox.core.disk import sync_path
from delta_outbox.core.errors import BadPolicy, DbtFailed, StoragePrecondition
from delta_outbox.core.version import __version__
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.ownership import write_own

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult
    from dbt_common.events.base_types import EventMsg

logger = logging.getLogger(__name__)

BUILD = ("build", "--exclude-resource-type", "unit_test")
"""What brings an outbox up to date and checks it; unit tests ask our SQL, not an outbox."""

CREATE = (*BUILD, "--exclude", "tag:invariants")
"""What creates an outbox: the first `dbt build` makes the invariants, which have no work yet."""

MIGRATE = ("run-operation", "migrate_logs")
"""What brings the logs of an older release to the present format."""

DEFAULT_SCHEMA = "outbox"
SCHEMA_VARIABLE = "OUTBOX_SCHEMA"
COMPILED_KEPT = 64  # files; one per snippet, variables and release
MESSAGES_SHOWN = 5

_PROJECT_FILE = "dbt_project.yml"
_SOURCE_FOLDERS = ("macros", "models", "seeds", "profiles")
_SOURCE_SUFFIXES = frozenset({".sql", ".yml", ".yaml", ".csv", ".md"})
_NAME = re.compile(r"[A-Za-z_]\w*")

# dbt keeps its flags in globals: one run at a time in a process.
_one_at_a_time = threading.RLock()


def project_dir() -> Path:
    """Return the dbt project: in the package if installed, else at the root of the repository."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "dbt_project", package.parents[1]):
        if (folder / _PROJECT_FILE).is_file():
            return folder
    raise DbtFailed(
        f"The dbt project is missing next to {package}.",
        remedy="Install delta-outbox again.",
    )


def default_schema(environ: Mapping[str, str] | None = None) -> str:
    """Return the schema of the outbox: OUTBOX_SCHEMA, else `outbox`."""
    variables = os.environ if environ is None else environ
    return variables.get(SCHEMA_VARIABLE, "").strip() or DEFAULT_SCHEMA


def run_dbt(
    args: Sequence[str],
    *,
    home: Home,
    schema: str | None = None,
    variables: Mapping[str, object] | None = None,
    quiet: bool = True,
) -> dbtRunnerResult:
    """Run a dbt command in this process, on the session that it already has.

    dbt's files go into the home, never into the project: an installed one cannot be written, and
    a developer's own `target` is left alone.

    Args:
        args: the command and its arguments, such as `["build", "--select", "outbox_state"]`.
        home: takes dbt's target folder and its log.
        schema: the schema of the outbox (default: `default_schema()`).
        variables: dbt variables.
        quiet: print nothing; dbt.log in the home has it all.

    Returns:
        dbt's result; `check_result` turns a failed one into an error.
    """
    from dbt.cli.main import dbtRunner

    chosen = schema or default_schema()
    project = project_dir()
    command = [
        *args,
        *("--project-dir", str(project)),
        *("--profiles-dir", str(project / "profiles")),
        # A folder per schema: dbt parses everything anew when its variables change.
        *("--target-path", str(home.dbt_target / chosen)),
        *("--log-path", str(home.logs)),
        *("--vars", json.dumps({"outbox_schema": chosen, **(variables or {})})),
        "--no-send-anonymous-usage-stats",
        *(("--log-level", "none", "--log-level-file", "info", "--no-print") if quiet else ()),
    ]
    complaints: list[str] = []

    def listen(event: EventMsg) -> None:
        info: Any = event.info
        if info.level == "error":
            complaints.append(_brief(info.msg))

    with _one_at_a_time, _schema_variable(chosen), warnings.catch_warnings():
        ignore_static_setting()
        ignore_columns_left_out()
        result = dbtRunner(callbacks=[listen]).invoke(command)
    if not result.success and result.exception is None and args[0] == "run-operation":
        # The result of a failed operation holds no reason; dbt has only logged it.
        result.exception = RuntimeError("; ".join(complaints) or "the operation failed")
    logger.debug("dbt", extra={"command": args[0], "success": result.success})
    return result


def ignore_static_setting() -> None:
    """Leave out a warning that says nothing: dbt-spark asks every session for Hive support.

    Through Spark Connect that is a static setting of the server, and the client warns each time.
    """
    message = "Failed to set spark.sql.catalogImplementation"
    warnings.filterwarnings("ignore", message, UserWarning)


def ignore_columns_left_out() -> None:
    """Leave out a warning about columns that the policy seed leaves out: the default is meant."""
    message = ".* does not match the name of any column in this table"
    warnings.filterwarnings("ignore", message, RuntimeWarning)


@contextlib.contextmanager
def _schema_variable(schema: str) -> Iterator[None]:
    """Set OUTBOX_SCHEMA, which the profile reads, for the time of a run."""
    before = os.environ.get(SCHEMA_VARIABLE)
    os.environ[SCHEMA_VARIABLE] = schema
    try:
        yield
    finally:
        if before is None:
            del os.environ[SCHEMA_VARIABLE]
        else:
            os.environ[SCHEMA_VARIABLE] = before


def check_result(result: dbtRunnerResult) -> None:
    """Raise what went wrong in a dbt run, in dbt's own words.

    Raises:
        BadPolicy: the policy seed was refused.
        StoragePrecondition: the logs lie where two drivers can both win a commit.
        DbtFailed: the run failed.
    """
    if result.success:
        return
    if result.exception is not None:
        _check_precondition(result.exception)
        raise DbtFailed(f"dbt: {_brief(result.exception)}") from result.exception
    nodes: Any = getattr(result.result, "results", ())
    failed = [node for node in nodes if str(node.status) in ("error", "fail", "runtime error")]
    for node in failed:
        _check_precondition(node.message)
        # The check of the policy seed (macros/policies/check_policies.sql).
        _, mark, problems = str(node.message).partition("BAD_POLICY: ")
        if mark:
            raise BadPolicy(re.findall(r"^\s*- (.+)$", problems, re.MULTILINE))
    shown = [f"{node.node.name}: {_brief(node.message)}" for node in failed[:MESSAGES_SHOWN]]
    if len(failed) > len(shown):
        shown.append(f"and {len(failed) - len(shown)} more")
    raise DbtFailed("dbt: " + ("; ".join(shown) or "it gave no reason"))


def _check_precondition(message: object) -> None:
    """Raise what macros/storage/check_storage.sql says."""
    _, mark, problem = " ".join(str(message).split()).partition("STORAGE_PRECONDITION: ")
    if mark:
        raise StoragePrecondition(problem)


def _brief(message: object) -> str:
    return " ".join(str(message).split())[:1000]


def compile_sql(
    name_or_inline: str,
    *,
    home: Home,
    schema: str | None = None,
    variables: Mapping[str, object] | None = None,
) -> str:
    """Compile a model, or a snippet of SQL and Jinja, and return the SQL.

    The result is kept in the home, under a key that changes with the project, the variables, the
    schema and the release: parsing the project costs seconds, reading a file nothing.

    Args:
        name_or_inline: the name of a model, or the snippet.
        home: keeps the result.
        schema: the schema of the outbox (default: `default_schema()`).
        variables: dbt variables.

    Raises:
        DbtFailed: it does not compile.
    """
    chosen = schema or default_schema()
    key = _key(name_or_inline, chosen, variables or {})
    kept = home.compiled / f"{key}.sql"
    with contextlib.suppress(OSError):
        sql = kept.read_text(encoding="utf-8")
        kept.touch()  # used again: the last to be removed
        return sql
    is_name = _NAME.fullmatch(name_or_inline) is not None
    result = run_dbt(
        [
            "compile",
            *(("--select", name_or_inline) if is_name else ("--inline", name_or_inline)),
            # The text depends on no table; looking at all of them would cost a second.
            "--no-populate-cache",
        ],
        home=home,
        schema=chosen,
        variables=variables,
    )
    check_result(result)
    nodes: Any = getattr(result.result, "results", ())
    if not nodes:
        raise DbtFailed(f"dbt: nothing to compile. Got: {name_or_inline!r}.")
    sql = str(nodes[0].node.compiled_code).strip()
    _keep(kept, sql)
    return sql


def _key(text: str, schema: str, variables: Mapping[str, object]) -> str:
    from importlib.metadata import version

    request = {
        "text": text,
        "schema": schema,
        "variables": variables,
        "release": __version__,
        "dbt": version("dbt-core"),  # to import dbt takes half a second
    }
    digest = hashlib.sha256(json.dumps(request, sort_keys=True, default=str).encode())
    project = project_dir()
    sources = [project / _PROJECT_FILE]
    for folder in _SOURCE_FOLDERS:
        found = (project / folder).rglob("*")
        sources.extend(path for path in found if path.suffix in _SOURCE_SUFFIXES)
    for path in sorted(sources):
        content = path.read_bytes()
        digest.update(f"\0{path.relative_to(project)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:32]


def _keep(path: Path, sql: str) -> None:
    """Write a compiled text, whole or not at all, and remove the ones that are long unused."""
    draft = path.with_suffix(f".{os.getpid()}")
    write_own(draft, sql)
    sync_path(draft)  # else a power cut may leave the name, and nothing in it
    draft.replace(path)
    kept = sorted(path.parent.glob("*.sql"), key=lambda one: one.stat().st_mtime)
    for old in kept[:-COMPILED_KEPT]:
        old.unlink(missing_ok=True)

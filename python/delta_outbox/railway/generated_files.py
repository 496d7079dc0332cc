"""The files that follow from workflows: a page for each, and in a dbt project the rows of all."""

from __future__ import annotations

import csv
import importlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from delta_outbox.core.errors import BadSettings
from delta_outbox.railway.graph import Graph
from delta_outbox.railway.modules import PROJECT_FILE
from delta_outbox.railway.names import is_plain, title
from delta_outbox.railway.pages import HEAD, page
from delta_outbox.railway.rows import COLUMNS, Row, Rows, from_csv, joined, rows_of, to_csv
from delta_outbox.railway.tasks import State

PAGES: Final = Path("docs") / "workflows"
MODEL: Final = "railway_in_force"
INSTANCES: Final = "instances_of_"
MARK: Final = "Written by `outbox workflow build`"
_WRITTEN: Final = f"{MARK}: change the classes, not this file."

_MODEL_SQL: Final = f"""\
-- {_WRITTEN}
-- The workflows whose rows have passed every check together: those in force.
{{{{ config(materialized="outbox_workflows") }}}}
{{{{ delta_outbox.workflows_in_force() }}}}
"""

_INSTANCES_SQL: Final = f"""\
-- {_WRITTEN}
-- The instances of %(workflow)s, a row each, with what each task decided.
{{{{ config(materialized="view") }}}}
{{{{ delta_outbox.instances_by_task("%(workflow)s", {{
%(tasks)s
}}) }}}}
"""

_INSTANCE_COLUMNS: Final = {
    "instance": "Its business key.",
    "version": "The version of the workflow that it follows.",
    "state": "Where it stands: running, waiting_for_time, waiting_for_person, stranded or ended.",
    "task": "The task that is open; null if none is.",
    "started_at": "When it was started.",
    "ended_at": "When it ended; null if it has not.",
    "exit": "The type of the event that ended it; null if none has.",
    "problem": "Why nobody can say how it goes on; null if it was never stranded.",
    "instance_key": "Tells it from the instances of all workflows.",
}


def files_of(
    workflows: Sequence[Graph[Any]], folder: Path, *, whole: bool
) -> dict[Path, str | None]:
    """Return what follows from workflows: by file its text, None if it is to go.

    Rows are written into a dbt project only. Rows of a workflow that has no hash were written by
    hand: they stay as they are.

    Args:
        workflows: that keep every rule, by name.
        folder: of the project.
        whole: whether these are all workflows of the project; rows and exposures are of all.

    Raises:
        BadSettings: something that was written by hand would be lost.
    """
    files: dict[Path, str | None] = {
        folder / PAGES / f"{one.name}.md": page(one) for one in workflows
    }
    if not whole:
        return files
    for file in sorted((folder / PAGES).glob("*.md")):
        if file not in files and file.read_text(encoding="utf-8").startswith(HEAD):
            files[file] = None
    if not (folder / PROJECT_FILE).is_file():
        return files
    seeds, models = _folders(folder)
    rows = joined([*map(rows_of, workflows), _by_hand(seeds, {one.name for one in workflows})])
    files |= {seeds / f"{seed}.csv": to_csv(seed, rows[seed]) for seed in COLUMNS}
    files[seeds / "railway.yml"] = "".join(f"{line}\n" for line in _seeds())
    files[models / f"{MODEL}.sql"] = _MODEL_SQL
    tasks = _tasks_by_workflow(rows)
    files |= {
        models / f"{INSTANCES}{name}.sql": _instances(name, its) for name, its in tasks.items()
    }
    for file in sorted(models.glob(f"{INSTANCES}*.sql")):
        if file not in files and is_ours(file):
            files[file] = None
    files[models / f"{MODEL}.yml"] = "".join(f"{line}\n" for line in _described(workflows, tasks))
    return files


def stale(files: Mapping[Path, str | None]) -> list[Path]:
    """Return the files that are not as they should be.

    Args:
        files: by file its text, None if it is to go.
    """
    return [file for file, text in files.items() if _text_of(file) != text]


def stale_rows(file: Path, text: str | None) -> list[str]:
    """Return whose rows of a seed are stale: workflows, or tasks with their workflow.

    Args:
        file: of any kind; what is no seed has no rows.
        text: that it should have.
    """
    if file.suffix != ".csv":
        return []
    there, wanted = from_csv(_text_of(file) or ""), from_csv(text or "")
    changed = [row for row in there if row not in wanted]
    changed += [row for row in wanted if row not in there]
    named = (".".join(row[key] for key in ("workflow", "task") if row.get(key)) for row in changed)
    return sorted(set(named))


def removed_rows(files: Mapping[Path, str | None]) -> dict[str, int]:
    """Return how many rows go of workflows that are no longer there, by workflow.

    Args:
        files: by file its text, None if it is to go.
    """
    there: Counter[str] = Counter()
    stay: set[str] = set()
    for file, text in files.items():
        if file.suffix == ".csv":
            there.update(row.get("workflow", "") for row in from_csv(_text_of(file) or ""))
            stay |= {row["workflow"] for row in from_csv(text or "")}
    return {name: rows for name, rows in sorted(there.items()) if name not in stay}


def same_versions(files: Mapping[Path, str | None]) -> list[str]:
    """Return a sentence for each workflow whose routes have changed, and its version has not.

    Args:
        files: by file its text, None if it is to go.
    """
    seeds = {file.stem: file for file in files if file.suffix == ".csv"}
    if not seeds:
        return []

    def rows(seed: str, *, wanted: bool) -> list[Row]:
        return from_csv((files[seeds[seed]] if wanted else _text_of(seeds[seed])) or "")

    def routes(*, wanted: bool) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in rows("railway_routes", wanted=wanted):
            found.setdefault(row.get("workflow", ""), []).append(row)
        return found

    there = {
        row["workflow"]: row for row in rows("railway_workflows", wanted=False) if "workflow" in row
    }
    before, after = (routes(wanted=wanted) for wanted in (False, True))
    found = []
    for row in rows("railway_workflows", wanted=True):
        name, version = row["workflow"], row["version"]
        if there.get(name, {}).get("version") != version:
            continue
        if name in before and before[name] != after.get(name):
            found.append(
                f"{name}: its routes have changed, and its version is {version} as before. Raise "
                "`version`: an instance follows the routes of the version that it started with."
            )
    return found


def write(files: Mapping[Path, str | None]) -> list[Path]:
    """Write the files that are not as they should be, and return them.

    Args:
        files: by file its text, None if it is to go.

    Raises:
        BadSettings: a file of that name is somebody else's; nothing was written.
    """
    changed = stale(files)
    for file in changed:
        if file.exists() and not is_ours(file):
            raise BadSettings(
                f"{file} was not written by `outbox workflow build`.",
                remedy="Rename it; nothing was written.",
            )
    for file in changed:
        text = files[file]
        if text is None:
            file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="")
    return changed


def is_ours(file: Path) -> bool:
    """Say whether a file is there and was written from workflows, or by hand as their rows.

    Args:
        file: one of those of `files_of`.
    """
    text = _text_of(file) or ""
    if file.suffix == ".csv":
        return "workflow" in text.partition("\n")[0].strip().split(",")
    return MARK in text


def _text_of(file: Path) -> str | None:
    try:
        return file.read_bytes().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return None


def _folders(folder: Path) -> tuple[Path, Path]:
    """Return where a dbt project has its seeds and its models: the first folder of each."""
    yaml: Any = importlib.import_module("yaml")  # dbt brings it
    file = folder / PROJECT_FILE
    try:
        project = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        raise BadSettings(
            f"{file}: not valid YAML.", remedy="`outbox dbt parse` says where."
        ) from None
    given = project if isinstance(project, Mapping) else {}
    seeds, models = (given.get(f"{kind}-paths") or [f"{kind}s"] for kind in ("seed", "model"))
    return folder / seeds[0], folder / models[0]


def _by_hand(seeds: Path, named: set[str]) -> Rows:
    """Return the rows that `build` has not written: of no class, and of no workflow with a hash.

    Raises:
        BadSettings: something of them would be lost.
    """
    there = {seed: list(_rows_there(seeds / f"{seed}.csv", named)) for seed in COLUMNS}
    written = {row["workflow"] for row in there["railway_workflows"] if row["hash"]}
    unhashed = {row["workflow"] for row in there["railway_workflows"] if not row["hash"]}
    for name in sorted(unhashed & named):
        raise BadSettings(
            f"{seeds / 'railway_workflows.csv'}: {name} has no hash, so its rows were written by "
            "hand; a class has this name too.",
            remedy=(
                "To keep the rows, take its module out of `[workflows] modules`; to have those of "
                "the class, remove them. Nothing was written."
            ),
        )
    return {
        seed: [row for row in found if row["workflow"] not in written | named]
        for seed, found in there.items()
    }


def _rows_there(file: Path, named: set[str]) -> Iterator[Row]:
    """Yield the rows of a seed; refuse those by hand that have cells which nobody reads."""
    columns = COLUMNS[file.stem]
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except UnicodeDecodeError:
        raise BadSettings(f"{file}: the file must be UTF-8. Nothing was written.") from None
    reader = csv.DictReader(io.StringIO(text), restkey="")
    if "workflow" not in (reader.fieldnames or ()):
        return  # somebody else's: `write` says so
    for row in reader:
        made = {name: row.get(name) or "" for name in columns}
        strange = [name for name, cell in row.items() if cell and name not in columns]
        if strange and made["workflow"] not in named and not made.get("hash"):
            where = strange[0] or "no name, behind the last one"
            raise BadSettings(
                f"{file}: a row of {made['workflow']} has a cell in the column '{where}', "
                "which nobody reads.",
                remedy=f"The columns are {', '.join(columns)}. Nothing was written.",
            )
        yield made


def _seeds() -> Iterator[str]:
    yield f"# {_WRITTEN}"
    yield "version: 2"
    yield ""
    yield "seeds:"
    for seed, columns in COLUMNS.items():
        yield f"  - name: {seed}"
        yield f"    description: {_quoted(_DESCRIPTIONS[seed])}"
        yield "    config:"
        yield "      file_format: delta"
        yield "      column_types:"
        yield from (f"        {name}: string" for name in columns)
        yield "    columns:"
        for name, says in columns.items():
            yield f"      - name: {name}"
            yield f"        description: {_quoted(says)}"


_DESCRIPTIONS: Final = {
    "railway_workflows": "Workflows of third-party calls, one row each.",
    "railway_tasks": "Their tasks, one row each.",
    "railway_routes": "What can become of a task, one row each, and where it leads.",
    "railway_contracts": "What an answer to a To-Do must look like.",
}


def _tasks_by_workflow(rows: Rows) -> dict[str, list[Row]]:
    """Return the tasks of each workflow; dbt complains of names that are none."""
    found: dict[str, list[Row]] = {}
    for row in rows["railway_tasks"]:
        if is_plain(row["workflow"]) and is_plain(row["task"]):
            found.setdefault(row["workflow"], []).append(row)
    return found


def _column(task: str) -> str:
    return f"{task}_outcome" if task in _INSTANCE_COLUMNS else task


def _instances(workflow: str, tasks: Sequence[Row]) -> str:
    """Return the model with a row per instance of a workflow."""
    lines = (f'    "{one["task"]}": "{_column(one["task"])}"' for one in tasks)
    return _INSTANCES_SQL % {"workflow": workflow, "tasks": ",\n".join(lines)}


def _described(
    workflows: Sequence[Graph[Any]], tasks: Mapping[str, Sequence[Row]]
) -> Iterator[str]:
    yield f"# {_WRITTEN}"
    yield "version: 2"
    yield ""
    yield "models:"
    yield f"  - name: {MODEL}"
    yield "    description: The workflows whose rows have passed every check together."
    for name, its in tasks.items():
        yield f"  - name: {INSTANCES}{name}"
        yield f"    description: The instances of {name}, a row each, with what each task decided."
        yield "    columns:"
        columns = dict(_INSTANCE_COLUMNS)
        for task in its:
            named = task["title"] or title(task["task"])
            columns[_column(task["task"])] = f"What was decided last by '{named}'."
        for column, says in columns.items():
            yield f"      - name: {column}"
            yield f"        description: {_quoted(says)}"
    if workflows:
        yield ""
        yield "exposures:"
    for one in workflows:
        calls = sorted({task.third_party for task in one.tasks if issubclass(task, State)})
        called = f" Calls {', '.join(calls)}." if calls else ""
        says = (
            f"Starts with {one.starts_on}, ends with {' or '.join(one.ends)}.{called} "
            f"{len(one.tasks)} tasks: see {(PAGES / one.name).as_posix()}.md."
        )
        yield f"  - name: workflow_{one.name}"
        yield f"    label: {_quoted(one.title or title(one.name))}"
        yield "    type: application"
        yield f"    description: {_quoted(says)}"
        yield "    owner:"
        yield "      name: Workflows"
        yield "    depends_on:"
        yield f"      - ref('{MODEL}')"


def _quoted(text: str) -> str:
    """Return a text for YAML that dbt reads, which takes `{{`, `{%` and `{#` for Jinja."""
    return json.dumps(re.sub(r"\{(?=[{%#])", "{{ '{' }}", text), ensure_ascii=False)

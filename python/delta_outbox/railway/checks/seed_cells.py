"""Rules of what a workflow writes into seeds: dbt reads every cell as it was written."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from delta_outbox.railway.checks.shared_checks import AnyWorkflow
from delta_outbox.railway.problems import Problem
from delta_outbox.railway.rows import rows_of


def cells(workflow: AnyWorkflow) -> Iterator[Problem]:
    """Every cell of the rows of a workflow comes back from a seed as it was."""
    told: set[tuple[str | None, str]] = set()
    for rows in rows_of(workflow).values():
        for row in rows:
            for column, cell in row.items():
                lost = not_read(cell)
                whose = None if column == "workflow" else row.get("task")
                # A task's name stands in the routes that lead to it too.
                if lost is None or column == "to_task" or (whose, column) in told:
                    continue
                told.add((whose, column))
                yield Problem(
                    workflow=workflow.name,
                    task=whose,
                    rule="cell_not_kept",
                    says=f"its `{column}` {lost}.",
                    remedy="Write something else: rows of workflows are kept in seeds of dbt.",
                )


def not_read(cell: str) -> str | None:
    """Return why dbt would not read the cell of a seed as it was written, None if it would.

    So does dbt's reader of seeds (`agate_helper.from_csv`) with columns whose type is named.

    Args:
        cell: as it is written.
    """
    if cell and cell.strip().lower() in {"", "null"}:
        return f"is {cell!r}, which dbt reads as an empty cell"
    if "\r" in cell:
        return "has a carriage return, which dbt reads as the end of a line"
    if len(cell) > csv.field_size_limit():
        return f"has {len(cell)} characters, and dbt reads {csv.field_size_limit()} of a cell"
    return None

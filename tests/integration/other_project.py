"""dbt in a project of somebody else that has ours as a package, in this process's session."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from delta_outbox.runtime.dbt import ignore_static_setting

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult
    from dbt_common.events.base_types import EventMsg


def run_in(
    project: Path,
    words: Sequence[str],
    *,
    variables: Mapping[str, str],
    listeners: Sequence[Callable[[EventMsg], None]] = (),
) -> dbtRunnerResult:
    """Run a dbt command, which prints nothing.

    Args:
        project: its folder, with the profiles.
        words: the command and its arguments.
        variables: of dbt.
        listeners: hear of each event.
    """
    from dbt.cli.main import dbtRunner

    folders = ("--project-dir", str(project), "--profiles-dir", str(project))
    quiet = ("--no-send-anonymous-usage-stats", "--log-level", "none", "--no-print")
    given = ("--vars", json.dumps(variables), "--log-path", str(project / "logs"))
    with warnings.catch_warnings():
        ignore_static_setting()
        return dbtRunner(callbacks=list(listeners)).invoke([*words, *folders, *given, *quiet])

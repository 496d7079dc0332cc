"""Logs as Delta writes them, for tests that need no Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from delta_outbox.runtime.log_folder import commit_file


def commit(folder: Path, version: int, *actions: dict[str, Any]) -> None:
    """Write a commit, a line for each action."""
    lines = [{"commitInfo": {"operation": "WRITE"}}, *actions]
    commit_file(folder, version).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

"""The results of a run: a JSON document per case."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parent / "results"


class BenchmarkFailed(Exception):
    """What was measured did not do its work, so the figure means nothing: the message says why."""


def save(
    folder: Path,
    case: str,
    *,
    size: float,
    measured: Mapping[str, Any],
    machine: Mapping[str, object],
    versions: Mapping[str, str],
) -> Path:
    """Write the document of a case, in place of an older one, and return its file.

    Args:
        folder: of the results.
        case: its name.
        size: the size factor.
        measured: what the case found.
        machine: what it ran on.
        versions: of what took part.
    """
    document = {
        "case": case,
        "size": size,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": dict(machine),
        "versions": dict(versions),
        **measured,
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{case}.json"
    file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return file


def load(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the documents of a folder by case.

    Args:
        folder: of the results.
    """
    documents = (json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.json"))
    return {document["case"]: document for document in documents}

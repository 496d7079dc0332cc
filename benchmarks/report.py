"""docs/performance.md: the text of benchmarks/performance.md, with the tables of the results in it.

Usage: python -m benchmarks.report [--results FOLDER] [--docs FOLDER]

The text is written by hand; a line `<!-- table: NAME -->` stands where the table of a case goes. A
section whose case was not measured is left out, and named at the end.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.machine import sentence
from benchmarks.results import FOLDER, load
from benchmarks.tables import TABLES

TEXT: Final = Path(__file__).with_name("performance.md")
DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
_PLACE: Final = re.compile(r"^<!-- table: (\w+) -->$", re.MULTILINE)
_SECTION: Final = re.compile(r"^(?=## )", re.MULTILINE)
_MARK: Final = "<!-- Written by `make bench-report` from benchmarks/performance.md. -->\n"


class UnknownTable(Exception):
    """The text has a place for a table that no case makes."""


def page(text: str, documents: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page: each place of the text is filled with its table; a section without one goes.

    Args:
        text: written by hand.
        documents: of the cases, by name.

    Raises:
        UnknownTable: no case makes a table of a name that the text has.
    """

    def table(place: re.Match[str]) -> str:
        document = documents[place[1]]
        return f"{TABLES[place[1]](document)}\n\n{measured_on(document)}"

    names = _PLACE.findall(text)
    for name in names:
        if name not in TABLES:
            raise UnknownTable(f"{name!r} is none of {', '.join(TABLES)}.")
    missing = [name for name in names if name not in documents]
    kept = (
        section
        for section in _SECTION.split(text)
        if not set(_PLACE.findall(section)) & set(missing)
    )
    shown = _MARK + _PLACE.sub(table, "".join(kept).rstrip("\n") + "\n")
    if missing:
        cases = ", ".join(f"`{name}`" for name in missing)
        shown += f"\nNot measured yet (`python -m benchmarks.run NAME`): {cases}.\n"
    return shown


def measured_on(document: Mapping[str, Any]) -> str:
    """Return a line about the run of a case.

    Args:
        document: of the case.
    """
    versions = document["versions"]
    names = ("python", "java", "pyspark", "kafka", "postgresql")
    shown = ", ".join(f"{name} {versions[name]}" for name in names if name in versions)
    size = "" if document["size"] == 1 else f" At {document['size']:g} of the full size."
    return (
        f"<sub>{document['date']}, commit {versions['commit']}, "
        f"{sentence(document['machine'])}; {shown}.{size}</sub>"
    )


def write(results: Path, docs: Path) -> None:
    """Write the page, and the plot if there is something to plot.

    Args:
        results: folder of the JSON documents.
        docs: folder of the page.
    """
    documents = load(results)
    text = page(TEXT.read_text(encoding="utf-8"), documents)
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "performance.md").write_text(text, encoding="utf-8")
    if "drain" in documents:
        from benchmarks.plot import plot  # only who measures has matplotlib

        plot(documents["drain"], docs / "performance.png")


def main() -> None:
    """Write what the arguments ask for."""
    parser = argparse.ArgumentParser(description="Write docs/performance.md from the results.")
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--docs", type=Path, default=DOCS)
    given = parser.parse_args()
    write(given.results, given.docs)
    print(f"benchmarks: {given.docs / 'performance.md'}")


if __name__ == "__main__":
    main()

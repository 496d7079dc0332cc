"""Run the kit: `python -m delta_outbox.testing.conformance --store package.module:Factory`."""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from delta_outbox.core.errors import WrongUsage
from delta_outbox.testing.conformance.adapter import EVENT, SHORT_LIVED, Capability, Stores
from delta_outbox.testing.conformance.report import (
    complaints,
    results_document,
    rules_document,
    summary,
    table,
)
from delta_outbox.testing.conformance.run import Result, run
from delta_outbox.testing.conformance.wrong import WRONG, catchers

REFERENCE: Final = "delta_outbox.testing.conformance.memory:MemoryStores"
_WIDTH: Final = 160  # columns, where the output is no terminal


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every check on every store, print the table; 0 if nothing failed.

    Args:
        arguments: of the command line.
    """
    parser = argparse.ArgumentParser(
        prog="python -m delta_outbox.testing.conformance",
        description="Check stores against the rules of the Open Outbox specification.",
    )
    parser.add_argument(
        "--store",
        action="append",
        metavar="PACKAGE.MODULE:FACTORY",
        help=f"what to check, may be repeated; default {REFERENCE}",
    )
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="write the documents there")
    given = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
    try:
        factories = [find_factory(name) for name in given.store or [REFERENCE]]
    except WrongUsage as error:
        console.print(str(error), markup=False)
        return 2
    results: dict[str, dict[str, Result]] = {}
    for factory in factories:
        stores = factory()
        try:
            results[stores.name] = dict(run(stores))
        finally:
            stores.close()
    console.print(table(results), markup=False)
    for line in (*complaints(results), *summary(results)):
        console.print(line, markup=False)
    if given.docs:
        write_rules(given.docs / "conformance.md")
        logging.disable(logging.WARNING)  # what crashes a wrong store is not news
        text = results_document(results, catchers())
        logging.disable(logging.NOTSET)
        (given.docs / "conformance-results.md").write_text(text, encoding="utf-8")
    return 1 if complaints(results) else 0


def document() -> str:
    """Return docs/conformance.md as the code has it."""
    return rules_document(
        wrong=len(WRONG),
        capabilities=", ".join(Capability),
        event=EVENT,
        short=SHORT_LIVED,
    )


def write_rules(file: Path) -> None:
    """Write docs/conformance.md.

    Args:
        file: where.
    """
    file.write_text(document(), encoding="utf-8")


def find_factory(name: str) -> Callable[[], Stores]:
    """Import what `--store` names.

    Args:
        name: `package.module:Factory`.

    Raises:
        WrongUsage: there is no such thing.
    """
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise WrongUsage(
            f"--store must be package.module:Factory. Got: {name!r:.80} ({error})."
        ) from error
    assert callable(found)
    factory: Callable[[], Stores] = found
    return factory


if __name__ == "__main__":
    sys.exit(main())

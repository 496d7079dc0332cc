"""Run the kit: `python -m delta_outbox.testing.publishers package.module:Adapter`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Console

from delta_outbox.core.errors import WrongUsage
from delta_outbox.testing.publishers.adapter import Adapter
from delta_outbox.testing.publishers.run import Verdict, check

_WIDTH: Final = 160  # columns, where the output is no terminal


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every check on a publisher and print what came of it; 0 if nothing failed.

    Args:
        arguments: of the command line.
    """
    parser = argparse.ArgumentParser(
        prog="python -m delta_outbox.testing.publishers",
        description="Check a publisher against what every publisher must keep.",
    )
    parser.add_argument("adapter", metavar="PACKAGE.MODULE:ADAPTER", help="made without arguments")
    given = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
    try:
        factory = find_adapter(given.adapter)
    except WrongUsage as error:
        console.print(str(error), markup=False)
        return 2
    adapter = factory()
    try:
        findings = check(adapter)
    finally:
        adapter.close()
    for finding in findings:
        console.print(str(finding), markup=False)
    counts = Counter(finding.verdict for finding in findings)
    message = ", ".join(f"{counts[one]} {one}" for one in Verdict if counts[one])
    console.print(f"{adapter.publisher.__qualname__}: {message}", markup=False)
    return 0 if all(finding.good for finding in findings) else 1


def find_adapter(name: str) -> Callable[[], Adapter]:
    """Import what the command line names.

    Args:
        name: `package.module:Adapter`.

    Raises:
        WrongUsage: there is no such thing.
    """
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise WrongUsage(
            f"the adapter must be package.module:Adapter. Got: {name!r:.80} ({error})."
        ) from error
    factory: Callable[[], Adapter] = found
    return factory


if __name__ == "__main__":
    sys.exit(main())

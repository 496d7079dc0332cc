"""Explore the algorithms, and write the page and the mutants that follow from it.

Usage: python -m scripts.exploration.run [--docs docs/railway] [--mutants tests/mutants]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.exploration.conditions import CONDITIONS
from scripts.exploration.page import PAGE, page


def main(argv: Sequence[str] | None = None) -> int:
    """Explore, and write what was asked for.

    Args:
        argv: the arguments; those of this process if left out.
    """
    parser = argparse.ArgumentParser(description="Explore the algorithms of the workflows.")
    parser.add_argument("--docs", type=Path, help=f"write {PAGE} there")
    parser.add_argument("--mutants", type=Path, help="write the patches there")
    given = parser.parse_args(argv)
    if given.mutants:
        for one in CONDITIONS:
            if one.without is None:
                patch = given.mutants / f"railway-{one.name}.patch"
                patch.write_text(one.patch(), encoding="utf-8")
    if given.docs:
        (given.docs / PAGE).write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

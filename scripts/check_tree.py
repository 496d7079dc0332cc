"""Check the tree for what no other linter sees.

No file may name a place on somebody's machine, and every line of constraints.txt pins one version
from whatever package index its reader uses.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The start of an absolute path, not a part of a longer path, an address or a variable.
MACHINE_PATH = re.compile(
    r"(?<![\w.~/:}$*)\-])/(?:home|Users|root|work|workspace|tmp|private|mnt)/[\w.$-]"
)
PIN = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+")


def tracked_files() -> list[Path]:
    """List the files that are committed or would be."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def machine_paths(file: Path) -> list[str]:
    """List the lines of a file that name a place on a machine."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []  # not text
    return [
        f"{file.relative_to(ROOT)}:{number}: names a place on a machine: {line.strip()[:120]}"
        for number, line in enumerate(text.splitlines(), start=1)
        if MACHINE_PATH.search(line)
    ]


def loose_pins(file: Path) -> list[str]:
    """List the lines of a constraints file that are no plain pin."""
    return [
        f"{file.relative_to(ROOT)}:{number}: must be name==version. Got: {line!r}"
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if line and not line.startswith("#") and not PIN.fullmatch(line)
    ]


def main() -> int:
    """Print every finding."""
    findings = [finding for file in tracked_files() for finding in machine_paths(file)]
    findings += loose_pins(ROOT / "constraints.txt")
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

"""Check the tree for what no other linter sees.

No file may name a place on somebody's machine, every line of constraints.txt pins one version from
whatever package index its reader uses, and what a document links to in this tree is there.
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
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
RENDERED = {"benchmarks/performance.md": "docs"}  # a text whose links are those of its page: there
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


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives the headings of a document."""
    found: list[str] = []
    for heading in HEADING.findall(FENCE.sub("", text)):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        anchor = re.sub(r"[^\w -]", "", shown).replace(" ", "-")
        again = found.count(anchor)
        found += [anchor, f"{anchor}-{again}"] if again else [anchor]
    return set(found)


def broken_links(file: Path, root: Path = ROOT) -> list[str]:
    """List the links of a document to files of this tree, or to headings, that are not there."""
    text = file.read_text(encoding="utf-8")
    name = file.relative_to(root).as_posix()
    folder = root / RENDERED[name] if name in RENDERED else file.parent
    broken = []
    for link in LINK.findall(FENCE.sub("", text)):
        path, _, anchor = link.partition("#")
        target = folder / path if path else file
        if ":" in path:
            continue  # an address elsewhere
        is_there = target.exists()
        if is_there and anchor and target.suffix == ".md":
            is_there = anchor in anchors(target.read_text(encoding="utf-8"))
        if not is_there:
            broken.append(f"{name}: links to what is not there: {link}")
    return broken


def main() -> int:
    """Print every finding."""
    files = tracked_files()
    findings = [finding for file in files for finding in machine_paths(file)]
    findings += [
        finding for file in files if file.suffix == ".md" for finding in broken_links(file)
    ]
    findings += loose_pins(ROOT / "constraints.txt")
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

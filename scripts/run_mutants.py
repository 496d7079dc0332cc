"""Put deliberate faults into a copy of the code, one at a time, and demand that a check sees each.

Usage: run_mutants.py [--no-spark] [--docs docs] [name ...]      (default: every mutant)

A mutant is a patch in tests/mutants that names the promise it breaks and the tests that must
notice. First those tests run on the copy as it is, and must pass. A patch that no longer applies
fails the run; so does a mutant that nothing notices, and one that is only noticed because something
crashed or took too long: a test must have said what is wrong.

`--docs` writes the table; the lines of mutants that were not tried this time stay as they were.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.tiers.suites import suite_of

ROOT = Path(__file__).resolve().parent.parent
MUTANTS = ROOT / "tests" / "mutants"
NO_SPARK = ("tests/unit/", "tests/railway/")
LIMIT = 900  # seconds for the tests of one mutant
# How a failed assertion of a test begins in pytest's report, as opposed to an error of the code
# itself; an `assert` of the code has no message.
SAID = ("AssertionError: ", "assert ", "Failed: DID NOT RAISE")
PAGE = "mutants.md"
HEAD = """\
<!-- Written by `make mutants`. -->
# Mutants

Each line is a deliberate fault, a patch in `tests/mutants`, and the first test that failed by an
assertion when it was put into the code. `make mutants` tries them all, `make test-all` those that
a unit test notices; `make test` demands that every patch applies and has its line.

| mutant | what it breaks | noticed by | kind |
|---|---|---|---|
"""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A deliberate fault.

    Args:
        name: of its file.
        fault: the promise that it breaks, in a sentence.
        checks: test files or tests that must notice.
        patch: the file.
    """

    name: str
    fault: str
    checks: tuple[str, ...]
    patch: Path

    @classmethod
    def read(cls, patch: Path) -> Mutant:
        """Read the head of a patch.

        Args:
            patch: its first lines are `fault: ...` and `check: ...`.
        """
        fault, check, *_ = patch.read_text(encoding="utf-8").splitlines()
        return cls(
            name=patch.stem,
            fault=fault.removeprefix("fault: "),
            checks=tuple(check.removeprefix("check: ").split()),
            patch=patch,
        )

    @property
    def needs_spark(self) -> bool:
        """Say whether one of its checks is in a folder whose tests need Spark."""
        return any(not check.startswith(NO_SPARK) for check in self.checks)

    @property
    def start_of_line(self) -> str:
        """Return how its line in the table begins."""
        return f"| [{self.name}](../tests/mutants/{self.patch.name}) |"

    def line(self, noticed: str) -> str:
        """Return its line in the table.

        Args:
            noticed: the test.
        """
        kind = "Spark" if self.needs_spark else "unit"
        return f"{self.start_of_line} {self.fault} | `{noticed}` | {kind} |"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the tests made of a copy.

    Args:
        said: the tests that failed by an assertion.
        broken: the tests that failed otherwise; `time-out` or `no report` if there is no report.
    """

    said: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def copy_to(folder: Path) -> None:
    """Copy what git knows of the working tree.

    Args:
        folder: receives it.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def try_tests(folder: Path, checks: Iterable[str]) -> Seen:
    """Run tests on a copy, those of each suite in a process of their own, as `make test` does.

    Args:
        folder: the copy.
        checks: what to run, as pytest takes it.
    """
    groups: dict[str, list[str]] = {}
    for check in checks:
        groups.setdefault(suite_of(ROOT / check.partition("::")[0]), []).append(check)
    seen = [run_pytest(folder, group) for group in groups.values()]
    return Seen(
        said=tuple(name for one in seen for name in one.said),
        broken=tuple(name for one in seen for name in one.broken),
    )


def run_pytest(folder: Path, checks: Sequence[str]) -> Seen:
    """Run tests of one suite.

    Args:
        folder: the copy.
        checks: what to run, as pytest takes it.
    """
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [f"--rootdir={folder}", f"--junitxml={report}", *checks]
    # Before the editable install of the repository itself.
    path = os.pathsep.join([str(folder / "python"), str(folder)])
    try:
        subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Seen(broken=("time-out",))
    if not report.exists():
        return Seen(broken=("no report",))
    return read_report(report)


def read_report(report: Path) -> Seen:
    """Say which tests of a JUnit report failed by an assertion, and which otherwise.

    Args:
        report: the file that pytest wrote.
    """
    said: list[str] = []
    broken: list[str] = []
    cases = list(ET.parse(report).getroot().iter("testcase"))
    for case in cases:
        file = str(case.get("classname")).replace(".", "/")
        name = f"{file}.py::{str(case.get('name')).partition('[')[0]}"
        for kind in ("failure", "error"):
            for found in case.findall(kind):
                message = str(found.get("message") or "")
                by_assertion = kind == "failure" and message.startswith(SAID)
                (said if by_assertion else broken).append(name)
    return Seen(said=tuple(said), broken=tuple(broken) if cases else ("no tests",))


def apply(folder: Path, mutant: Mutant, *more: str) -> bool:
    """Apply the patch of a mutant to a copy, and say whether it fits.

    Args:
        folder: the copy.
        mutant: whose patch.
        more: options, such as `--reverse`.
    """
    # Outside a repository git applies a patch to the folder it stands in.
    done = subprocess.run(
        ["git", "apply", *more, str(mutant.patch)],
        cwd=folder,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)},
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def verdict(folder: Path, mutant: Mutant) -> tuple[bool, str]:
    """Put one fault into a copy, run its checks, and take it out again.

    Args:
        folder: the copy.
        mutant: the fault.

    Returns:
        Whether all is well, and which test noticed or what is wrong.
    """
    if not apply(folder, mutant):
        return False, "the patch no longer applies"
    try:
        seen = try_tests(folder, mutant.checks)
    finally:
        apply(folder, mutant, "--reverse")
    if seen.said:
        return True, seen.said[0]
    return False, f"only broke: {seen.broken[0]}" if seen.broken else "nothing noticed"


def document(page: Path, mutants: Iterable[Mutant], noticed: Mapping[str, str | None]) -> None:
    """Write the table of the mutants that were noticed, now or when they were tried last.

    Args:
        page: the file.
        mutants: all there are.
        noticed: names of those that were tried now, and the test that noticed each.
    """
    earlier = page.read_text(encoding="utf-8").splitlines() if page.exists() else []
    lines = []
    for mutant in mutants:
        if mutant.name not in noticed:
            lines += [line for line in earlier if line.startswith(mutant.start_of_line)]
        elif (test := noticed[mutant.name]) is not None:
            lines.append(mutant.line(test))
    page.write_text(HEAD + "".join(f"{line}\n" for line in lines), encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Try the mutants and print what noticed each.

    Args:
        argv: the arguments; those of this process if left out.
    """
    parser = argparse.ArgumentParser(description="Try deliberate faults.")
    parser.add_argument("names", nargs="*", help="of mutants; all if left out")
    parser.add_argument("--no-spark", action="store_true", help="only what unit tests notice")
    parser.add_argument("--docs", type=Path, help=f"write {PAGE} there")
    given = parser.parse_args(argv)
    mutants = [Mutant.read(patch) for patch in sorted(MUTANTS.glob("*.patch"))]
    unknown = set(given.names) - {mutant.name for mutant in mutants}
    if unknown or not mutants:
        print(f"mutants: there is no {', '.join(sorted(unknown)) or 'patch'} in {MUTANTS}")
        return 2
    chosen = [
        mutant
        for mutant in mutants
        if (not given.names or mutant.name in given.names)
        and not (given.no_spark and mutant.needs_spark)
    ]
    noticed: dict[str, str | None] = {}
    with tempfile.TemporaryDirectory(prefix="outbox-mutants-") as name:
        folder = Path(name).resolve() / "copy"
        folder.mkdir()
        copy_to(folder)
        healthy = try_tests(folder, sorted({check for one in chosen for check in one.checks}))
        if healthy != Seen():
            print(f"mutants: without any of them, {(healthy.said + healthy.broken)[0]} fails")
            return 1
        for mutant in chosen:
            good, what = verdict(folder, mutant)
            noticed[mutant.name] = what if good else None
            print(f"{'seen ' if good else 'MISSED'} {mutant.name}: {what}", flush=True)
            if given.docs:  # each at once: a run that is ended keeps what it has found
                document(given.docs / PAGE, mutants, noticed)
    missed = sum(test is None for test in noticed.values())
    print(f"{len(noticed) - missed} of {len(noticed)} mutants were noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

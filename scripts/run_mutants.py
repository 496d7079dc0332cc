"""Put deliberate faults into a copy of the code, one at a time, and demand that a check sees each.

Usage: run_mutants.py [--no-spark] [--docs docs] [name ...]      (default: every mutant)

A mutant is a patch in tests/mutants that names the promise it breaks and the tests that must
notice. First those tests run on the copy as it is, and must pass. A patch that no longer applies
fails the run; so does a mutant that nothing notices, and one that is only noticed because something
crashed or took too long: a test must have said what is wrong.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MUTANTS = ROOT / "tests" / "mutants"
LIMIT = 900  # seconds for the tests of one mutant
# How a failed assertion begins in pytest's report, as opposed to an error of the code itself.
SAID = ("AssertionError", "assert ", "Failed: DID NOT RAISE")


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
        """Say whether one of its checks is no unit test."""
        return any(not check.startswith("tests/unit/") for check in self.checks)


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
    """Run tests on a copy.

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
        name = str(case.get("name"))
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


def document(results: Sequence[tuple[Mutant, str]]) -> str:
    """Return docs/mutants.md.

    Args:
        results: each mutant and the test that noticed it.
    """
    lines = [
        "<!-- Written by `make mutants`. -->",
        "# Mutants",
        "",
        "Each line is a deliberate fault, a patch in tests/mutants, and the first test that fails",
        "by an assertion when it is put into the code. `make mutants` tries them all.",
        "",
        "| fault | noticed by |",
        "|---|---|",
        *(f"| {mutant.fault} | `{noticed}` |" for mutant, noticed in results),
    ]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Try the mutants and print what noticed each.

    Args:
        argv: the arguments; those of this process if left out.
    """
    parser = argparse.ArgumentParser(description="Try deliberate faults.")
    parser.add_argument("names", nargs="*", help="of mutants; all if left out")
    parser.add_argument("--no-spark", action="store_true", help="only what unit tests notice")
    parser.add_argument("--docs", type=Path, help="write mutants.md there")
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
    with tempfile.TemporaryDirectory(prefix="outbox-mutants-") as name:
        folder = Path(name).resolve() / "copy"
        folder.mkdir()
        copy_to(folder)
        healthy = try_tests(folder, sorted({check for one in chosen for check in one.checks}))
        if healthy != Seen():
            print(f"mutants: without any of them, {(healthy.said + healthy.broken)[0]} fails")
            return 1
        results = []
        for mutant in chosen:
            good, noticed = verdict(folder, mutant)
            results.append((mutant, noticed, good))
            print(f"{'seen ' if good else 'MISSED'} {mutant.name}: {noticed}", flush=True)
    missed = [mutant.name for mutant, _, good in results if not good]
    print(f"{len(results) - len(missed)} of {len(results)} mutants were noticed")
    if given.docs and not missed:
        text = document([(mutant, noticed) for mutant, noticed, _ in results])
        (given.docs / "mutants.md").write_text(text, encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Look the pins of constraints.txt up in the advisory database (`make audit`).

pip-audit ends with 0 also where it could look nothing up. Here the exit code is 1 for a known
vulnerability that nobody has accepted, and 3 where a package could not be looked up.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
PINS: Final = ROOT / "constraints.txt"
ACCEPTED: Final = ROOT / "scripts" / "accepted_advisories.toml"
GOOD, VULNERABLE, NOT_AUDITED = 0, 1, 3
NAMED: Final = 5  # packages that could not be looked up
REQUEST_LIMIT: Final = "15"  # seconds


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What the database says.

    Args:
        audited: packages that were looked up.
        missed: names of those that could not be.
        found: lines about vulnerabilities that nobody has accepted.
        idle: accepted advisories that were not found.
    """

    audited: int
    missed: Sequence[str]
    found: Sequence[str]
    idle: Sequence[str]

    @property
    def exit_code(self) -> int:
        """Return what the command ends with."""
        if self.found:
            return VULNERABLE
        return NOT_AUDITED if self.missed or not self.audited else GOOD


def judge(dependencies: Sequence[Mapping[str, Any]], accepted: Mapping[str, str]) -> Audit:
    """Read the report of pip-audit.

    Args:
        dependencies: its list of that name.
        accepted: id of an advisory to why it does not concern us.
    """
    found, used = [], set()
    for one in dependencies:
        for advisory in one.get("vulns", ()):
            ids = {advisory["id"], *advisory.get("aliases", ())}
            used |= ids & set(accepted)
            if not ids & set(accepted):
                fixed = ", ".join(advisory.get("fix_versions", ())) or "no release yet"
                found.append(
                    f"{one['name']} {one['version']}: {advisory['id']} (fixed in: {fixed})"
                )
    missed = [str(one["name"]) for one in dependencies if "skip_reason" in one]
    return Audit(
        audited=len(dependencies) - len(missed),
        missed=missed,
        found=found,
        idle=sorted(set(accepted) - used),
    )


def report(audit: Audit) -> list[str]:
    """Return what a person is told.

    Args:
        audit: what the database says.
    """
    lines = [f"audit: {one}" for one in audit.found]
    if audit.missed or not audit.audited:
        names = ", ".join(audit.missed[:NAMED]) + (", ..." if len(audit.missed) > NAMED else "")
        total = audit.audited + len(audit.missed)
        lines += [
            "audit: " + "!" * 60,
            f"audit: NOT AUDITED: {len(audit.missed)} of {total} packages ({names or 'all'}).",
            "audit: The advisory database could not be reached or does not know them.",
            "audit: " + "!" * 60,
        ]
    else:
        lines += [f"audit: accepted, but not found: remove {one}" for one in audit.idle]
        known = f"{len(audit.found)} known vulnerabilities" if audit.found else "nothing known"
        lines.append(f"audit: {audit.audited} packages looked up: {known}.")
    return lines


def ask(pins: Path) -> list[dict[str, Any]]:
    """Run pip-audit over pins and return what it says of each; nothing where it says nothing.

    Args:
        pins: a file of exact versions.
    """
    command = (sys.executable, "-m", "pip_audit", "--requirement", str(pins), "--no-deps")
    flags = ("--disable-pip", "--format", "json", "--progress-spinner", "off")
    ended = subprocess.run(
        (*command, *flags, "--timeout", REQUEST_LIMIT), capture_output=True, text=True, check=False
    )
    try:
        found: list[dict[str, Any]] = json.loads(ended.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        print("audit:", (ended.stderr.strip().splitlines() or ["no answer"])[-1], file=sys.stderr)
        return []
    return found


def main() -> int:
    """Audit, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--may-be-unreachable",
        action="store_true",
        help="end with 0 where the database cannot be reached; it is said all the same",
    )
    args = parser.parse_args()
    accepted = tomllib.loads(ACCEPTED.read_text(encoding="utf-8"))["accepted"]
    audit = judge(ask(PINS), accepted)
    print("\n".join(report(audit)))
    if audit.exit_code == NOT_AUDITED and args.may_be_unreachable:
        return GOOD
    return audit.exit_code


if __name__ == "__main__":
    sys.exit(main())

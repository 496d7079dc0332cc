"""Play every scenario with a publisher, and judge what was seen by every check."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from delta_outbox.testing.demands import Broken
from delta_outbox.testing.publishers.adapter import Adapter, Capability, capabilities
from delta_outbox.testing.publishers.check import Check, Scenario
from delta_outbox.testing.publishers.stage import Stage
from delta_outbox.testing.publishers.table import CHECKS

logger = logging.getLogger(__name__)


class Verdict(StrEnum):
    """What came of a check."""

    PASSED = "passed"
    FAILED = "failed"
    CRASHED = "crashed"
    NOT_ASKED = "not asked"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What came of a check on a publisher.

    Args:
        number: of the check.
        name: of the check.
        verdict: in a word.
        message: what was expected and seen; what crashed; what the adapter or publisher lacks.
    """

    number: str
    name: str
    verdict: Verdict
    message: str = ""

    @property
    def good(self) -> bool:
        """Return whether nothing is wrong."""
        return self.verdict in (Verdict.PASSED, Verdict.NOT_ASKED)

    def demand(self) -> None:
        """Demand that nothing is wrong: the whole test of a parametrised pytest.

        Raises:
            AssertionError: something is.
        """
        if not self.good:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        message = f": {self.message}" if self.message else ""
        return f"{self.number} {self.name.replace('_', ' ')}: {self.verdict}{message}"


def check(adapter: Adapter, names: Collection[str] | None = None) -> list[Finding]:
    """Put a publisher to the checks and say what came of each.

    Args:
        adapter: of the publisher.
        names: of some checks; all if left out.
    """
    unknown = sorted(set(names or ()) - {one.name for one in CHECKS})
    if unknown:
        raise ValueError(f"check: `names` must be names of checks. Got: {', '.join(unknown)}.")
    by_scenario: dict[Scenario[object], list[Check]] = {}
    for one in CHECKS:
        if names is None or one.name in names:
            by_scenario.setdefault(one.scenario, []).append(one)
    findings = [
        finding
        for scenario, checks in by_scenario.items()
        for finding in _play(adapter, scenario, checks)
    ]
    return sorted(findings, key=lambda finding: finding.number)


def complaints(findings: Sequence[Finding]) -> list[str]:
    """Return a line for each check that is not good; none is what one hopes for.

    Args:
        findings: of `check`.
    """
    return [str(finding) for finding in findings if not finding.good]


def _play(adapter: Adapter, scenario: Scenario[object], checks: Sequence[Check]) -> list[Finding]:
    there = capabilities(adapter)
    asked = [one for one in checks if one.needs <= there]
    findings = [_not_asked(one, one.needs - there) for one in checks if one not in asked]
    if not asked:
        return findings
    stage = Stage(adapter)
    try:
        seen = scenario.play(stage)
    except Exception as error:
        logger.warning("scenario_crashed", exc_info=True, extra={"scenario": scenario.name})
        message = f"{scenario.name}: {type(error).__name__}: {error}"
        return findings + [_finding(one, Verdict.CRASHED, message) for one in asked]
    finally:
        stage.close()
    return findings + [_judge(one, seen) for one in asked]


def _judge(one: Check, seen: object) -> Finding:
    try:
        one.judge(seen)
    except Broken as error:
        return _finding(one, Verdict.FAILED, str(error))
    except Exception as error:  # noqa: BLE001 - what a publisher shows may be anything
        return _finding(one, Verdict.CRASHED, f"{type(error).__name__}: {error}")
    return _finding(one, Verdict.PASSED)


def _not_asked(one: Check, lacking: Collection[Capability]) -> Finding:
    return _finding(one, Verdict.NOT_ASKED, f"without {'; '.join(sorted(lacking))}")


def _finding(one: Check, verdict: Verdict, message: str = "") -> Finding:
    return Finding(number=one.number, name=one.name, verdict=verdict, message=message)

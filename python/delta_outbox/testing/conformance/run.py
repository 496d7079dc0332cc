"""Play every scenario on a store, and judge what was seen by every check."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from delta_outbox.testing.conformance.adapter import Adapter, Stores
from delta_outbox.testing.conformance.check import Check, Scenario
from delta_outbox.testing.conformance.rules import RULES
from delta_outbox.testing.conformance.stage import Stage
from delta_outbox.testing.demands import Broken

logger = logging.getLogger(__name__)


class Verdict(StrEnum):
    """What came of a check."""

    PASSED = "passed"
    FAILED = "failed"
    CRASHED = "crashed"
    NOT_CLAIMED = "not claimed"


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of a check on a store.

    Args:
        verdict: in a word.
        message: what was expected and seen; what crashed; which capability is not claimed.
    """

    verdict: Verdict
    message: str = ""

    @property
    def good(self) -> bool:
        """Return whether nothing is wrong."""
        return self.verdict in (Verdict.PASSED, Verdict.NOT_CLAIMED)


def all_checks() -> tuple[Check, ...]:
    """Return every check once, in the order of the scenarios."""
    checks = {rule.check.name: rule.check for rule in RULES if rule.check is not None}
    places = {name: place for place, name in enumerate(scenario_names())}
    return tuple(sorted(checks.values(), key=lambda check: places[check.scenario.name]))


def scenario_names() -> tuple[str, ...]:
    """Return the scenarios in the order in which they are played; `tampering` ends a store."""
    names = dict.fromkeys(rule.check.scenario.name for rule in RULES if rule.check is not None)
    return tuple(sorted(names, key=lambda name: name == "tampering"))


def run(stores: Stores, checks: Iterable[Check] | None = None) -> Mapping[str, Result]:
    """Run checks on stores and say what came of each.

    Args:
        stores: where the stores under test come from.
        checks: some of them; all if left out.

    Returns:
        Name of the check to its result.
    """
    by_scenario: dict[Scenario[object], list[Check]] = {}
    for check in checks or all_checks():
        by_scenario.setdefault(check.scenario, []).append(check)
    results: dict[str, Result] = {}
    for scenario, of_scenario in by_scenario.items():
        started = time.monotonic()
        results |= _play(stores, scenario, of_scenario)
        seconds = round(time.monotonic() - started, 1)
        logger.info("scenario_played", extra={"scenario": scenario.name, "seconds": seconds})
    return results


def _play(stores: Stores, scenario: Scenario[object], checks: list[Check]) -> dict[str, Result]:
    try:
        store = stores.fresh()
        asked = [check for check in checks if check.needs <= store.capabilities]
        seen = scenario.play(Stage(store, scenario.name)) if asked else None
    except Exception as error:
        logger.warning("scenario_crashed", exc_info=True, extra={"scenario": scenario.name})
        message = f"{scenario.name}: {type(error).__name__}: {error}"
        return {check.name: Result(verdict=Verdict.CRASHED, message=message) for check in checks}
    return {check.name: _judge(store, check, seen) for check in checks}


def _judge(store: Adapter, check: Check, seen: object) -> Result:
    lacking = sorted(check.needs - store.capabilities)
    if lacking:
        return Result(verdict=Verdict.NOT_CLAIMED, message=", ".join(lacking))
    try:
        check.judge(seen)
    except Broken as error:
        return Result(verdict=Verdict.FAILED, message=str(error))
    except Exception as error:  # noqa: BLE001 - what a store shows may be anything
        return Result(verdict=Verdict.CRASHED, message=f"{type(error).__name__}: {error}")
    return Result(verdict=Verdict.PASSED)

"""What the kit says: a table for a terminal, and two documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from rich.table import Table

from delta_outbox.testing.conformance.check import Rule
from delta_outbox.testing.conformance.rules import PARTS, RULES
from delta_outbox.testing.conformance.run import Result, Verdict, all_checks

Results = Mapping[str, Mapping[str, Result]]
"""Store to check to result."""

SHOWN: Final = {
    Verdict.PASSED: "ok",
    Verdict.FAILED: "FAILED",
    Verdict.CRASHED: "CRASHED",
    Verdict.NOT_CLAIMED: "not claimed",
}

_HEAD: Final = """\
<!-- Written by `make conformance`; tests/unit/testing/test_conformance.py holds it to the code. -->
# Conformance

The Open Outbox specification is four texts. Every MUST, MUST NOT and
SHOULD of them, and every MAY that we claim, has a number here and an executable check; so have
defects that relays somewhere have. A check plays a scenario on a store and demands something of
what was seen. [conformance-results.md](conformance-results.md) is what came of the last run.

`make conformance` runs the kit on an in-memory store, on a PostgreSQL table and on Delta.
`tests/unit/testing/test_conformance_wrong.py` runs it on {wrong} deliberately wrong stores: each
check fails on at least one of them.
"""

_ADAPTER: Final = """\
## Your own store

    python -m delta_outbox.testing.conformance --store your_package.your_module:YourStores

`YourStores()` has a `name`, a method `fresh()` that returns an adapter with nothing open in it
(called once per scenario), and `close()`. The adapter is written to the protocol `Adapter`
([adapter.py](../python/delta_outbox/testing/conformance/adapter.py)):

| method | does |
|---|---|
| `capabilities`, `terms` | what the store claims; its figures: lease, longest back-off, attempts |
| `now()`, `advance(seconds)` | the clock of the store; the kit never sleeps |
| `append(events)` | as a producer, in one transaction; raises `Refused` |
| `retrieve(limit)`, `claim(worker, limit)` | what is eligible; `claim` also from several threads |
| `messages(held)` | what a publisher would be given |
| `end(held, results)` | what the publisher said, per event; late answers are `Refused` or ignored |
| `reap()` | what somebody does between batches: ends leases, applies what operators asked for |
| `replay(ids, state=)`, `kill(ids)` | as an operator |
| `read(ids)`, `history(ids)` | events in the words of the specification; their transitions |
| `reopen()` | a restart: what is not durable is gone |
| `tamper()` | for append-only logs: try to rewrite them, and say who noticed |

A store may claim {capabilities}. What it does not claim
is not asked of it, and the report says so: leave methods that belong to it unwritten. Event types
of the kit are `{event}` and, for events that get too old, `{short}`.
Examples: [memory.py](../python/delta_outbox/testing/conformance/memory.py), the store itself;
[postgres_store.py](../tests/conformance/postgres_store.py), a table with other words for the
states; [delta.py](../python/delta_outbox/testing/conformance/delta.py).
"""


def table(results: Results) -> Table:
    """Return rules, checks, our reading and what came of it, for a terminal.

    Args:
        results: of the stores.
    """
    shown = Table(title="Open Outbox conformance", show_lines=False)
    for name in ("rule", "", "says", "check", "our reading", *results):
        shown.add_column(name, overflow="fold")
    for rule in RULES:
        shown.add_row(
            rule.number,
            str(rule.level),
            rule.says,
            rule.check.words if rule.check else f"none: {rule.unchecked}",
            rule.reading,
            *(_shown(rule, of_store) for of_store in results.values()),
        )
    return shown


def complaints(results: Results) -> list[str]:
    """Return a line for each check that is not good.

    Args:
        results: of the stores.
    """
    numbers = numbers_of_checks()
    return [
        f"{store}: {name} ({', '.join(numbers[name])}): {SHOWN[result.verdict]}: {result.message}"
        for store, of_store in results.items()
        for name, result in of_store.items()
        if not result.good
    ]


def summary(results: Results) -> list[str]:
    """Return a line per store: how many checks came out how.

    Args:
        results: of the stores.
    """
    lines = []
    for store, of_store in results.items():
        counts = Counter(result.verdict for result in of_store.values())
        message = ", ".join(f"{counts[one]} {one}" for one in Verdict if counts[one])
        lines.append(f"{store}: {message}")
    return lines


def numbers_of_checks() -> Mapping[str, Sequence[str]]:
    """Return the numbers of the rules that each check stands for."""
    numbers: dict[str, list[str]] = {}
    for rule in RULES:
        if rule.check is not None:
            numbers.setdefault(rule.check.name, []).append(rule.number)
    return numbers


def rules_document(*, wrong: int, capabilities: str, event: str, short: str) -> str:
    """Return docs/conformance.md: rule, check, our reading, and how to write an adapter.

    Args:
        wrong: how many wrong stores there are.
        capabilities: what a store may claim.
        event: the event type of the kit.
        short: the event type of events that get too old.
    """
    parts = [_HEAD.format(wrong=wrong)]
    parts.append(_ADAPTER.format(capabilities=capabilities, event=event, short=short))
    unchecked = [rule for rule in RULES if rule.check is None]
    rows = [f"| {rule.number} | {rule.says} | {rule.unchecked} |" for rule in unchecked]
    parts.append(
        "## Rules without a check\n\n| | rule | why |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    )
    for letter, title in PARTS.items():
        rows = [_row(rule) for rule in RULES if rule.number.startswith(letter) and rule.check]
        head = f"## {title}\n\n| | | rule | check | our reading |\n|---|---|---|---|---|\n"
        parts.append(head + "\n".join(rows) + "\n")
    return "\n".join(parts)


def results_document(results: Results, caught: Mapping[str, Sequence[str]]) -> str:
    """Return docs/conformance-results.md: what came of each check on each store.

    Args:
        results: of the stores.
        caught: check to the wrong stores on which it fails.
    """
    numbers = numbers_of_checks()
    head = (
        "<!-- Written by `make conformance`. -->\n# Conformance: the last run\n\n"
        + "".join(f"- {line}\n" for line in summary(results))
        + "\nNot claimed: the store leaves out what the specification leaves to it; in brackets "
        "what.\n\n"
        + f"| check | rules | {' | '.join(results)} | fails on |\n"
        + f"|---|---|{'---|' * len(results)}---|\n"
    )
    rows = []
    for check in all_checks():
        shown = []
        for of_store in results.values():
            result = of_store[check.name]
            what = f" ({result.message})" if result.verdict is Verdict.NOT_CLAIMED else ""
            shown.append(SHOWN[result.verdict] + what)
        wrong = ", ".join(caught[check.name])
        cells = [check.words, ", ".join(numbers[check.name]), *shown, wrong]
        rows.append(f"| {' | '.join(cells)} |")
    return head + "\n".join(rows) + "\n"


def _row(rule: Rule) -> str:
    assert rule.check is not None
    cells = (rule.number, str(rule.level), rule.says, rule.check.words, rule.reading)
    return f"| {' | '.join(cells)} |"


def _shown(rule: Rule, results: Mapping[str, Result]) -> str:
    return SHOWN[results[rule.check.name].verdict] if rule.check else "-"

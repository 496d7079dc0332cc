"""Delivery policies: what is promised for which event type, as data (seeds/delivery_policies.csv).

Pure: rows in, policies out, and the three questions asked of one: how long to wait, where to,
with which message key.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from delta_outbox.core.errors import BadPolicy
from delta_outbox.core.globs import glob_to_regex
from delta_outbox.core.reserved_names import NOBODY, RESERVED
from delta_outbox.lifecycle.policy_columns import (
    COLUMNS,
    OnDead,
    Ordering,
    OrderScope,
    PayloadFormat,
    placeholders,
)

_SHOWN: Final = 80  # characters of a bad cell that a message quotes
_NEVER: Final = 2**31 - 1  # attempts or crashes; the logs count no further


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryPolicy:
    """One row of the seed. The defaults are the shipped row, and what a blank cell means.

    Args:
        event_type: shell glob on the event type.
        destinations: names of [publishers.<destination>]; each gets its own delivery.
        route: template of topic, subject, routing key or path.
        format: whether the payload goes as it is, or as a CloudEvent.
        ordering: whether events of a key wait for each other.
        order_scope: whether they do so over all destinations or within each.
        max_attempts: attempts answered failed or unknown before the event is DEAD.
        max_crashes: claims of this event alone that crashed or expired before it is DEAD.
        expires_after_seconds: age after which it is no longer delivered, None for never.
        lease_seconds: how long a claim lasts.
        backoff_initial_seconds: wait after the first failure.
        backoff_multiplier: factor per further failure.
        backoff_max_seconds: longest wait.
        backoff_jitter: share of the wait that is random, 0 to 1.
        on_dead: what a DEAD event does to its key.
        together: where the order is kept within each destination: by destination, the name of those
            whose order depends on each other. `PolicySet` knows it, of all policies.
    """

    event_type: str
    destinations: tuple[str, ...] = ("default",)
    route: str = "{event_type}"
    format: PayloadFormat = PayloadFormat.RAW
    ordering: Ordering = Ordering.STRICT
    order_scope: OrderScope = OrderScope.KEY
    max_attempts: int = 10
    max_crashes: int = 3
    expires_after_seconds: float | None = None
    lease_seconds: float = 30.0
    backoff_initial_seconds: float = 1.0
    backoff_multiplier: float = 2.0
    backoff_max_seconds: float = 300.0
    backoff_jitter: float = 0.2
    on_dead: OnDead = OnDead.CONTINUE
    together: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def as_row(self) -> dict[str, str | int | float | None]:
        """Return the columns and values that `PolicySet.parse` reads back as this policy."""
        row = {name: getattr(self, attribute) for name, attribute in _ATTRIBUTES.items()}
        return row | {"destination": "|".join(self.destinations)}


_Matcher = tuple[re.Pattern[str], DeliveryPolicy]


def task_policy(event_type: str, destination: str, *, lease_seconds: float) -> DeliveryPolicy:
    """Return the policy of tasks: in no order, and never DEAD by itself.

    Args:
        event_type: of the tasks.
        destination: the third party that they ask, or `todo`.
        lease_seconds: how long a claim lasts.
    """
    return DeliveryPolicy(
        event_type=event_type,
        destinations=(destination,),
        ordering=Ordering.NONE,
        max_attempts=_NEVER,
        max_crashes=_NEVER,
        lease_seconds=lease_seconds,
    )


UNSERVED: Final = task_policy(f"{RESERVED}*", NOBODY, lease_seconds=60)
"""The policy of a task that this process does not run: nobody may take it here."""


@dataclass(frozen=True, kw_only=True)
class PolicySet:
    """The policies of all event types; the first row that matches wins. Those of tasks are apart:
    no row of the seed is for a task, and a task without a policy of its own is `UNSERVED`.

    Args:
        policies: in the order of the rows, the last one for `*`. Made by `parse`.
        tasks: those of the tasks of workflows that this process runs.
    """

    policies: tuple[DeliveryPolicy, ...]
    tasks: tuple[DeliveryPolicy, ...] = ()
    version: str = field(init=False)
    _matchers: tuple[_Matcher, ...] = field(init=False, repr=False, compare=False)
    _of_tasks: tuple[_Matcher, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        together = _together(self.policies)
        policies = tuple(replace(policy, together=together) for policy in self.policies)
        object.__setattr__(self, "policies", policies)
        rows = [policy.as_row() for policy in self.all]
        canonical = json.dumps(rows, sort_keys=True, separators=(",", ":"))
        object.__setattr__(self, "version", hashlib.sha256(canonical.encode()).hexdigest()[:12])
        object.__setattr__(self, "_matchers", _matchers(policies))
        object.__setattr__(self, "_of_tasks", _matchers((*self.tasks, UNSERVED)))

    @property
    def all(self) -> tuple[DeliveryPolicy, ...]:
        """Return the policies in the order in which they are tried."""
        return (*self.tasks, *self.policies)

    # twin: macros/policies/policy_problems.sql::policy_problems
    @classmethod
    def parse(cls, rows: Iterable[Mapping[str, object]]) -> Self:
        """Read the rows of the seed; a blank or missing cell is the default.

        Args:
            rows: column name to cell: text, a number or None.

        Raises:
            BadPolicy: lists every problem with row, column, rule and what came.
        """
        table = [
            {name: "" if cell is None else str(cell).strip() for name, cell in row.items()}
            for row in rows
        ]
        problems = _unknown_columns(table)
        policies = [_policy(_where(n, row), row, problems) for n, row in enumerate(table, start=1)]
        problems += _problems_of_order([row.get("event_type", "") for row in table])
        if problems:
            raise BadPolicy(problems)
        return cls(policies=tuple(policies))

    @classmethod
    def from_csv(cls, text: str) -> Self:
        """Read the text of the seed file.

        Args:
            text: comma-separated values with a header line.

        Raises:
            BadPolicy: it is no CSV, or a row breaks a rule.
        """
        lines = io.StringIO(text.removeprefix("\ufeff"), newline="")
        reader = csv.DictReader(lines, restkey="(more cells than columns)", strict=True)
        try:
            rows = list(reader)
        except csv.Error as error:
            raise BadPolicy([f"after line {reader.line_num}: not valid CSV: {error}"]) from error
        header = reader.fieldnames or []
        twice = sorted({name for name in header if header.count(name) > 1})
        if twice:
            raise BadPolicy([f"header: column `{name}` must appear once" for name in twice])
        return cls.parse(rows)

    @property
    def destinations(self) -> frozenset[str]:
        """Return the destinations of the rows, to be checked against the settings."""
        return frozenset(name for policy in self.policies for name in policy.destinations)

    @property
    def any_hold(self) -> bool:
        """Return whether a dead event may hold its key."""
        return any(policy.on_dead is OnDead.HOLD for policy in self.policies)

    @property
    def any_age(self) -> bool:
        """Return whether an event may become too old."""
        return any(policy.expires_after_seconds is not None for policy in self.policies)

    @property
    def shortest_lease(self) -> float:
        """Return the seconds after which the first lease of any claim may run out."""
        return min(policy.lease_seconds for policy in self.all)

    # twin: macros/eligibility/policy_of_event_type.sql::policy_of_event_type
    def match(self, event_type: str) -> DeliveryPolicy:
        """Return the policy of an event type: the first row whose pattern matches; of a task none
        but those of tasks.

        Args:
            event_type: as the event carries it.
        """
        its = self._of_tasks if event_type.startswith(RESERVED) else self._matchers
        for pattern, policy in its:
            if pattern.match(event_type):
                return policy
        raise LookupError(f"no row matches {event_type!r}; the last one must be `*`")


def backoff_seconds(policy: DeliveryPolicy, failures: int, jitter: float) -> float:
    """Return how long to wait before the next attempt, never more than backoff_max_seconds.

    Capped exponential back-off, of which the share `backoff_jitter` is random: 1 is the "full
    jitter" and 0.5 the "equal jitter" of M. Brooker, "Exponential Backoff And Jitter", AWS
    Architecture Blog, 2015.

    Args:
        policy: the policy of the event.
        failures: attempts answered failed or unknown, from 1.
        jitter: a random number from 0 up to, not including, 1.

    Raises:
        ValueError: an argument is out of its range.
    """
    if failures < 1:
        raise ValueError(f"backoff_seconds: `failures` must be at least 1. Got: {failures}.")
    if not 0 <= jitter < 1:
        raise ValueError(f"backoff_seconds: `jitter` must be in [0, 1). Got: {jitter}.")
    if policy.backoff_initial_seconds == 0:
        return 0.0
    try:
        wait = policy.backoff_initial_seconds * policy.backoff_multiplier ** (failures - 1)
    except OverflowError:  # far beyond every cap
        wait = policy.backoff_max_seconds
    return min(wait, policy.backoff_max_seconds) * (1 - policy.backoff_jitter * jitter)


def message_key(
    policy: DeliveryPolicy, *, ordering_key: str | None, partition_key: str | None
) -> str | None:
    """Return the key by which a transport partitions: under strict order the one that is ordered.

    Args:
        policy: the policy of the event.
        ordering_key: as the event carries it.
        partition_key: as the event carries it.
    """
    preferred, other = partition_key, ordering_key
    if policy.ordering is Ordering.STRICT:
        preferred, other = ordering_key, partition_key
    return preferred if preferred is not None else other


def render_route(
    policy: DeliveryPolicy,
    *,
    event_type: str,
    event_id: str,
    ordering_key: str | None = None,
    partition_key: str | None = None,
) -> str | None:
    """Return where an event goes, None if it lacks a value that the route names.

    Args:
        policy: the policy of the event.
        event_type: as the event carries it.
        event_id: as the event carries it.
        ordering_key: as the event carries it.
        partition_key: as the event carries it.
    """
    values = {
        "event_type": event_type,
        "event_id": event_id,
        "ordering_key": ordering_key,
        "partition_key": partition_key,
    }
    if any(values[name] is None for name in placeholders(policy.route)):
        return None
    return policy.route.format_map(values)


def _matchers(policies: Iterable[DeliveryPolicy]) -> tuple[_Matcher, ...]:
    return tuple((re.compile(glob_to_regex(one.event_type)), one) for one in policies)


_ATTRIBUTES: Final = {name: "destinations" if name == "destination" else name for name in COLUMNS}


# twin: macros/eligibility/destinations_in_order.sql::destinations_in_order
def _together(policies: Iterable[DeliveryPolicy]) -> Mapping[str, str]:
    """Name, for each destination, those whose order depends on each other: an event for several
    has no delivery of its own at each before its first claim, so its order spans them.
    """
    groups: list[set[str]] = []
    for policy in policies:
        if policy.ordering is Ordering.STRICT and policy.order_scope is OrderScope.DESTINATION:
            own = set(policy.destinations)
            shared = [group for group in groups if group & own]
            groups = [group for group in groups if group not in shared]
            groups.append(own.union(*shared))
    return {name: "|".join(sorted(group)) for group in groups for name in group}


def _policy(where: str, row: Mapping[str, str], problems: list[str]) -> DeliveryPolicy:
    """Read one row; where a cell breaks a rule, note the problem and go on with the default."""
    values: dict[str, Any] = {"event_type": "*"}
    for column, read in COLUMNS.items():
        cell = row.get(column, "")
        if not cell:
            if column == "event_type":
                problems.append(f"{where}, column `event_type`: must not be blank. Got: ''")
            continue
        try:
            values[_ATTRIBUTES[column]] = read(cell)
        except ValueError as error:
            problems.append(f"{where}, column `{column}`: must be {error}. Got: {_shown(cell)}")
    policy = DeliveryPolicy(**values)
    if policy.backoff_max_seconds < policy.backoff_initial_seconds:
        problems.append(
            f"{where}, column `backoff_max_seconds`: must be at least backoff_initial_seconds "
            f"({policy.backoff_initial_seconds:g}). Got: {policy.backoff_max_seconds:g}"
        )
    return policy


def _unknown_columns(table: Sequence[Mapping[str, str]]) -> list[str]:
    """Report each column that does not exist once, at the first row that has it."""
    first: dict[str, str] = {}
    for number, row in enumerate(table, start=1):
        for name in row:
            if name not in COLUMNS:
                first.setdefault(name, _where(number, row))
    return [
        f"{where}, column {_shown(name)}: must be one of {', '.join(COLUMNS)}"
        for name, where in first.items()
    ]


def _problems_of_order(globs: Sequence[str]) -> list[str]:
    """Find rows that never win, and the missing last resort."""
    problems = []
    first: dict[str, int] = {}
    for number, glob in enumerate(globs, start=1):
        winner = first.get("*", first.get(glob))
        if winner is not None:
            problems.append(
                f"row {number} ({_shown(glob)}), column `event_type`: must not repeat an earlier "
                f"row or follow `*`; row {winner} always wins"
            )
        first.setdefault(glob, number)
    if not globs or globs[-1] != "*":
        last = _shown(globs[-1]) if globs else "no rows"
        problems.append(f"last row, column `event_type`: must be `*`. Got: {last}")
    return problems


def _where(number: int, row: Mapping[str, str]) -> str:
    return f"row {number} ({_shown(row.get('event_type', ''))})"


def _shown(text: str) -> str:
    """Quote what came: escaped and cut, so that a message stays one readable line."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."

"""Delivery policies: what a seed may say, which row wins, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.core.errors import BadPolicy
from delta_outbox.lifecycle.policy import (
    UNSERVED,
    DeliveryPolicy,
    PolicySet,
    message_key,
    render_route,
    task_policy,
)
from delta_outbox.lifecycle.policy_columns import COLUMNS, OnDead, Ordering, OrderScope

SEED = Path(__file__).parents[3] / "seeds" / "delivery_policies.csv"
LAST: dict[str, object] = {"event_type": "*"}

POLICIES = st.builds(
    DeliveryPolicy,
    event_type=st.text("abc.?[]*é',", min_size=1, max_size=10).filter(
        lambda glob: "[" not in glob and glob.strip("*") != ""
    ),
    destinations=st.lists(
        st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True), min_size=1, max_size=3, unique=True
    ).map(tuple),
    route=st.sampled_from(["{event_type}", "orders", "a.{ordering_key}.{{x}}", "/{event_id}"]),
    ordering=st.sampled_from(Ordering),
    order_scope=st.sampled_from(OrderScope),
    max_attempts=st.integers(1, 1_000_000),
    max_crashes=st.integers(1, 1_000),
    expires_after_seconds=st.none() | st.floats(0.001, 1e9),
    lease_seconds=st.floats(1, 86_400),
    backoff_initial_seconds=st.floats(0, 100),
    backoff_multiplier=st.floats(1, 100),
    backoff_max_seconds=st.floats(100, 1_000_000),
    backoff_jitter=st.floats(0, 1),
    on_dead=st.sampled_from(OnDead),
)


def _problems(*rows: Mapping[str, object]) -> tuple[str, ...]:
    with pytest.raises(BadPolicy) as bad:
        PolicySet.parse(rows)
    return bad.value.problems


def test_the_shipped_seed_is_the_default() -> None:
    """The shipped row says what a policy says that says nothing."""
    assert (DeliveryPolicy(event_type="*"),) == PolicySet.from_csv(SEED.read_text()).policies


def test_the_shipped_seed_has_every_column_in_order() -> None:
    """The header of the seed is the list of columns."""
    assert list(COLUMNS) == SEED.read_text().splitlines()[0].split(",")


def test_the_version_of_the_shipped_seed_never_changes() -> None:
    """The same rows have the same version in every release: it stands in the log."""
    assert PolicySet.from_csv(SEED.read_text()).version == "a1500026e129"


@given(st.lists(POLICIES, max_size=4, unique_by=lambda policy: policy.event_type))
def test_rows_read_back_as_the_same_policies(policies: list[DeliveryPolicy]) -> None:
    """Policies written as rows, for the log, read back equal and with the same version."""
    policy_set = PolicySet(policies=(*policies, DeliveryPolicy(event_type="*")))
    again = PolicySet.parse([policy.as_row() for policy in policy_set.policies])
    assert policy_set == again


@pytest.mark.parametrize(
    "row",
    [
        {"max_attempts": "10.0", "lease_seconds": "30.0", "backoff_max_seconds": "3e2"},
        {"max_attempts": 10, "lease_seconds": 30, "backoff_jitter": 0.2},
        {"max_attempts": " 10 ", "destination": " default ", "ordering": None},
        {column: "" for column in COLUMNS if column != "event_type"},
    ],
)
def test_the_version_depends_on_meaning_not_on_spelling(row: dict[str, object]) -> None:
    """Cells that mean the same, blank for the default included, give the same version."""
    assert PolicySet.parse([LAST]).version == PolicySet.parse([LAST | row]).version


def test_minus_zero_is_zero() -> None:
    """The sign of a zero is spelling, too."""
    plus, minus = ({"event_type": "*", "backoff_jitter": zero} for zero in ("0", "-0.0"))
    assert PolicySet.parse([plus]).version == PolicySet.parse([minus]).version


@pytest.mark.parametrize(
    "row",
    [
        {"max_attempts": "11"},
        {"destination": "other"},
        {"expires_after_seconds": "60"},
        {"on_dead": "hold"},
    ],
)
def test_the_version_changes_with_every_change(row: dict[str, object]) -> None:
    """A changed cell is a new version."""
    assert PolicySet.parse([LAST]).version != PolicySet.parse([LAST | row]).version


def test_the_order_of_rows_is_part_of_the_version() -> None:
    """Rows in another order may mean another thing, so they are another version."""
    a, b = {"event_type": "a*"}, {"event_type": "*b"}
    assert PolicySet.parse([a, b, LAST]).version != PolicySet.parse([b, a, LAST]).version


def test_the_first_matching_row_wins() -> None:
    """Rows are tried from the top, case counts, and the last row takes the rest."""
    policies = PolicySet.parse(
        [
            {"event_type": "order.created", "max_attempts": "1"},
            {"event_type": "order.*", "max_attempts": "2"},
            {"event_type": "*.created", "max_attempts": "3"},
            {"event_type": "*", "max_attempts": "4"},
        ]
    )
    names = ["order.created", "order.paid", "user.created", "Order.created", "orderXpaid"]
    assert [1, 2, 3, 3, 4] == [policies.match(name).max_attempts for name in names]


def test_no_row_is_for_a_task() -> None:
    """A task of a workflow is nobody's but of whoever runs it, whatever the rows match."""
    rows = PolicySet.parse([{"event_type": "work*", "max_crashes": 1}, LAST])
    own = task_policy("workflow:orders/pay", "bank", lease_seconds=60)
    runs = replace(rows, tasks=(own,))
    assert (UNSERVED, UNSERVED) == (rows.match(own.event_type), runs.match("workflow:orders/x"))
    assert (own, 1) == (runs.match(own.event_type), runs.match("workshop").max_crashes)
    assert rows.destinations == runs.destinations
    assert rows.version != runs.version


@given(st.text())
def test_every_event_type_has_a_policy(event_type: str) -> None:
    """Whatever an event is called, some row matches."""
    policies = PolicySet.parse([{"event_type": "[ab]*"}, LAST])
    assert policies.match(event_type) in policies.policies


def test_text_of_any_kind_works() -> None:
    """Apostrophes, quoted commas and unicode in a seed are text like any other."""
    text = 'event_type,route\n"o\'brien,*",\U0001f600-{event_type}\n*,\n'
    policy = PolicySet.from_csv("\ufeff" + text).match("o'brien,é")
    assert policy.route == "\U0001f600-{event_type}"


def test_several_destinations() -> None:
    """`a|b` names two destinations, and the set knows all that the settings must have."""
    policies = PolicySet.parse([{"event_type": "a", "destination": "kafka | audit"}, LAST])
    assert policies.match("a").destinations == ("kafka", "audit")
    assert policies.destinations == {"kafka", "audit", "default"}


@pytest.mark.parametrize(
    ("column", "cell", "rule"),
    [
        ("event_type", "order[", "a shell glob with *, ? and [..] (a `[` needs its `]`)"),
        ("event_type", "a\x00b", "a shell glob with *, ? and [..] (printable text of at most 255"),
        ("event_type", "a" * 256, "printable text of at most 255 characters"),
        (
            "event_type",
            "workflow:*",
            "a shell glob that does not begin with 'workflow:': tasks have the policies of their",
        ),
        ("destination", "a|a", "one or more different destinations joined by |"),
        ("destination", "a||b", "one or more different destinations joined by |"),
        ("destination", "kafka.eu", "one or more different destinations joined by |"),
        ("route", "{topic}", "a template with {event_type}, {event_id}, {ordering_key}"),
        ("route", "{event_type!r}", "a template with"),
        ("route", "{event_type:}", "a template with"),
        ("route", "{event_type.__class__}", "a template with"),
        ("route", "{", "{partition_key}, and {{ or }} for a brace"),
        ("format", "cloudevents", "raw or cloudevents-structured or cloudevents-binary"),
        ("ordering", "STRICT", "strict or none"),
        ("order_scope", "topic", "key or destination"),
        ("on_dead", "stop", "continue or hold"),
        ("max_attempts", "ten", "a whole number from 1 to 1000000"),
        ("max_attempts", "0", "a whole number from 1 to 1000000"),
        ("max_attempts", "1.5", "a whole number from 1 to 1000000"),
        ("max_attempts", "1e999", "a whole number from 1 to 1000000"),
        ("max_attempts", "1_0", "a whole number from 1 to 1000000"),
        ("max_attempts", "\u0661", "a whole number from 1 to 1000000"),
        ("max_crashes", "1001", "a whole number from 1 to 1000"),
        ("expires_after_seconds", "0", "a number from 0.001 to 1000000000"),
        ("lease_seconds", "0.5", "a number from 1 to 86400"),
        ("backoff_initial_seconds", "-1", "a number from 0 to 86400"),
        ("backoff_multiplier", "0.5", "a number from 1 to 100"),
        ("backoff_max_seconds", "nan", "a number from 0 to 2592000"),
        ("backoff_jitter", "1.1", "a number from 0 to 1"),
        ("backoff_jitter", "0,2", "a number from 0 to 1"),
    ],
)
def test_a_bad_cell_names_row_column_rule_and_what_came(column: str, cell: str, rule: str) -> None:
    """Whoever mistypes a cell reads where it is, what the rule is and what was found."""
    problems = _problems({"event_type": "ok.*"}, {"event_type": "x"} | {column: cell}, LAST)
    assert len(problems) == 1
    assert problems[0].startswith("row 2 (")
    assert f"column `{column}`: must be " in problems[0]
    assert rule in problems[0]
    assert f"Got: {cell[:80]!r}" in problems[0]


def test_all_problems_are_reported_at_once() -> None:
    """One run shows everything that is wrong, not the first of many."""
    problems = _problems({"event_type": "", "ordering": "x", "on_dead": "y"}, {"event_type": "z"})
    assert [
        "row 1 (''), column `event_type`: must not be blank. Got: ''",
        "row 1 (''), column `ordering`: must be strict or none. Got: 'x'",
        "row 1 (''), column `on_dead`: must be continue or hold. Got: 'y'",
        "last row, column `event_type`: must be `*`. Got: 'z'",
    ] == list(problems)


def test_the_cap_is_at_least_the_first_wait() -> None:
    """A back-off whose cap is below its first wait is a mistake."""
    problems = _problems(LAST | {"backoff_initial_seconds": "10", "backoff_max_seconds": "5"})
    expected = (
        "row 1 ('*'), column `backoff_max_seconds`: must be at least backoff_initial_seconds "
        "(10). Got: 5"
    )
    assert (expected,) == problems


def test_no_rows_at_all() -> None:
    """An empty seed says what it lacks."""
    expected = ("last row, column `event_type`: must be `*`. Got: no rows",)
    assert expected == _problems()
    with pytest.raises(BadPolicy, match="Got: no rows"):
        PolicySet.from_csv("")


def test_a_row_that_never_wins_is_refused() -> None:
    """A repeated pattern and a row after `*` would be read and never used."""
    problems = _problems({"event_type": "a"}, {"event_type": "a"}, LAST, {"event_type": "b"}, LAST)
    assert [2, 4, 5] == [int(problem.split()[1]) for problem in problems]
    assert problems[0].endswith("row 1 always wins")
    assert problems[1].endswith("row 3 always wins")


def test_an_unknown_column_is_refused() -> None:
    """A column that does not exist is named once, with those that do."""
    problems = _problems({"event_type": "a", "max_attemps": "3"}, LAST | {"max_attemps": "4"})
    assert len(problems) == 1
    assert problems[0].startswith("row 1 ('a'), column 'max_attemps': must be one of event_type,")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("event_type,route\n*,a,b\n", "more cells than columns"),
        ("event_type,route,route\n*,a,b\n", "header: column `route` must appear once"),
        ('event_type,route\n"*"x,a\n', "after line 1: not valid CSV"),
    ],
)
def test_a_broken_file_is_refused(text: str, message: str) -> None:
    """A file that is no table stops with a sentence."""
    with pytest.raises(BadPolicy, match=message):
        PolicySet.from_csv(text)


@pytest.mark.parametrize(
    ("ordering", "ordering_key", "partition_key", "expected"),
    [
        (Ordering.STRICT, "o", "p", "o"),
        (Ordering.STRICT, None, "p", "p"),
        (Ordering.STRICT, "o", None, "o"),
        (Ordering.NONE, "o", "p", "p"),
        (Ordering.NONE, "o", None, "o"),
        (Ordering.NONE, None, None, None),
        (Ordering.STRICT, "", "p", ""),
    ],
)
def test_the_message_key_under_strict_order_is_the_ordering_key(
    ordering: Ordering, ordering_key: str | None, partition_key: str | None, expected: str | None
) -> None:
    """Ordered events partition by what orders them, others by the producer's choice first."""
    policy = DeliveryPolicy(event_type="*", ordering=ordering)
    actual = message_key(policy, ordering_key=ordering_key, partition_key=partition_key)
    assert expected == actual


@pytest.mark.parametrize(
    ("route", "ordering_key", "expected"),
    [
        ("{event_type}", None, "order.created"),
        ("all", None, "all"),
        ("{event_type}/{ordering_key}/{event_id}", "{event_id}", "order.created/{event_id}/e1"),
        ("{{{event_type}}}", None, "{order.created}"),
        ("{ordering_key}", None, None),
        ("{ordering_key}", "", ""),
    ],
)
def test_a_route_is_filled_in_once(
    route: str, ordering_key: str | None, expected: str | None
) -> None:
    """Braces in data are data; an event without a value that the route names has no route."""
    policy = DeliveryPolicy(event_type="*", route=route)
    actual = render_route(
        policy, event_type="order.created", event_id="e1", ordering_key=ordering_key
    )
    assert expected == actual

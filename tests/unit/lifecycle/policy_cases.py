"""Good and bad policy rows: one table for the two sides that judge them, Python and dbt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delta_outbox.lifecycle.policy_columns import COLUMNS

Row = Mapping[str, str | None]

LAST: Row = {"event_type": "*"}

CELLS: Sequence[tuple[str, str]] = [
    ("event_type", ""),
    ("event_type", "order["),
    ("event_type", "[!]"),
    ("event_type", "[]a]"),
    ("event_type", "[z-a]"),
    ("event_type", "[ab-a]x["),
    ("event_type", "[!-a][--a][a&&b]"),
    ("event_type", "a\x00b"),
    ("event_type", "a\nb"),
    ("event_type", 'o\'brien, "é" \\n \U0001f600 007'),
    ("event_type", "a" * 255),
    ("event_type", "a" * 256),
    ("destination", "kafka"),
    ("destination", " kafka | audit "),
    ("destination", "a|a"),
    ("destination", "a||b"),
    ("destination", "a|"),
    ("destination", "kafka.eu"),
    ("destination", "a" * 64),
    ("destination", "9"),
    ("route", "{event_type}/{ordering_key}/{event_id}/{partition_key}"),
    ("route", "{{{event_type}}}"),
    ("route", "o'brien,é"),
    ("route", "{topic}"),
    ("route", "{event_type!r}"),
    ("route", "{event_type:}"),
    ("route", "{event_type.__class__}"),
    ("route", "{"),
    ("route", "}"),
    ("route", "{}"),
    ("route", "x" * 300),
    ("format", "raw"),
    ("format", "cloudevents-structured"),
    ("format", "cloudevents-binary"),
    ("format", "cloudevents"),
    ("ordering", "none"),
    ("ordering", "STRICT"),
    ("order_scope", "destination"),
    ("order_scope", "topic"),
    ("max_attempts", "10.0"),
    ("max_attempts", "1e6"),
    ("max_attempts", "1000001"),
    ("max_attempts", "ten"),
    ("max_attempts", "0"),
    ("max_attempts", "1.5"),
    ("max_attempts", "1e999"),
    ("max_attempts", "1_0"),
    ("max_attempts", "\u0661"),
    ("max_crashes", "1000"),
    ("max_crashes", "1001"),
    ("expires_after_seconds", "0.001"),
    ("expires_after_seconds", "0"),
    ("lease_seconds", "1"),
    ("lease_seconds", "0.5"),
    ("lease_seconds", "86401"),
    ("backoff_initial_seconds", "-0.0"),
    ("backoff_initial_seconds", "-1"),
    ("backoff_initial_seconds", "301"),
    ("backoff_multiplier", "0.5"),
    ("backoff_max_seconds", "0.5"),
    ("backoff_max_seconds", "nan"),
    ("backoff_jitter", "1"),
    ("backoff_jitter", "1.1"),
    ("backoff_jitter", "0,2"),
    ("on_dead", "hold"),
    ("on_dead", "stop"),
    ("max_attemps", "3"),
    ("it's", ""),
]
"""A cell by its column; some good, some bad."""

TABLES: Sequence[Sequence[Row]] = [
    [],
    [LAST],
    [{"destination": "default"}],
    [{"event_type": None, "ordering": "x", "on_dead": "y"}, {"event_type": "z"}],
    [{"event_type": "a"}, {"event_type": "a"}, LAST, {"event_type": "b"}, LAST],
    [dict.fromkeys(COLUMNS) | {"event_type": "*"}],
    [{"event_type": "a", "x": "1"}, {"event_type": "b", "x": "2", "y": None}, LAST],
    *([{"event_type": "ok.*"}, {"event_type": "x"} | {name: cell}, LAST] for name, cell in CELLS),
]
"""Whole seeds: no rows, the order of rows, unknown columns, and each of `CELLS` in a row of two."""

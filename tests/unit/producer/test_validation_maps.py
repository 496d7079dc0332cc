"""The rules for headers and metadata."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.core.settings import AppendSettings
from delta_outbox.producer.validation import Rejection, validate
from delta_outbox.publishers.protocol import RESERVED_HEADERS

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TEXT_MAP = pa.map_(pa.string(), pa.string())
TRACE = f"00-{'0af7651916cd43dd8448eb211c80319c'}-{'b7ad6b7169203331'}-01"

Pairs = list[tuple[str, str | None]]


def found_in(*maps: Pairs | None, name: str = "headers", **settings: Any) -> list[Rejection]:
    """Validate rows that have these maps."""
    count = len(maps)
    table = pa.table(
        {
            "event_id": [f"e{place}" for place in range(count)],
            "event_type": ["t"] * count,
            "payload": [b""] * count,
            name: pa.array(maps, TEXT_MAP),
        }
    )
    return list(validate(table, settings=AppendSettings(**settings), now=NOW).rejections)


def broken(*maps: Pairs | None, name: str = "headers", **settings: Any) -> list[tuple[int, str]]:
    """Say which rule is broken in which line."""
    return [(one.line, one.rule) for one in found_in(*maps, name=name, **settings)]


@pytest.mark.parametrize("name", ["headers", "metadata"])
def test_maps_may_be_null_empty_or_unicode(name: str) -> None:
    """No map, an empty one, empty values and names beyond ASCII pass."""
    assert [] == broken(None, [], [("a", "")], [("größe", "日本")], name=name)


@pytest.mark.parametrize("name", ["headers", "metadata"])
@pytest.mark.parametrize("key", ["", "a\nb", "\x00", "a\x9f"])
def test_names_are_printable(key: str, name: str) -> None:
    """A name is not empty and has no control characters."""
    assert [(2, "name")] == broken(None, [("good", "x"), (key, "x")], name=name)


@pytest.mark.parametrize("reserved", RESERVED_HEADERS)
def test_our_own_headers_are_refused(reserved: str) -> None:
    """A producer's header of a name that we set is refused, however it is written."""
    headers: Pairs = [(reserved.upper(), "x")]
    assert [(1, "reserved_header")] == broken(headers)
    assert [] == broken(headers, name="metadata")


@pytest.mark.parametrize("value", ["a\r\nb", "a\n", "\r", "a\x00b"])
def test_header_values_cannot_end_their_header(value: str) -> None:
    """CR, LF and NUL are refused in headers; metadata never leaves and may hold them."""
    assert [(1, "header_value")] == broken([("a", value)])
    assert [] == broken([("a", value)], name="metadata")


@pytest.mark.parametrize("name", ["headers", "metadata"])
def test_missing_values_are_refused(name: str) -> None:
    """A name without a value is refused."""
    assert [(1, "not_null")] == broken([("a", None)], name=name)


def test_name_given_twice_is_refused() -> None:
    """Spark's maps cannot hold a name twice, so nobody's second value gets lost."""
    assert [(2, "unique_names")] == broken([("a", "1")], [("a", "1"), ("b", ""), ("a", "2")])


def test_same_name_in_two_rows_is_no_repetition() -> None:
    """Rows do not disturb each other."""
    assert [] == broken([("a", "1"), ("b", "1")], [("a", "1")], None, [("b", "1"), ("a", "1")])


@pytest.mark.parametrize("name", ["headers", "metadata"])
@pytest.mark.parametrize(
    "value",
    [
        "",
        "nonsense",
        TRACE.upper(),
        TRACE + "-x",
        TRACE + "\n",
        " " + TRACE,
        "01" + TRACE[2:],
        "ff" + TRACE[2:],
        TRACE[:-1],
        f"00-{'0' * 32}-{'b' * 16}-01",
        f"00-{'a' * 32}-{'0' * 16}-01",
        f"00-{'g' * 32}-{'b' * 16}-01",
    ],
)
def test_bad_traceparent_is_refused(value: str, name: str) -> None:
    """Trace context has the form of W3C's Trace Context, in headers and in metadata."""
    assert (1, "traceparent") in broken([("TraceParent", value)], name=name)


def test_good_traceparent_passes() -> None:
    """The standard's own example passes, beside headers that only look similar."""
    assert [] == broken([("traceparent", TRACE), ("x-traceparent", "anything")])


def test_size_of_all_entries_is_limited() -> None:
    """Names and values of one event together may reach the limit, not pass it."""
    at_limit: Pairs = [("ab", "cd"), ("é", "xx")]
    assert [(2, "max_header_bytes")] == broken(
        at_limit, [*at_limit, ("z", "")], None, max_header_bytes=8
    )


def test_bytes_that_are_not_utf8_are_refused() -> None:
    """A value that is no UTF-8 is refused in its row; the rows around it are still checked."""
    values = pa.array([b"ok", b"\xff", b"ok\n"]).cast(pa.string(), safe=False)
    maps = pa.MapArray.from_arrays([0, 1, 2, 3], pa.array(["a", "a", "a"]), values)
    table = pa.table(
        {"event_id": list("abc"), "event_type": ["t"] * 3, "payload": [b""] * 3, "headers": maps}
    )
    found = validate(table, settings=AppendSettings(), now=NOW).rejections
    assert [(2, "utf8"), (3, "header_value")] == [(one.line, one.rule) for one in found]


def test_entries_of_a_null_map_do_not_count() -> None:
    """Arrow lets a null map own entries; nobody sees them, so nobody is blamed for them."""
    maps = pa.MapArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pa.array(["", "a"]), pa.array(["", "b"])
    )
    hidden = pa.Array.from_buffers(
        maps.type, 2, [pa.py_buffer(b"\x02"), maps.buffers()[1]], children=[maps.values]
    )
    assert hidden.is_null().to_pylist() == [True, False]
    table = pa.table(
        {"event_id": ["a", "b"], "event_type": ["t"] * 2, "payload": [b""] * 2, "headers": hidden}
    )
    assert () == validate(table, settings=AppendSettings(), now=NOW).rejections


@given(
    st.lists(
        st.none()
        | st.dictionaries(
            st.text(max_size=3) | st.sampled_from([*RESERVED_HEADERS, "traceparent"]),
            st.text(max_size=4) | st.just(TRACE),
            max_size=4,
        ),
        max_size=6,
    )
)
def test_rules_over_columns_agree_with_rules_over_rows(maps: list[dict[str, str] | None]) -> None:
    """Whatever the headers, whole-column rules reject exactly the rows that a plain loop does."""
    expected = set()
    for line, headers in enumerate(maps, start=1):
        for key, value in (headers or {}).items():
            if not key or any(ord(one) < 32 or 127 <= ord(one) < 160 for one in key):
                expected.add((line, "name"))
            if key.lower() in RESERVED_HEADERS:
                expected.add((line, "reserved_header"))
            if any(one in value for one in "\r\n\x00"):
                expected.add((line, "header_value"))
            if key.lower() == "traceparent" and value != TRACE:
                expected.add((line, "traceparent"))
    rows: list[Pairs | None] = [None if one is None else list(one.items()) for one in maps]
    found = found_in(*rows)
    assert expected == {(one.line, one.rule) for one in found}


def test_messages_never_hold_values() -> None:
    """A message names the header, never what it holds."""
    secret = "s3cret"
    found = found_in(
        [("a", f"{secret}\n"), ("traceparent", secret), ("outbox-event-id", secret)],
        max_header_bytes=1,
    )
    assert {"header_value", "traceparent", "reserved_header", "max_header_bytes"} == {
        one.rule for one in found
    }
    assert not any(secret in one.message for one in found)

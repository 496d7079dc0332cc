"""Patterns on event types: shell globs that mean the same in Python and in Spark."""

from __future__ import annotations

import fnmatch
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from delta_outbox.core.globs import glob_to_regex

# Few letters and every special character, so that random texts and patterns meet.
ALPHABET = "ab.c-!^[]*?\\&~|#$+(){}/_ \n'\u00e9\u2028\U0001f600"
PATTERNS = st.lists(
    st.one_of(
        st.sampled_from(ALPHABET),
        st.builds(lambda s: f"[{s}]", st.text("abc-!^&[\\]", min_size=1, max_size=6)),
    ),
    max_size=8,
).map("".join)


@given(pattern=PATTERNS, text=st.text(ALPHABET, max_size=8))
@example(pattern="*", text="a\n")
@example(pattern="a", text="a\n")
@example(pattern="[]-a]", text="]")
@example(pattern="[!]a-c]", text="b")
@example(pattern="[a-c-b]", text="-")
@example(pattern="[--a]", text=".")
@example(pattern="[!-a]", text="-")
@example(pattern="[a&&b]", text="&")
@example(pattern="[^a]", text="^")
def test_a_glob_matches_what_fnmatch_matches(pattern: str, text: str) -> None:
    """Whatever glob is accepted means what Python's own fnmatch says."""
    try:
        regex = glob_to_regex(pattern)
    except ValueError:
        assert "[" in pattern
        return
    assert fnmatch.fnmatchcase(text, pattern) == bool(re.search(regex, text))


@given(st.text(ALPHABET.translate(str.maketrans("", "", "*?[")), max_size=12))
def test_a_glob_without_wildcards_matches_itself_only(text: str) -> None:
    """Plain text matches itself and nothing around it."""
    regex = glob_to_regex(text)
    assert re.search(regex, text)
    assert not re.search(regex, f"{text}x")
    assert not re.search(regex, f"x{text}")


@given(PATTERNS)
def test_only_escapes_that_java_knows_too(pattern: str) -> None:
    """The regex holds no construct that Java reads differently: only escaped ASCII punctuation."""
    try:
        regex = glob_to_regex(pattern)
    except ValueError:
        return
    rest = regex.removeprefix("^").removesuffix(r"(?![\s\S])").replace(r"[\s\S]", "")
    assert all(re.fullmatch(r"[!-/:-@\[-`{-~]", char) for char in re.findall(r"\\(.)", rest))
    outside = re.sub(r"\[\^?(?:\\.|[^\]\\])*\]", "", re.sub(r"\\.", "", rest))
    assert not set("()|+?{}$.^[]&") & set(outside)


def test_a_run_of_stars_is_one() -> None:
    """Many stars do not make matching slow."""
    assert glob_to_regex("a*b") == glob_to_regex("a***b")


@pytest.mark.parametrize("pattern", ["order[", "[", "[]", "[!]", "a[bc", "[z-a]", "[ab-a]"])
def test_a_typing_error_is_refused(pattern: str) -> None:
    """A set that never closes or runs backwards is refused, not silently taken for text."""
    with pytest.raises(ValueError, match=r"needs its|runs backwards"):
        glob_to_regex(pattern)

"""Whatever text comes as an argument, it stays a value: no SQL, no template, no terminal code."""

from __future__ import annotations

import contextlib
import io
import json
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.core.test_text_literal import as_spark_reads
from tests.unit.macro_namespace import Macros, Refused

from delta_outbox.cli.main import main
from delta_outbox.core.errors import WrongUsage
from delta_outbox.operations.requests import kill_request, release_request, replay_request

NASTY = [
    "x' or '1'='1",
    '"; drop table `outbox`.`outbox_events`; --',
    "` /* */ -- # \\' \\\\' \\",
    "{{ env_var('HOME') }}{% set x = 1 %}{% raw %}{# #}",
    "${env:HOME} ${spark.app.name} :id ? @x $(id) `id`",
    "\u202egnp.exe e\u0301\u0301\u0301 \u2028\u2029 \U0001f600",
    "nul\0 esc\x1b[2J\x9b2J del\x7f bell\a cr\r\n",
    "\ud800 half",
    "'" * 1000,
    "x" * 2_000_000,
]
TEXT = st.one_of(
    st.sampled_from(NASTY),
    st.text("'\"`\\;-/*{}%#$:?\0\n\r\x1b\u202e\u0301\ud800 ab", max_size=30),
    st.text(max_size=30),
)
LITERAL = re.compile(r"'(?:[^'\\]|\\[\s\S])*'")
VARIABLES: dict[str, object] = {}
MACROS = Macros("requests", "storage", "policies", "lifecycle", variables=VARIABLES)
NAME = re.compile(r"\s*[A-Za-z_][A-Za-z0-9_]{0,127}\s*", re.ASCII)


def literals(sql: str) -> tuple[str, list[str]]:
    """Return a text of SQL without its literals, and what these mean."""
    return LITERAL.sub("?", sql), [as_spark_reads(found) for found in LITERAL.findall(sql)]


@settings(deadline=None)
@given(ids=st.lists(TEXT, max_size=4), error=TEXT, reason=TEXT, actor=TEXT)
@example(ids=NASTY[:5], error=NASTY[2], reason=NASTY[3], actor=NASTY[4])
def test_arguments_are_refused_or_values(
    ids: list[str], error: str, reason: str, actor: str
) -> None:
    """Text that an operation accepts reaches SQL as literals that mean it, and as nothing else;
    what it refuses is one short printable sentence.
    """
    who = {"reason": reason, "actor": actor}
    sentences: list[str] = []
    asked: list[tuple[Any, dict[str, Any]]] = [
        (replay_request, {"state": "DEAD", "event_ids": ids, "error": error}),
        (replay_request, {"state": "DEAD", "event_type": error}),
        (replay_request, {"state": error}),
        (replay_request, {"state": "DEAD", "since": error, "until": error}),
        (kill_request, {"event_ids": ids}),
        (release_request, {"event_ids": ids, "claim_ids": ids}),
    ]
    for make, arguments in asked:
        try:
            request = make(**arguments, **who)
        except WrongUsage as refused:
            sentences.append(str(refused))
            continue
        checked = {name: getattr(request, name) for name in ("actor", "reason", "state", "error")}
        checked |= {
            "event_type_regex": request.event_type_regex,
            "event_ids": request.event_ids,
            "claim_ids": request.claim_ids,
        }
        plain, meant = literals(str(MACROS.request_row(request.kind, "c", checked)))
        values = [request.kind, "c", *[one for one in checked.values() if isinstance(one, str)]]
        values += [*(request.event_ids or ()), *(request.claim_ids or ())]
        assert sorted(values) == sorted(meant)
        assert re.fullmatch(r"[a-z_\s(),<>?]*", plain), plain
    assert sentences
    assert all(said.isprintable() and len(said) < 2000 for said in sentences)


@settings(max_examples=settings().max_examples // 2)
@given(TEXT)
@example(NASTY[-1])
def test_a_command_line_ends_with_a_sentence(text: str) -> None:
    """Hostile words on a command line that break a rule end in one document: no trace, nothing
    that steers a terminal, and no megabytes.
    """
    text += "'"  # by itself it may be a number, a state, a column, an instant
    lines = [
        ["replay", "--state", text, "--reason", "r", "--actor", "a"],
        ["replay", "--state", "DEAD", "--since", text, "--reason", "r", "--actor", "a"],
        ["kill", "--reason", "r", "--actor", "a", "--", "x" * 1001, text],
        ["list", "--sort", text],
        ["relay", "--once", "--limit", text],
    ]
    for words in lines:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["--json", *words])
        assert (2, "") == (code, err.getvalue())
        document = json.loads(out.getvalue())
        assert "WRONG_USAGE" == document["error"]["code"]
        assert len(out.getvalue()) < 3000
        assert out.getvalue().strip().isprintable()
        out.getvalue().encode()


@settings(deadline=None)
@given(
    TEXT.filter(
        lambda text: not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", text.strip(), re.ASCII)
    )
)
def test_a_schema_is_an_identifier(text: str) -> None:
    """The variable outbox_schema is letters, digits and underscores, or the run ends."""
    with pytest.raises(Refused, match="outbox_schema must be letters, digits and underscores") as e:
        MACROS.schema_name(text)
    assert len(str(e.value)) < 500
    assert "outbox_2" == str(MACROS.schema_name(" outbox_2 ")).strip()


@settings(deadline=None)
@given(TEXT.filter(lambda text: text != ""))
@example("2026-01-31 12:00:00' or true --")
@example("2026-01-31\n")
def test_as_of_is_an_instant(text: str) -> None:
    """The variable as_of is an instant, or the run ends."""
    VARIABLES["as_of"] = text
    with pytest.raises(Refused, match="as_of must be an instant") as caught:
        MACROS.now_utc()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "text",
    ["2026-01-31", "2026-01-31 12:00:00", "2026-11-01T12:00:00.12Z", "2026-11-01T12:00+01:00"],
)
def test_good_instants_are_literals(text: str) -> None:
    """An instant reaches SQL as a literal."""
    VARIABLES["as_of"] = text
    assert f"cast('{text}' as timestamp)" == str(MACROS.now_utc()).strip()

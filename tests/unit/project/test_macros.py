"""What holds for the text of all our macros and models."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TAILS = (ROOT / "python/delta_outbox/projection/tails.py").read_text("utf-8")
FOLDS = ("new_events", "transitions", "all")
COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
ALTERS_THE_SESSION = re.compile(
    r"\b(?:re)?set\s+(?:spark|time zone)\b|\btemp(?:orary)?\s+(?:view|function|variable)"
    r"|\bcache\s+(?:lazy\s+)?table\b|\buse\s+(?:schema|database|catalog)\b",
    re.IGNORECASE,
)


def test_no_statement_alters_the_session():
    """What our macros and models run sets nothing and leaves no view in the session, which the
    threads of a dbt share with models of others.
    """
    files = [file for folder in ("macros", "models") for file in (ROOT / folder).rglob("*.sql")]
    assert len(files) > 100
    found = {
        file.relative_to(ROOT).as_posix(): hits
        for file in files
        if (hits := ALTERS_THE_SESSION.findall(COMMENT.sub("", file.read_text(encoding="utf-8"))))
    }
    assert {} == found


def test_every_text_that_python_asks_for_is_compiled():
    """What Python fills in or reads by name is among the texts of `relay_sql`."""
    compiled = set(
        re.findall(
            r"^--- (\w+)$",
            (ROOT / "macros/operations/relay_sql.sql").read_text("utf-8"),
            re.MULTILINE,
        )
    )
    asked = {
        name
        for file in (ROOT / "python").rglob("*.py")
        for name in re.findall(
            r"statements\.(?:fill\(|texts\[)\s*\"(\w+)\"", file.read_text("utf-8")
        )
    }
    asked |= {f"{kind}_{fold}" for kind in ("fold", "read_view") for fold in FOLDS}
    asked |= set(re.findall(r"\b(?:first|sole|no|last)_(?:copies|transitions)\b", TAILS))
    assert len(asked) > 15
    assert set() == asked - compiled


def test_a_macro_is_read_on_one_screen():
    """No macro is long, but for the list of the texts that Python asks for."""
    lines = {
        file.stem: len(file.read_text("utf-8").splitlines())
        for file in (ROOT / "macros").rglob("*.sql")
    }
    assert ["relay_sql"] == [name for name, count in lines.items() if count > 90]

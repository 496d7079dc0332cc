"""What holds for the text of all our macros and models."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
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

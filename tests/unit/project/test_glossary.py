"""The glossary: short, and kept by the names in the code and in the SQL."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?!term|-)([^|]+) \| ([^|]+) \|$", re.MULTILINE)
GONE = {
    "picture": "read view",
    "takeable": "eligible",
    "heads": "latest versions",
    "loose": "unowned",
    "troubled": "retry",
    "barred": "blocked",
    "withheld": "blocked",
    "flying": "in flight",
    "landed": "completed",
    "unsettled": "unresolved",
    "settled": "resolved",
    "said": "message, receipt",
    "outlets": "destinations",
    "seat": "producer slot",
    "seats": "producer slot",
    "generation": "epoch",
}
"""Words that names are no longer made of, and what they are made of instead."""
SETTLE = "a term of the Railway: requests settle"
STORED = "a key of the plans of `invariants`, which stand in the log"
ALLOWED = {
    ("python/delta_outbox/railway/algorithms/history.py", "settled"): SETTLE,
    ("python/delta_outbox/railway/algorithms/shared_steps.py", "settled"): SETTLE,
    ("python/delta_outbox/railway/algorithms/steps.py", "settled"): SETTLE,
    ("macros/invariants/invariant_range.sql", "heads"): STORED,
    ("macros/invariants/record_verification.sql", "heads"): STORED,
}
"""Words that are gone and still stand in names of a file: why."""
COMMENT = re.compile(r"\{#.*?#\}|--[^\n]*", re.DOTALL)
TEXT = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")


def test_a_term_takes_two_sentences() -> None:
    """Each term is explained once, in two sentences."""
    rows = ROW.findall(GLOSSARY)
    assert len(rows) > 25
    names = [name for name, _ in rows]
    assert sorted(set(names)) == sorted(names)
    assert dict.fromkeys(names, 2) == {
        name: len(re.findall(r"\.(?=\s|$)", meaning)) for name, meaning in rows
    }


def test_words_that_are_gone_do_not_come_back() -> None:
    """No name in the code or the SQL, nor of a file, is made of a word that was replaced."""
    code = dict.fromkeys((ROOT / "python" / "delta_outbox").rglob("*.py"), _of_python)
    sql = dict.fromkeys([*ROOT.glob("macros/**/*.sql"), *ROOT.glob("models/**/*.sql")], _of_sql)
    found = set()
    for file, names in (code | sql).items():
        words = _words({*names(file.read_text(encoding="utf-8")), file.stem})
        found |= {(file.relative_to(ROOT).as_posix(), word) for word in words & set(GONE)}
    assert set(ALLOWED) == found


def _of_python(source: str) -> set[str]:
    """Return the names of a module."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


def _of_sql(source: str) -> set[str]:
    """Return the names of a macro or a model; quoted text of several words is no name."""
    texts = TEXT.sub(lambda text: "" if " " in text[0] else text[0], COMMENT.sub("", source))
    return set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", texts))


def _words(names: set[str]) -> set[str]:
    """Return the words that names are made of."""
    return {
        word.lower() for name in names for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    }

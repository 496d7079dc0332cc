"""The glossary: short, and kept by the names in the code."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
TERMS, GONE = GLOSSARY.split("## Words that are gone")
ROW = re.compile(r"^\| (?!term|not|-)([^|]+) \| ([^|]+) \|$", re.MULTILINE)
# There these words mean other things: a drawing, the connections of a proxy.
ELSEWHERE = ("railway", "testing", "cli/workflows.py")


def test_a_term_takes_two_sentences() -> None:
    """Each term is explained once, in two sentences."""
    rows = ROW.findall(TERMS)
    assert len(rows) > 25
    names = [name for name, _ in rows]
    assert sorted(set(names)) == sorted(names)
    assert dict.fromkeys(names, 2) == {
        name: len(re.findall(r"\.(?=\s|$)", meaning)) for name, meaning in rows
    }


def test_words_that_are_gone_do_not_come_back() -> None:
    """No name in the code, nor of a module, is made of a word that the glossary has replaced."""
    gone = {word for words, _ in ROW.findall(GONE) for word in words.split(", ")}
    package = ROOT / "python" / "delta_outbox"
    found: dict[str, set[str]] = {}
    for file in sorted(package.rglob("*.py")):
        name = file.relative_to(package).as_posix()
        if not name.startswith(ELSEWHERE):
            used = (_words_of(file.read_text(encoding="utf-8")) | {*file.stem.split("_")}) & gone
            if used:
                found[name] = used
    assert {} == found


def _words_of(source: str) -> set[str]:
    """Return the words that the names of a module are made of."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    names = {token.string for token in tokens if token.type == tokenize.NAME}
    return {
        word.lower() for name in names for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    }

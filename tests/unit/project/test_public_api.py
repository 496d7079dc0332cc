"""What users import: the names that are promised, and no others."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "api.md"
PUBLIC = (
    "delta_outbox",
    "delta_outbox.consumer",
    "delta_outbox.publishers",
    "delta_outbox.railway",
    "delta_outbox.testing",
    "delta_outbox.testing.conformance",
    "delta_outbox.testing.publishers",
    "delta_outbox.testing.workflows",
)
# What pytest imports by name.
ALSO = ("delta_outbox.testing.workflows.fixtures",)
IMPORTED = re.compile(r"^ *(?:from|import) (delta_outbox[\w.]*)", re.MULTILINE)
HEAVY = ("pyspark", "py4j", "dbt", "pyarrow", "numpy", "pandas", "confluent_kafka", "pytest")


def documented() -> dict[str, set[str]]:
    """Return the names of each public module as docs/api.md has them."""
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = {}
    for section in sections:
        (module,) = re.findall(r"^`(delta_outbox[\w.]*)`$", section, re.MULTILINE)[:1]
        (names,) = re.findall(r"^Names: (.+)$", section, re.MULTILINE)
        found[module] = set(re.findall(r"`(\w+)`", names))
    return found


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name: str) -> None:
    """Each name that a public module lists can be imported, and is listed once."""
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, one) for one in module.__all__)


def test_the_page_has_every_public_name() -> None:
    """docs/api.md names what can be imported, and nothing else."""
    expected = {name: set(importlib.import_module(name).__all__) for name in PUBLIC}
    assert expected == documented()


def test_an_unknown_name_is_refused() -> None:
    """A name that is not public is no attribute of the package, and the error says so."""
    package = importlib.import_module("delta_outbox")
    with pytest.raises(AttributeError, match="has no attribute 'Relays'"):
        _ = package.Relays


@pytest.mark.parametrize(
    ("name", "kept_away"),
    [
        ("delta_outbox", HEAVY),
        ("delta_outbox.publishers", HEAVY),
        ("delta_outbox.railway", HEAVY),
        ("delta_outbox.testing", HEAVY),
        ("delta_outbox.testing.publishers", ("pyspark", "py4j", "dbt")),
        ("delta_outbox.testing.workflows", HEAVY),
    ],
)
def test_importing_it_imports_nothing_heavy(name: str, kept_away: tuple[str, ...]) -> None:
    """Whoever writes a publisher, a workflow or a test waits for neither Spark nor dbt."""
    code = f"import sys, {name}; print([one for one in {kept_away!r} if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == done.stdout.strip()


def examples() -> Iterator[tuple[str, str]]:
    """Yield the examples, and the blocks of Python in the README and the docs for users."""
    for file in sorted((ROOT / "examples").rglob("*.py")):
        yield str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if "decisions" not in page.parts:
            blocks = re.findall(
                r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
            )
            yield str(page.relative_to(ROOT)), "\n".join(blocks)


def test_examples_import_only_what_is_public() -> None:
    """The README, the docs for users and the examples import public modules alone."""
    found = {
        (where, name)
        for where, text in examples()
        for name in IMPORTED.findall(text)
        if name not in (*PUBLIC, *ALSO)
    }
    assert set() == found

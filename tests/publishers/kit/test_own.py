"""A publisher of one's own: docs/publishers/own.md and examples/publisher."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from outbox_line import LinePublisher

from delta_outbox.publishers.registry import ENTRY_POINT_GROUP, find_publisher
from delta_outbox.testing.publishers import CHECKS, NAMES

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "publisher"
PAGE = (ROOT / "docs" / "publishers" / "own.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("place", "name"), [(0, "outbox_line.py"), (1, "test_outbox_line.py")])
def test_the_page_shows_the_example(place: int, name: str):
    """The page shows publisher and adapter of the example, to the letter."""
    assert (EXAMPLE / name).read_text(encoding="utf-8") == _blocks("python")[place]


def test_the_publisher_on_the_page_is_short():
    """A whole publisher takes fewer than 40 lines of code, and the page says how many."""
    [code, _] = _blocks("python")
    documentation: set[int] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            first = node.body[0]
            assert first.end_lineno is not None
            documentation |= set(range(first.lineno, first.end_lineno + 1))
    lines = [
        line
        for number, line in enumerate(code.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#") and number not in documentation
    ]
    assert len(lines) < 40
    assert f"{len(lines)} lines of code" in PAGE


def test_the_code_on_the_page_runs(tmp_path: Path):
    """The publisher on the page passes the kit by the adapter on the page, as pytest shows it."""
    publisher, adapter = _blocks("python")
    (tmp_path / "outbox_line.py").write_text(publisher, encoding="utf-8")
    (tmp_path / "test_outbox_line.py").write_text(adapter, encoding="utf-8")
    shutil.copy(EXAMPLE / "line_server.py", tmp_path)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    assert f"{len(NAMES)} passed" in ended.stdout


def test_the_page_lists_the_checks():
    """The table on the page is that of the code: number, rule and what it needs."""
    rows = [
        f"| {one.number} | {one.says} | {', '.join(f'`{need}`' for need in sorted(one.needs))} |"
        for one in CHECKS
    ]
    assert rows == re.findall(r"^\| P-\d+ .*$", PAGE, re.MULTILINE)


def test_the_entry_point_is_found(tmp_path: Path):
    """Once the package of the example is installed, `type = "line"` is its publisher."""
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("__pycache__"))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    install += ["--no-build-isolation", "--target", str(tmp_path / "site"), str(project)]
    subprocess.run(install, check=True)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from delta_outbox.publishers.registry import find_publisher, known_types; "
        "found = find_publisher('line', destination='line'); "
        "assert 'line' in known_types(); "
        "print(found.__module__, found.__qualname__, sys.modules[found.__module__].__file__)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "site")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert ["outbox_line", "LinePublisher", str(tmp_path / "site" / "outbox_line.py")] == said


def test_the_page_shows_the_entry_point_of_the_example():
    """What the page says of an entry point and of `type` is what the example and registry have."""
    [settings, entry] = map(tomllib.loads, _blocks("toml"))
    package = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))
    points = entry["project"]["entry-points"]
    assert points == package["project"]["entry-points"]
    assert [ENTRY_POINT_GROUP] == list(points)
    table = settings["publishers"]["line"]
    assert find_publisher(table.pop("type"), destination="line") is LinePublisher
    LinePublisher.validate(table)


def test_the_kit_needs_neither_pytest_nor_spark():
    """Whoever imports the kit gets no test framework, no Spark and no broker's client."""
    code = (
        "import sys, delta_outbox.testing.publishers.__main__; "
        "print(sorted({'pytest', 'pyspark', 'confluent_kafka'} & set(sys.modules)))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert said == "[]\n"

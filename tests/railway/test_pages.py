"""The pages of the workflows: what they tell to type works, what they name is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs" / "railway"
BLOCK = re.compile(r"^```(?P<kind>sh|python)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_tutorial_works_as_it_stands(tmp_path: Path) -> None:
    """Whoever writes its files and runs its commands sees what it says."""
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
    }
    told = []
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    for block in BLOCK.finditer(page):
        if block["kind"] == "python":
            name = block["text"].splitlines()[0].removeprefix("# ")
            (tmp_path / name).write_text(block["text"])
            continue
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block["text"]],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert 0 == done.returncode, done.stdout
        told.append(done.stdout)
    new, _, looked, forgetful, tested, lagging = told
    assert "3 passed" in new
    assert "ticket_return: 4 tasks, nothing wrong." in looked
    assert "Written: docs/workflows/ticket_return.md" in looked
    assert "ticket_return.give_money_back: [settles_within_missing]" in forgetful
    assert "exit code 2" in forgetful
    assert "3 passed" in tested
    assert "2 effects where at most 1 is promised: [4200, 4200]" in lagging
    assert (tmp_path / "docs" / "workflows" / "ticket_return.md").exists()
    count = (
        "from test_ticket_return import *\n"
        "print(len(explore(ticket_return, build, TRIGGER, depth=2).runs))"
    )
    done = subprocess.run(
        [sys.executable, "-c", count], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    number = int(done.stdout)
    assert f"it has tried {number} scripts" in page
    assert f"the first one is {number} tests" in page


def test_the_module_of_two_pages_works_as_it_stands(tmp_path: Path) -> None:
    """The module of tasks.md is checked with its settings, and tested by what testing.md shows."""
    text = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("tasks.md", "testing.md"))
    for name in ("stock.py", "test_stock.py"):
        parts = [one["text"] for one in BLOCK.finditer(text) if one["text"].startswith(f"# {name}")]
        assert 4 <= len(parts)
        (tmp_path / name).write_text("\n\n".join(parts))
    orders = DOCS.parents[1] / "examples" / "orders"
    for name in ("http_clients.py", "order_creation.py"):
        (tmp_path / name).write_text((orders / name).read_text(encoding="utf-8"))
    (settings,) = re.findall(r"^```toml\n(\[third_parties.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "outbox.toml").write_text(f'{settings}[workflows]\nmodules = ["stock"]\n')
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    for words, says in (
        (["outbox", "workflow", "check"], "WAREHOUSE_TOKEN: not set"),
        (["pytest", "-q", "-p", "no:cacheprovider"], "5 passed"),
    ):
        done = subprocess.run(
            [str(Path(sys.executable).parent / words[0]), *words[1:]],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert 0 == done.returncode, done.stdout + done.stderr
        assert says in done.stdout


def test_the_links_of_the_pages_lead_somewhere() -> None:
    """Each link to a file of the repository is good, from every page of the workflows."""
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_test_that_the_table_of_the_source_names_exists() -> None:
    """Each row names a test that is there."""
    page = (DOCS / "source.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"`(\w+)` is `([\w/.]+\.py)`", page))
    assert 16 == len(files)
    rows = [line for line in page.splitlines() if line.startswith("| ") and " | " in line]
    for row in rows:
        *_, kept, shown = row.strip("|").split(" | ")
        if kept.strip() == "kept by":
            continue
        for short, test in re.findall(r"`(\w+)::(\w+)`", shown):
            assert f"def {test}(" in (DOCS.parents[1] / files[short]).read_text(), row
        assert "::" in shown or "conditions.md" in shown, row

"""What `outbox workflow new` writes keeps the rules, and its test passes as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from delta_outbox.railway.scaffold import CATEGORIES, COMPROMISES, QUESTIONS, Answers, files

ROOT = Path(__file__).resolve().parents[2]

KINDS = [
    *(
        Answers(name=f"pay_{one.lower()}", category=one, third_party="bank")
        for one in CATEGORIES.values()
    ),
    *(
        Answers(name=f"tell_{one}", category="BlackBox", third_party=f"tell_{one}", compromise=one)
        for one in COMPROMISES
    ),
]
MODULES = [f"{one.name}.py" for one in KINDS]
TOOLS = {
    "pytest": ["-q", "-c", "/dev/null", "--rootdir=.", "-p", "no:cacheprovider"],
    "mypy": ["--strict", "--config-file=", "--follow-imports=silent", *MODULES],
    "ruff format": ["format", "--isolated", "--line-length=100", "--check", "--diff"],
    "ruff": ["check", "--isolated", "--select", "E,F,D,I,UP", "--ignore", "D107,D203,D213,E501"],
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a new workflow of each kind."""
    folder: Path = tmp_path_factory.mktemp("project")
    for answers in KINDS:
        for name, text in files(answers).items():
            (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("tool", TOOLS)
def test_a_new_workflow_is_right_as_it_stands(tool: str, project: Path, mypy_cache: Path) -> None:
    """Its tests pass, and a type checker and a linter have nothing to say."""
    done = subprocess.run(
        [sys.executable, "-m", tool.split()[0], *TOOLS[tool]],
        cwd=project,
        env={**os.environ, "MYPY_CACHE_DIR": str(mypy_cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr


def test_a_new_test_notices_a_task_that_calls_nobody(tmp_path: Path) -> None:
    """Tests fail for a misspelt client, and for a call that was left out."""
    answers = Answers(name="pay", category="BlackBox", third_party="bank")
    for name, text in files(answers).items():
        (tmp_path / name).write_text(text)
    module = tmp_path / "pay.py"
    right = module.read_text()
    call = 'self.client.act(task_id, trigger.start.id, "done")'
    cases = {
        call.replace("client", "clent"): ("3 failed", "before it had called bank"),
        "pass": ("3 failed", "so nothing was tested"),
    }
    for wrong, says in cases.items():
        module.write_text(right.replace(call, wrong))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *TOOLS["pytest"]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert all(one in done.stdout for one in says), done.stdout


def test_the_questions_are_those_of_the_decision_tree() -> None:
    """The first yes decides, and without one the task is a black box."""
    assert ["ToDo", "Idempotent", "PessimisticLock", "BlackBox"] == list(CATEGORIES.values())
    page = (ROOT / "docs" / "railway" / "categories.md").read_text(encoding="utf-8")
    tree = page.split("```mermaid")[1].split("```")[0]
    asked = re.findall(r'\{"(.*?)\?"\}', tree)
    assert len(QUESTIONS) == len(asked)
    for told, (_, question) in zip(asked, QUESTIONS, strict=True):
        assert question.startswith(told)

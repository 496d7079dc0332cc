"""What `outbox workflow new` writes keeps the rules, and its test passes as it stands."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from delta_outbox.railway.scaffold import CATEGORIES, COMPROMISES, Answers, files

KINDS = [
    *(Answers(name="pay_back", category=one, third_party="bank") for one in CATEGORIES.values()),
    *(
        Answers(name="pay_back", category="BlackBox", third_party="pay_back", compromise=one)
        for one in COMPROMISES
    ),
]


@pytest.mark.parametrize("answers", KINDS, ids=lambda one: f"{one.category}-{one.compromise}")
def test_a_new_workflow_is_right_as_it_stands(answers: Answers, tmp_path: Path) -> None:
    """Its test passes, a type checker and a linter have nothing to say."""
    for name, text in files(answers).items():
        (tmp_path / name).write_text(text)
    for command in (
        ["pytest", "-q", "-c", "/dev/null", "--rootdir=.", "-p", "no:cacheprovider"],
        ["mypy", "--strict", "--config-file=", "--follow-imports=silent", "pay_back.py"],
        ["ruff", "check", "--isolated", "--select", "E,F,I,D,UP", "--ignore", "D107,D203,D213"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert 0 == done.returncode, done.stdout + done.stderr


def test_the_questions_are_those_of_the_decision_tree() -> None:
    """The first yes decides, and without one the task is opaque."""
    assert ["Idempotent", "PessimisticLock", "ToDo", "BlackBox"] == list(CATEGORIES.values())
    assert all(one != other for one, other in pairwise(CATEGORIES))

"""Commits that the process which serves a home puts in place for others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from delta_outbox.core.errors import ServerUnreachable
from delta_outbox.delta.files.served_commits import COMMIT, ServedStore, put_for_others
from delta_outbox.runtime.log_folder import commit_file
from delta_outbox.runtime.questions import QUESTION_BYTES, answering
from delta_outbox.runtime.served_home import Served

SERVED = Served(
    address="sc://localhost:15002",
    token="a-token-of-forty-three-characters-0123456789",
    pid=1,
    since=datetime(2026, 11, 1, tzinfo=UTC),
    home=Path("/home"),
)
ACTIONS: list[Mapping[str, Any]] = [
    {"commitInfo": {"timestamp": 1, "operation": "WRITE", "userMetadata": "tag"}},
    {"ü": 1},
]


@pytest.mark.parametrize("put", [True, False, None])
def test_the_server_says_whether_a_commit_is_there(tmp_path: Path, put: bool | None) -> None:
    """What is asked is the text of the commit, by its place; the word of the server is the answer,
    and without one the commit is Spark's to make.
    """
    asked: list[Mapping[str, Any]] = []

    def answer(question: Mapping[str, Any]) -> Mapping[str, Any]:
        asked.append(question)
        return {"put": put}

    with answering(SERVED.token, answer) as port:
        store = ServedStore(replace(SERVED, questions_port=port), tmp_path)
        assert put is store.put(7, ACTIONS, tag="tag")
        assert store.put(7, [{"add": "ü" * QUESTION_BYTES}], tag="tag") is None
    [question] = asked  # what is too long for a question is not asked
    text = question[COMMIT].pop("text")
    assert ACTIONS == [json.loads(line) for line in text.split("\n")]
    assert {"folder": str(tmp_path), "version": 7, "tag": "tag"} == question[COMMIT]


def test_an_answer_that_is_lost_is_found_in_the_log(tmp_path: Path) -> None:
    """If the server dies before it answers, the commit with our tag says that it is there, one with
    another tag that somebody else was first, and without any nobody knows.
    """

    def die(question: Mapping[str, Any]) -> Mapping[str, Any]:
        raise RuntimeError

    with answering(SERVED.token, die) as port:
        store = ServedStore(replace(SERVED, questions_port=port), tmp_path)
        with pytest.raises(ServerUnreachable):
            store.put(7, ACTIONS, tag="tag")
        commit_file(tmp_path, 7).write_text("\n".join(map(json.dumps, ACTIONS)))
        assert store.put(7, ACTIONS, tag="tag") is True
        assert store.put(7, ACTIONS, tag="mine") is False


def test_the_server_commits_to_its_own_home_only(tmp_path: Path) -> None:
    """A place outside of the warehouse is refused before Spark is asked for anything."""
    nobody: Any = None
    for folder in (tmp_path, tmp_path / "warehouse" / ".." / "other", Path("/")):
        question = {"folder": str(folder), "version": 0, "text": "{}", "tag": "tag"}
        assert {"put": None} == put_for_others(nobody, tmp_path / "warehouse", question)
    assert not commit_file(tmp_path, 0).exists()

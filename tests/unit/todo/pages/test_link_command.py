"""`outbox todo link`: who makes a link, and from what."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.unit.todo.pages.site import SECRET

from delta_outbox.cli.main import main
from delta_outbox.workflow_engine.item_links import Links


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home without an outbox."""
    (tmp_path / "warehouse").mkdir()
    monkeypatch.setenv("OUTBOX_HOME", str(tmp_path))
    monkeypatch.setenv("LINK_SECRET", SECRET)
    return tmp_path


def made(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, object]]:
    """Run the command, and return its exit code and its document."""
    code = main(["todo", "link", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_link_of_the_command_opens_its_item(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The link is signed by the secret of the settings, and ends when it says so."""
    (home / "outbox.toml").write_text('[todo]\nlink_secret = "${LINK_SECRET}"\n')
    code, document = made(capsys, "review a/1", "--until", "2026-12-01T12:00:00Z")
    assert (0, "2026-12-01T12:00:00.000000Z") == (code, document["until"])
    query = parse_qs(urlsplit(str(document["path"])).query)
    parts = query["id"][0], query["until"][0], query["signature"][0]
    links = Links(SECRET)
    assert links.opens(*parts, now=datetime(2026, 12, 1, 11, tzinfo=UTC))
    assert not links.opens(*parts, now=datetime(2026, 12, 1, 12, tzinfo=UTC))
    assert "review a/1" == parts[0]


def test_without_a_secret_there_are_no_links(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who has set no secret is told how to."""
    code, document = made(capsys, "review-1")
    error = document["error"]
    assert isinstance(error, dict)
    assert (2, "BAD_SETTINGS") == (code, error["code"])
    assert "link_secret" in error["message"]

"""Whom the server of a home answers: who sees the same outbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_outbox.cli.answers import question_of, settings_of, told_by_server, what_is_seen
from delta_outbox.cli.parser import parse
from delta_outbox.core.clock import CLOCK_OFFSET_VARIABLE
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.settings_file import load_settings

SETTINGS = '[publishers.default]\ntype = "null"\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a home that is named, beside the working folder."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    home = Home(root=tmp_path / "home").create()
    monkeypatch.setenv("OUTBOX_HOME", str(home.root))
    return home


@pytest.mark.parametrize("place", ["nowhere", "home", "folder", "named"])
def test_settings_are_those_of_whoever_asks(
    home: Home, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the settings of whoever asks lie, the server finds the same, whatever it would find
    for itself.
    """
    named = tmp_path / "named.toml"
    file = {"home": home.settings, "folder": Path("outbox.toml"), "named": named}.get(place)
    if file is not None:
        file.write_text(SETTINGS)
    asked = load_settings(home=home.root, path=named if place == "named" else None)
    question = question_of(["status"], asked)

    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    (tmp_path / "other" / "outbox.toml").write_text("[relay]\nbatch_size = 7\n")
    monkeypatch.setenv("OUTBOX_CONFIG", str(tmp_path / "other" / "outbox.toml"))
    assert question["sees"] == what_is_seen(settings_of(question, home))


def test_who_sees_something_else_is_told_apart(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another clock, another schema and other settings of a relay are something else; the secrets
    of a destination are not told.
    """
    home.write_settings('[publishers.default]\ntype = "kafka"\nsasl.password = "${PASSWORD}"\n')
    monkeypatch.setenv("PASSWORD", "hunter2")
    settings = load_settings(home=home.root)
    before = what_is_seen(settings)
    assert "hunter2" not in str(question_of(["status"], settings))
    monkeypatch.setenv(CLOCK_OFFSET_VARIABLE, "60")
    assert before != what_is_seen(settings)
    monkeypatch.delenv(CLOCK_OFFSET_VARIABLE)
    monkeypatch.setenv("OUTBOX_SCHEMA", "other")
    assert before != what_is_seen(settings)
    monkeypatch.delenv("OUTBOX_SCHEMA")
    home.write_settings("[relay]\nbatch_size = 7\n")
    assert before != what_is_seen(load_settings(home=home.root))


def test_nobody_is_asked_where_nothing_is_up(home: Home) -> None:
    """Where the home is not served, a command is not told anything."""
    assert told_by_server(["status"], parse(["status"])) is None

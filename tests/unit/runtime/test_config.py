"""Settings: where they are found, what they may be, and what is never shown."""

from __future__ import annotations

import logging
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.unit.runtime.settings_files import load, refusal

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.settings import dotted
from delta_outbox.runtime.settings_file import (
    AppendSettings,
    PublisherSettings,
    RelaySettings,
    SecretMapping,
    Settings,
    load_settings,
)


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    """An outbox without settings delivers to JSON lines below its home."""
    found = load_settings(home=tmp_path, environ={}, folder=tmp_path)
    jsonl = PublisherSettings(
        type="jsonl", settings=SecretMapping({"path": str(tmp_path / "delivered")})
    )
    assert Settings(publishers={"default": jsonl}) == found
    assert (50_000, 1.0, 3600.0, None) == (
        found.relay.batch_size,
        found.relay.poll_seconds,
        found.relay.clock_skew_seconds,
        found.relay.parallelism,
    )
    assert (921_600, 7) == (found.append.max_payload_bytes, found.append.horizon_days)


def test_first_file_found_wins(tmp_path: Path) -> None:
    """--config, then OUTBOX_CONFIG, then the home's file, then the folder's; nothing is merged."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    home.mkdir()
    folder.mkdir()
    files = [tmp_path / "flag.toml", folder / "named.toml", home / "outbox.toml"]
    files.append(folder / "outbox.toml")
    keys = ["batch_size = 1", "max_lanes = 1", "poll_seconds = 1", "clock_skew_seconds = 1"]
    for file, key in zip(files, keys, strict=True):
        file.write_text(f"[relay]\n{key}\n")
    environ = {"OUTBOX_CONFIG": "named.toml"}
    found = [
        load_settings(home=home, path=files[0], environ=environ, folder=folder),
        load_settings(home=home, environ=environ, folder=folder),
        load_settings(home=home, environ={"OUTBOX_CONFIG": ""}, folder=folder),
        load_settings(environ={}, folder=folder),
    ]
    assert files == [one.source for one in found]
    assert [1, 50_000, 50_000, 50_000] == [one.relay.batch_size for one in found]


@pytest.mark.parametrize("environ", [{}, {"OUTBOX_CONFIG": "nowhere.toml"}])
def test_named_file_must_exist(tmp_path: Path, environ: dict[str, str]) -> None:
    """A file that somebody named is never silently replaced by another one."""
    (tmp_path / "outbox.toml").write_text("")
    path = None if environ else Path("nowhere.toml")
    with pytest.raises(BadSettings, match=r"nowhere\.toml: .* cannot be read: No such file"):
        load_settings(path=path, environ=environ, folder=tmp_path)


def test_all_settings_are_read(tmp_path: Path) -> None:
    """Every setting of the relay and of append takes the place of its default."""
    found = load(
        tmp_path,
        """
        [relay]
        batch_size = 5
        claims_in_flight = 3
        poll_seconds = 2
        refresh_seconds = 600
        max_lanes = 3
        clock_skew_seconds = 0
        parallelism = 4
        tracing = true
        [append]
        max_payload_bytes = 10
        max_header_bytes = 0
        event_type_pattern = '^[a-z]+$'
        horizon_days = 30
        """,
    )
    assert (
        RelaySettings(
            batch_size=5,
            claims_in_flight=3,
            poll_seconds=2.0,
            refresh_seconds=600.0,
            max_lanes=3,
            clock_skew_seconds=0.0,
            parallelism=4,
            tracing=True,
        )
        == found.relay
    )
    assert (
        AppendSettings(
            max_payload_bytes=10,
            max_header_bytes=0,
            event_type_pattern="^[a-z]+$",
            horizon_days=30,
        )
        == found.append
    )
    assert isinstance(found.relay.poll_seconds, float)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("relay.batch_size = 0", "from 1 to 1000000. Got: 0."),
        ("relay.batch_size = true", "`relay.batch_size` must be a whole number"),
        ("relay.batch_size = 1.0", "Got: 1.0."),
        ("relay.batch_size = '5'", "Got: '5'."),
        ("relay.claims_in_flight = 0", "from 1 to 64. Got: 0."),
        ("relay.poll_seconds = 0", "must be a number of seconds from 0.01 to 3600. Got: 0."),
        ("relay.poll_seconds = nan", "Got: nan."),
        ("relay.poll_seconds = true", "Got: True."),
        ("relay.clock_skew_seconds = -1", "Got: -1."),
        ("relay.parallelism = 0", "`relay.parallelism` must be"),
        ("storage.single_driver = 1", "`storage.single_driver` must be true or false. Got: 1."),
        ("relay.tracing = 1", "`relay.tracing` must be true or false. Got: 1."),
        ("append.max_payload_bytes = {}", "Got: a table."),
        ("append.event_type_pattern = '('", "must be a regular expression in Python's syntax"),
        ("append.event_type_pattern = ''", "must be a regular expression"),
        ("relay.batchsize = 1", "`relay.batchsize` is not a setting. Known here: batch_size, "),
        ("relays.batch_size = 1", "`relays` is not a setting. Known here: relay, append, sto"),
        ("relay = 1", "`relay` must be a table. Got: a whole number."),
        ("publishers = 0", "`publishers` must be a table. Got: a whole number."),
        ("publishers.a = 'kafka'", "`publishers.a` must be a table. Got: a text."),
        (
            "publishers.a.path = 'x'",
            "`publishers.a.type` must be the name of a publisher, a text. ",
        ),
        ("publishers.a.type = 1", "Got: a whole number."),
        ("publishers.a.type = ''", "`publishers.a.type` must be"),
        ("publishers.'a|b'.type = 'null'", "the name of a destination must match"),
        ("publishers.a = {type = 'jsonl', path = 1}", "`publishers.a.path` must be a path"),
    ],
)
def test_bad_settings_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """A setting that breaks a rule is refused with file, key, rule and what came."""
    assert message in refusal(tmp_path, text)


def test_bad_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    """A file that is no TOML is refused with the line, and without its text."""
    message = refusal(tmp_path, "[relay]\nbatch_size = \n")
    assert message.startswith("not valid TOML: ")
    assert "line 2" in message
    assert "not valid TOML" in refusal(tmp_path, "a = " + "9" * 5000)
    assert "not valid TOML" in refusal(tmp_path, "a = " + "[" * 100_000)


def test_file_must_be_utf8(tmp_path: Path) -> None:
    """Other encodings are refused, and no byte of the file is shown; a byte order mark is fine."""
    file = tmp_path / "outbox.toml"
    file.write_bytes(b"# \xff")
    with pytest.raises(BadSettings, match="must be UTF-8") as caught:
        load_settings(environ={}, folder=tmp_path)
    assert caught.value.__cause__ is None
    file.write_bytes(b"\xef\xbb\xbf[relay]\nbatch_size = 2\n")
    assert 2 == load_settings(environ={}, folder=tmp_path).relay.batch_size


def test_jsonl_paths_start_at_the_home(tmp_path: Path) -> None:
    """Relative paths of jsonl destinations are below the home, each destination by itself."""
    found = load(
        tmp_path,
        f"""
        publishers.a.type = "jsonl"
        publishers.b = {{type = "jsonl", path = "out"}}
        publishers.c = {{type = "jsonl", path = "{tmp_path}/abs"}}
        publishers.d = {{type = "null", path = "as it is"}}
        """,
    )
    home = tmp_path / "home"
    paths = {name: one.settings["path"] for name, one in found.publishers.items()}
    assert {
        "a": str(home / "delivered-a"),
        "b": str(home / "out"),
        "c": str(tmp_path / "abs"),
        "d": "as it is",
    } == paths


def test_empty_default_publisher_is_the_shipped_one(tmp_path: Path) -> None:
    """A table without anything in it is no reason to have no destination."""
    assert "jsonl" == load(tmp_path, "[publishers.default]").publishers["default"].type
    assert ["default"] == list(load(tmp_path, "[publishers]").publishers)


def test_dotted_names_come_back_from_nested_tables() -> None:
    """`bootstrap.servers = "x"` without quotes means the client's own name all the same."""
    nested: dict[str, Any] = {"bootstrap": {"servers": "x"}, "a.b": 1, "c": {"d": {"e": [{}]}}}
    assert {"bootstrap.servers": "x", "a.b": 1, "c.d.e": [{}]} == dotted(nested)


def test_settings_in_the_home_are_kept_to_their_owner(tmp_path: Path) -> None:
    """A settings file in the home becomes private; one elsewhere is left as it is."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    modes = {}
    for place in (home, folder):
        place.mkdir()
        file = place / "outbox.toml"
        file.write_text("")
        file.chmod(0o644)
        load_settings(home=home if place == home else None, environ={}, folder=place)
        modes[place.name] = stat.S_IMODE(file.stat().st_mode)
    assert {"home": 0o600, "folder": 0o644} == modes


def test_secrets_that_others_can_read_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file outside a home that others can read gets a warning that names the settings whose
    secrets stand in it; one that only refers to the environment gets none.
    """
    file = tmp_path / "outbox.toml"
    literal = "[publishers.a]\ntype = 'null'\ntls.password = 'hunter2'\nurl = '${P}'\n"
    for text, mode in (
        (literal, 0o644),
        (literal, 0o600),
        (literal.replace("hunter2", "${P}"), 0o644),
    ):
        file.write_text(text)
        file.chmod(mode)
        with caplog.at_level(logging.WARNING):
            load_settings(environ={"P": "x"}, folder=tmp_path)
    (record,) = caplog.records
    assert ["publishers.a.tls.password"] == record.__dict__["settings"]


def test_linked_settings_are_not_touched(tmp_path: Path) -> None:
    """A link in the home leads to somebody else's file, whose mode is not ours to change."""
    target = tmp_path / "shared.toml"
    target.write_text("")
    target.chmod(0o644)
    home = tmp_path / "home"
    home.mkdir()
    (home / "outbox.toml").symlink_to(target)
    load_settings(home=home, environ={}, folder=tmp_path)
    assert 0o644 == stat.S_IMODE(target.stat().st_mode)


def test_settings_that_everybody_may_write_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Settings name code that is run, so a file that everybody may write gets a warning where it is
    named; test_ownership.py says what becomes of one that was only found.
    """
    file = tmp_path / "outbox.toml"
    file.write_text("")
    file.chmod(0o666)
    with caplog.at_level(logging.WARNING):
        load_settings(environ={}, path=file)
    assert [logging.WARNING] == [record.levelno for record in caplog.records]

"""The command line: what it accepts, and the one shape of every refusal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from delta_outbox.cli.command import COMMANDS
from delta_outbox.cli.inspection import filter_of
from delta_outbox.cli.main import main
from delta_outbox.cli.parser import build, parse, split_dbt
from delta_outbox.core.errors import WrongUsage
from delta_outbox.lifecycle.states import State
from delta_outbox.operations.inspection_filter import DEFAULT_LIMIT, Filter, Sort

WHO = ["--reason", "r", "--actor", "a"]
MIGRATE = ["workflow", "migrate", "--workflow", "w", "--to", "2", *WHO]
WRONG = [
    [],
    ["nonsense"],
    ["replay"],
    ["append"],
    ["relay"],
    ["relay", "--once", "--drain"],
    ["relay", "--once", "--limit", "0"],
    ["relay", "--once", "--limit", "-1"],
    ["relay", "--once", "--limit", "1e3"],
    ["relay", "--drain", "--max-wait", "nan"],
    ["serve", "--port", "80"],
    ["serve", "--port", "65536"],
    # It offers no address but this machine's own.
    ["serve", "--host", "0.0.0.0"],
    ["serve", "--address", "0.0.0.0"],
    ["serve", "0.0.0.0:15002"],
    ["serve", "--port", "http"],
    ["up", "--host", "0.0.0.0"],
    ["up", "--port", "80"],
    ["up", "--max-wait", "soon"],
    ["down", "--force"],
    ["list", "--state", "LOST"],
    ["list", "--since", "2026-11-01"],
    ["list", "--since", "2026-11-01T12:00:00"],
    ["list", "--since", "2026-11-01T12:00:00Z", "--until", "2026-11-01T12:00:00Z"],
    ["list", "--sort", "payload"],
    ["list", "--sort", "attempts:up"],
    ["list", "--type", "order.[a"],
    ["list", "--limit", "99999999999999999999"],
    ["list", "--lim", "3"],
    ["workflow", "accept-late", "a", "--reason", "r"],
    MIGRATE,
    [*MIGRATE, "--map", "a"],
    [*MIGRATE, "--map", "a=b=c"],
    [*MIGRATE, "--map", "a=b", "--from", "0"],
    [*MIGRATE, "--map", "a=b", "--map", "a=c"],
    ["show"],
    ["show", "a", "b"],
    ["replay", "--reason", "r", "--actor", "a"],
    ["replay", "--state", "DEAD", "--actor", "a"],
    ["replay", "--state", "DEAD", "--reason", "r"],
    ["replay", "--state", "PENDING", "--reason", "r", "--actor", "a"],
    ["replay", "--state", "PUBLISHED", "--reason", "r", "--actor", "a"],
    ["replay", "--state", "PUBLISHED", "--all", "--id", "x", "--reason", "r", "--actor", "a"],
    ["replay", "--state", "DEAD", "--apply", "--dry-run", "--reason", "r", "--actor", "a"],
    ["replay", "--state", "DEAD", "--since", "2026-11-01", "--reason", "r", "--actor", "a"],
    ["replay", "--state", "DEAD", "--id", "", "--reason", "r", "--actor", "a"],
    ["kill", "--reason", "r", "--actor", "a"],
    ["kill", "e", "--reason", " ", "--actor", "a"],
    ["kill", "e", "--reason", "two\nlines", "--actor", "a"],
    ["release", "--actor", "a"],
    ["maintain", "--force"],
    ["purge", "--reason", "r", "--actor", "a"],
    ["purge", "--before", "2026-11-01", "--reason", "r"],
    ["purge", "--before", "2026-11-01", "--reason", " ", "--actor", "a"],
    ["purge", "--before", "20261101", "--reason", "r", "--actor", "a"],
    ["purge", "--before", "2026-02-30", "--reason", "r", "--actor", "a"],
    ["purge", "--before", "2026-11-01T12:00:00Z", "--reason", "r", "--actor", "a"],
    ["purge", "--before", "x' or '1'='1", "--reason", "r", "--actor", "a"],
    ["purge", "--before", "2026-11-01", "--apply", "--dry-run", "--reason", "r", "--actor", "a"],
    ["pause"],
    ["resume", "shop", "--reason", "two\nlines"],
]
WHO = ["--reason", "r", "--actor", "a"]


def test_every_command_is_carried_out() -> None:
    """Every command that the help names has its function, and no other is hidden."""
    named = build()._subparsers
    assert named is not None
    choices = named._group_actions[0].choices
    assert set(COMMANDS) == set(choices or ())


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_usage_has_one_shape(
    words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A wrong command line ends with 2 and says what is wrong and what to do, as JSON on demand."""
    assert 2 == main([*words, "--json"])
    captured = capsys.readouterr()
    error = json.loads(captured.out)["error"]
    assert {"code", "message", "remedy"} == set(error)
    assert "WRONG_USAGE" == error["code"]
    assert "" == captured.err

    assert 2 == main(words)
    captured = capsys.readouterr()
    assert "" == captured.out
    assert error["message"] in captured.err
    assert error["remedy"] in captured.err


NESTED = ("todo", "workflow")  # whose commands have options of their own


def test_no_text_names_a_command_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever messages, remedies and documents advise to run is a command, with options it has."""
    root = Path(__file__).parents[3]
    kinds = ("python/**/*.py", "macros/**/*.sql", "models/**/*.md", "docs/**/*.md", "*.md")
    texts = [path.read_text(encoding="utf-8") for kind in kinds for path in root.glob(kind)]
    named = {found for text in texts for found in re.findall(r"`outbox ([a-z]+)([^`\n]*)`", text)}
    assert set(COMMANDS) <= {name for name, _ in named} | {"dbt"}
    for name, rest in sorted(one for one in named if one[0] != "dbt"):
        assert name in COMMANDS
        depth = (2 if rest.startswith(" keys") else 1) if name in NESTED else 0
        words = [name, *(word for word in rest.split()[:depth] if word.isalpha())]
        with pytest.raises(SystemExit):
            parse([*words, "--help"])
        known = set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out))
        assert set() == {word for word in rest.split() if word.startswith("--")} - known, rest


@pytest.mark.parametrize(
    "words", [["--json", "-v", "status"], ["status", "--json", "-v"], ["--json", "status", "-v"]]
)
def test_shared_options_stand_anywhere(words: list[str]) -> None:
    """The options of every command mean the same before its name and after it."""
    args = parse(words)
    assert (True, 1, False, None) == (args.json, args.verbose, args.debug, args.config)


def test_relay_defaults() -> None:
    """A relay waits for a minute at most and takes what the settings say."""
    args = parse(["relay", "--drain"])
    assert ("drain", None, 60.0) == (args.mode, args.limit, args.max_wait)


def test_list_arguments() -> None:
    """The arguments of `list` become the filter that they say."""
    words = ["list", "--state", "dead", "--state", "PENDING", "--type", "order.*", "--key", "k"]
    words += ["--since", "2026-11-01T14:00:00+02:00", "--until", "2026-11-01T12:00:00.000001Z"]
    words += ["--min-attempts", "2", "--sort", "attempts:desc", "--limit", "7"]
    expected = Filter(
        states=(State.DEAD, State.PENDING),
        event_type="order.*",
        ordering_key="k",
        since=datetime(2026, 11, 1, 12, tzinfo=UTC),
        until=datetime(2026, 11, 1, 12, 0, 0, 1, tzinfo=UTC),
        min_attempts=2,
        sort=Sort(column="attempts", descending=True),
        limit=7,
    )
    assert expected == filter_of(parse(words))
    assert Filter(limit=DEFAULT_LIMIT) == filter_of(parse(["list"]))


def test_a_replay_is_a_preview_unless_it_is_told_otherwise() -> None:
    """A replay names events by a filter, a purge days, so they only show them; kill and release
    act at once.
    """
    words = {"replay": ["--state", "DEAD"], "kill": ["e"], "release": []}
    words["purge"] = ["--before", "2026-11-01"]
    for command, given in words.items():
        line = [command, *given, *WHO]
        assert (command in ("replay", "purge")) == parse(line).dry_run
        assert not parse([*line, "--apply"]).dry_run
        assert parse([*line, "--dry-run"]).dry_run


def test_a_migration_maps_tasks() -> None:
    """Each --map names a task that is left, and the one at which its instances go on."""
    found = parse([*MIGRATE, "--map", "a=b", "--map", "c=b", "m1"])
    assert ([("a", "b"), ("c", "b")], 2, None) == (found.map, found.to_version, found.from_version)
    assert (["m1"], True) == (found.instances, found.dry_run)


def test_filter_refuses_what_argparse_never_saw() -> None:
    """Python callers get the same rules: an allow-list to sort by, offsets, a positive limit."""
    with pytest.raises(WrongUsage, match="sort"):
        Sort(column="1; drop table x")
    with pytest.raises(WrongUsage, match="offset"):
        Filter(since=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(WrongUsage, match="limit"):
        Filter(limit=0)


@pytest.mark.parametrize(
    ("words", "ours", "theirs"),
    [
        (["dbt", "build", "--help"], ["dbt"], ["build", "--help"]),
        (["dbt", "--json", "ls"], ["dbt", "--json"], ["ls"]),
        (["--json", "dbt", "--debug", "run"], ["--json", "dbt"], ["--debug", "run"]),
        (["--config", "dbt", "dbt", "ls"], ["--config", "dbt", "dbt"], ["ls"]),
        (["show", "dbt"], ["show", "dbt"], []),
    ],
)
def test_what_follows_dbt_is_its_own(words: list[str], ours: list[str], theirs: list[str]) -> None:
    """Not one word after `dbt` is taken away or read by us, but `--json` right behind it."""
    assert (ours, theirs) == split_dbt(words)
    assert theirs == parse(words).dbt_args


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Help and version are done (0) and go to standard output."""
    for words in (["--help"], ["--version"], ["relay", "--help"]):
        assert 0 == main(words)
        assert capsys.readouterr().out.strip()


def test_help_is_fast() -> None:
    """Asking for help loads neither Spark nor Arrow, so it answers at once."""
    code = (
        "import sys; from delta_outbox.cli.main import main; main(['--help']);"
        "sys.exit(bool({'pyspark', 'pyarrow', 'dbt', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert 0 == done.returncode, done.stderr


def test_no_outbox_here(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no outbox, every command but `init` says so, and creates nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OUTBOX_HOME", str(tmp_path / "home"))
    (tmp_path / "events.jsonl").write_text("")
    for words in (
        *(["status"], ["list"], ["show", "e"], ["refresh"], ["relay", "--once"]),
        *(["append", "events.jsonl"], ["dbt", "run"]),
        *(["replay", "--state", "DEAD", *WHO], ["kill", "e", *WHO], ["release", *WHO]),
        *(["maintain"], ["purge", "--before", "2026-01-01", *WHO]),
        *(["pause", "default"], ["resume", "default"]),
    ):
        assert 2 == main(["--json", *words]), words
        captured = capsys.readouterr()
        error = json.loads(captured.out)["error"]
        assert "NO_OUTBOX_HERE" == error["code"]
        assert "outbox init" in error["remedy"]
        assert "Traceback" not in captured.err
    assert not (tmp_path / "home").exists()


def test_a_trace_only_with_debug(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error is a sentence; the trace comes with --debug, and on standard error."""
    monkeypatch.setenv("OUTBOX_HOME", str(tmp_path / "home"))
    assert 2 == main(["status", "-v", "-v"])
    assert "Traceback" not in capsys.readouterr().err
    assert 2 == main(["status", "--json", "--debug"])
    captured = capsys.readouterr()
    assert "Traceback" in captured.err
    assert "NO_OUTBOX_HERE" == json.loads(captured.out)["error"]["code"]


def test_a_missing_file_is_told_before_anything_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A wrong name of a file costs no session."""
    assert 2 == main(["append", str(tmp_path / "nothing.jsonl"), "--json"])
    assert "WRONG_USAGE" == json.loads(capsys.readouterr().out)["error"]["code"]

"""Where the home is found, how it is made and what it refuses."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from delta_outbox.core.errors import NoOutboxHere, WrongUsage
from delta_outbox.runtime.home import Home, find_home

NO_VARIABLES: dict[str, str] = {}


def test_home_is_found_from_a_folder_below(tmp_path: Path):
    """Commands work in any folder below the one that holds `.outbox`."""
    made = find_home(cwd=tmp_path, environ=NO_VARIABLES, create=True)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert made == find_home(cwd=below, environ=NO_VARIABLES)
    assert (tmp_path / ".outbox").resolve() == made.root


def test_variable_wins_over_the_folder(tmp_path: Path):
    """OUTBOX_HOME names the home, whatever lies in the working folder."""
    find_home(cwd=tmp_path, environ=NO_VARIABLES, create=True)
    environ = {"OUTBOX_HOME": "elsewhere"}
    made = find_home(cwd=tmp_path, environ=environ, create=True)
    assert (tmp_path / "elsewhere").resolve() == made.root
    assert made == find_home(cwd=tmp_path, environ=environ)


def test_nothing_is_created_by_looking(tmp_path: Path):
    """A command that does not create says so and leaves the folder as it was."""
    with pytest.raises(NoOutboxHere) as caught:
        find_home(cwd=tmp_path, environ=NO_VARIABLES)
    assert str(tmp_path) in str(caught.value)
    assert "outbox init" in caught.value.remedy
    with pytest.raises(NoOutboxHere):
        find_home(cwd=tmp_path, environ={"OUTBOX_HOME": str(tmp_path / "x")})
    assert [] == list(tmp_path.iterdir())


def test_home_and_settings_are_private(tmp_path: Path):
    """Nobody else can read the home or its settings, also where they existed before."""
    root = tmp_path / "home"
    root.mkdir(mode=0o755)
    (root / "outbox.toml").write_text("", encoding="utf-8")
    (root / "outbox.toml").chmod(0o644)
    home = Home(root=root).create()
    home.write_settings("[relay]\n")
    assert 0o700 == root.stat().st_mode & 0o777
    assert 0o600 == home.settings.stat().st_mode & 0o777
    assert "[relay]\n" == home.settings.read_text(encoding="utf-8")


def test_home_is_made_private_again(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """A home that others can enter, after a copy or a chmod, is closed by whoever finds it, and
    that is said once.
    """
    home = Home(root=tmp_path / ".outbox").create()
    for environ in (NO_VARIABLES, {"OUTBOX_HOME": str(home.root)}):
        home.root.chmod(0o750)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            for _ in range(2):
                assert home == find_home(cwd=tmp_path, environ=environ)
        assert 0o700 == home.root.stat().st_mode & 0o777
        assert ["home_tightened"] == [record.message for record in caplog.records]


def test_creating_again_alters_nothing(tmp_path: Path):
    """A second creation keeps what is there."""
    home = Home(root=tmp_path / "home").create()
    (home.warehouse / "table").mkdir()
    (home.root / "note").write_text("mine", encoding="utf-8")
    home.create()
    assert (home.warehouse / "table").is_dir()
    assert "mine" == (home.root / "note").read_text(encoding="utf-8")


def test_scratch_is_emptied_where_it_is_a_link(tmp_path: Path):
    """What Spark leaves on another disk goes as well; the link stays, and what links lead to."""
    home = find_home(cwd=tmp_path, environ=NO_VARIABLES, create=True)
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    for folder in (disk / "blocks" / "00", kept):
        folder.mkdir(parents=True)
        (folder / "file").touch()
    (disk / "spill").touch()
    (disk / "link").symlink_to(kept)
    home.scratch.rmdir()
    home.scratch.symlink_to(disk)
    home.empty_scratch()
    assert home.scratch.is_symlink()
    assert [] == [*disk.iterdir()]
    assert (kept / "file").exists()


def test_folder_of_something_else_is_refused(tmp_path: Path):
    """A folder with other things in it does not become a home, and keeps its permissions."""
    tmp_path.chmod(0o755)
    (tmp_path / "thesis.tex").write_text("", encoding="utf-8")
    with pytest.raises(WrongUsage, match=r"thesis\.tex"):
        find_home(environ={"OUTBOX_HOME": str(tmp_path)}, create=True)
    assert 0o755 == tmp_path.stat().st_mode & 0o777


def test_file_is_refused(tmp_path: Path):
    """A file, or a folder below one, does not become a home."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    for place in ("file", "file/below"):
        with pytest.raises(WrongUsage, match="must be a folder"):
            find_home(environ={"OUTBOX_HOME": str(tmp_path / place)}, create=True)

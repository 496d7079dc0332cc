"""Whose files may be believed, and that no file of ours is written through a link."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_outbox.runtime.file_lock import file_locked
from delta_outbox.runtime.home import Home, find_home
from delta_outbox.runtime.ownership import LinkInTheWay, NotYours, write_own
from delta_outbox.runtime.settings_file import load_settings
from delta_outbox.runtime.spark_settings import prepare
from delta_outbox.store.presence import Presence

FILES = ["lock", "served.json", "logs/jvm.log", "logs/spark.log", "logs/derby.log", "logs/dbt.log"]


@pytest.mark.parametrize("name", [*FILES, "spark-conf/log4j2.properties"])
def test_no_file_of_a_home_is_written_through_a_link(tmp_path: Path, name: str):
    """A link where a file of the home is written is refused, and what it leads to stays as it was,
    whoever has put it there.
    """
    home = Home(root=tmp_path / "home").create()
    target = tmp_path / "target"
    target.write_text("precious", encoding="utf-8")
    (home.root / name).symlink_to(target)
    for look in (
        lambda: find_home(environ={"OUTBOX_HOME": str(home.root)}),
        lambda: prepare(home),
    ):
        with pytest.raises(LinkInTheWay, match=name):
            look()
    assert "precious" == target.read_text(encoding="utf-8")


def test_what_we_write_ourselves_follows_no_link(tmp_path: Path):
    """The lock, settings, the locks of relays and of the cache, and drafts leave alone what a link
    leads to, also one that appears after the home was looked at.
    """
    home = Home(root=tmp_path / "home").create()
    home.relays.mkdir()
    target = tmp_path / "target"
    target.write_text("precious", encoding="utf-8")

    def locked() -> None:
        with file_locked(tmp_path / "link"):
            pass

    for link, write in (
        (home.lock_file, home.lock.acquire),
        (home.settings, lambda: home.write_settings("[relay]\n")),
        (home.relays / "r", lambda: Presence(home.relays).enter("r")),
        (tmp_path / "link", locked),
    ):
        link.symlink_to(target)
        with pytest.raises(LinkInTheWay):
            write()
        link.unlink()
    (tmp_path / "draft").symlink_to(target)
    write_own(tmp_path / "draft", "text")
    assert not (tmp_path / "draft").is_symlink()
    assert "precious" == target.read_text(encoding="utf-8")


def test_settings_that_everybody_may_write_are_not_found(tmp_path: Path):
    """Settings in the working folder are refused as long as everybody may write them."""
    file = tmp_path / "outbox.toml"
    file.write_text("[relay]\nbatch_size = 7\n", encoding="utf-8")
    file.chmod(0o646)
    with pytest.raises(NotYours, match="can be written by everybody"):
        load_settings(environ={}, folder=tmp_path)
    file.chmod(0o644)
    assert 7 == load_settings(environ={}, folder=tmp_path).relay.batch_size

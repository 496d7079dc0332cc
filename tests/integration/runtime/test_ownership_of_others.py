"""What another user of the machine has left is neither believed nor written through.

It needs to become another user: as root, or by a sudo that asks for no password.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from delta_outbox.runtime.home import Home, find_home
from delta_outbox.runtime.jars import resolve
from delta_outbox.runtime.ownership import LinkInTheWay, NotYours
from delta_outbox.runtime.settings_file import load_settings

OTHER = 12_345  # a user without a name


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Return a folder in which everybody may leave files, as /tmp."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.fixture
def stranger(shared: Path) -> Callable[[str], None]:
    """Return a function that lets another user run a script in the shared folder."""
    for above in shared.parents:  # pytest keeps its folders to their owner
        if above.stat().st_uid == os.geteuid() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)

    def run(script: str) -> None:
        become = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"]
        sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
        subprocess.run([*sudo, *become, "sh", "-c", script], cwd=shared, check=True)

    return run


HOME = "mkdir -p .outbox/warehouse"
SETTINGS = """printf '[publishers.default]\\ntype = "evil:Code"\\n' > outbox.toml"""


def test_a_home_of_somebody_else_is_not_found(shared: Path, stranger: Callable[[str], None]):
    """A home above the working folder that another user owns is refused, with how to name it; one
    that is named is taken.
    """
    stranger(HOME)
    below = shared / "mine" / "deep"
    below.mkdir(parents=True)
    with pytest.raises(NotYours, match=rf"belongs to uid {OTHER}") as caught:
        find_home(cwd=below, environ={}, create=True)
    assert f"OUTBOX_HOME={shared / '.outbox'}" in caught.value.remedy
    named = find_home(cwd=below, environ={"OUTBOX_HOME": str(shared / ".outbox")})
    assert shared / ".outbox" == named.root


@contextmanager
def without_rights() -> Iterator[None]:
    """Be no root for a block."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(OTHER + 1)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_home_that_is_closed_to_us_is_named(shared: Path, stranger: Callable[[str], None]):
    """A home that its owner alone may enter is refused, named or found, and not a trace."""
    stranger(f"{HOME} && chmod 700 .outbox")
    for environ in ({}, {"OUTBOX_HOME": str(shared / ".outbox")}):
        with without_rights(), pytest.raises(NotYours, match=r"\.outbox is closed to ") as caught:
            find_home(cwd=shared, environ=environ)
        assert "Run this as its owner" in caught.value.remedy


def test_a_link_of_somebody_else_leads_to_no_home(shared: Path, stranger: Callable[[str], None]):
    """A link that another user has put where a home is looked for is refused, also if it leads to
    a home of ours.
    """
    mine = Home(root=shared.parent / "mine").create()
    stranger(f"ln -s '{mine.root}' .outbox")
    with pytest.raises(NotYours):
        find_home(cwd=shared, environ={})


def test_settings_of_somebody_else_are_not_found(shared: Path, stranger: Callable[[str], None]):
    """Settings in the working folder that another user owns are refused, with how to name them."""
    stranger(SETTINGS)
    with pytest.raises(NotYours, match=rf"outbox\.toml belongs to uid {OTHER}") as caught:
        load_settings(environ={}, folder=shared)
    assert "--config" in caught.value.remedy
    named = load_settings(environ={}, folder=shared, path=shared / "outbox.toml")
    assert "evil:Code" == named.publishers["default"].type


def test_settings_left_in_a_home_are_refused(shared: Path, stranger: Callable[[str], None]):
    """Settings that another user has put into a home of ours while it was open are refused."""
    home = Home(root=shared / "home").create()
    home.root.chmod(0o777)
    stranger(SETTINGS.replace("> ", "> home/"))
    with pytest.raises(NotYours):
        load_settings(home=home.root, environ={}, folder=shared)


def test_a_folder_may_be_a_link_of_ours_alone(shared: Path, stranger: Callable[[str], None]):
    """The warehouse may be a link of our own, to a larger disk, and not one of somebody else."""
    home = Home(root=shared / "home").create()
    disk = shared / "disk"
    disk.mkdir()
    home.warehouse.rmdir()
    home.warehouse.symlink_to(disk)
    home.check_links()
    home.warehouse.unlink()
    home.root.chmod(0o777)
    stranger("ln -s ../disk home/warehouse")
    with pytest.raises(LinkInTheWay, match=rf"uid {OTHER}"):
        find_home(environ={"OUTBOX_HOME": str(home.root)})


def test_jars_of_somebody_else_are_not_run(
    shared: Path, stranger: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
):
    """A cache folder of another user, found through HOME (sudo may keep it), is refused."""
    stranger("mkdir -p .cache/delta-outbox")
    monkeypatch.setenv("HOME", str(shared))
    monkeypatch.delenv("OUTBOX_CACHE", raising=False)
    with pytest.raises(NotYours, match="what lies there is run"):
        resolve()

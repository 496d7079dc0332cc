"""The folder of the demo of orders."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.orders_demo.folder import Folder
from scripts.orders_demo.story import main

from delta_outbox.core.errors import WrongUsage
from delta_outbox.runtime.home import Home


def test_a_folder_holds_one_demo(tmp_path: Path) -> None:
    """Another seed, and a folder of somebody else, are refused, with what to do."""
    folder = Folder(root=tmp_path / "demo")
    folder.make(orders=3, seed=1)
    folder.make(orders=3, seed=1)
    with pytest.raises(WrongUsage, match="3 orders, seed 1"):
        folder.make(orders=3, seed=2)
    (tmp_path / "mine").write_text("")
    with pytest.raises(WrongUsage, match="must be empty"):
        Folder(root=tmp_path).make(orders=3, seed=1)
    assert 2 == main(["--folder", str(tmp_path)])


def test_a_demo_that_was_killed_while_its_folder_was_made_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is there by then, the same command makes the rest."""
    folder = Folder(root=tmp_path / "demo")
    with monkeypatch.context() as killed:
        killed.setattr(Home, "create", _killed)
        with pytest.raises(KeyboardInterrupt):
            folder.make(orders=3, seed=1)
    folder.make(orders=3, seed=1)
    assert len(folder.orders.read_text().splitlines()) == 3
    with monkeypatch.context() as killed:
        killed.setattr(Path, "replace", _killed)
        with pytest.raises(KeyboardInterrupt):
            Folder(root=tmp_path / "other").make(orders=3, seed=1)
    Folder(root=tmp_path / "other").make(orders=3, seed=1)


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_modules_stay_as_their_rows_are_in_force(tmp_path: Path) -> None:
    """Modules are copied until the workflows are built: after that they are not changed."""
    folder = Folder(root=tmp_path / "demo")
    module = folder.root / "demo_times.py"
    folder.make(orders=3, seed=1)
    module.write_text("")
    folder.make(orders=3, seed=1)
    assert module.read_text() != ""
    folder.is_built.touch()
    module.write_text("# of another day")
    folder.make(orders=3, seed=1)
    assert module.read_text() == "# of another day"

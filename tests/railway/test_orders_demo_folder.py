"""The folder of the demo of orders."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.orders_demo.folder import Folder
from scripts.orders_demo.story import main

from delta_outbox.core.errors import WrongUsage


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

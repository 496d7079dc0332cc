"""A catalog that was never finished is made again; one with tables is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_outbox.runtime.catalog_places import remove_unfinished
from delta_outbox.runtime.home import Home


@pytest.mark.parametrize(
    ("is_finished", "has_tables", "stays"),
    [(False, False, False), (False, True, True), (True, False, True), (True, True, True)],
)
def test_only_an_unfinished_catalog_without_tables_is_removed(
    tmp_path: Path, is_finished: bool, has_tables: bool, stays: bool
):
    """What an interrupted `init` leaves of Derby's database goes; a damaged one stays for who has
    a back-up.
    """
    home = Home(root=tmp_path / "home").create()
    (home.metastore / "seg0").mkdir(parents=True)
    if is_finished:
        (home.metastore / "service.properties").write_text("derby.serviceProtocol=...\n")
    if has_tables:
        (home.warehouse / "outbox.db").mkdir()

    remove_unfinished(home)

    assert stays == home.metastore.exists()
    assert home.warehouse.is_dir()

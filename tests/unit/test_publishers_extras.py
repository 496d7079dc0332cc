"""Publishers whose library is an extra."""

from __future__ import annotations

import sys

import pytest

from delta_outbox.publishers.registry import PublisherNotLoaded, find_publisher


@pytest.mark.parametrize(("type_", "library"), [("redis", "hiredis"), ("nats", "nats")])
def test_a_missing_library_names_its_extra(monkeypatch, type_, library):
    """Without the library the error says which extra brings it."""
    for name in list(sys.modules):
        if name.startswith((f"delta_outbox.publishers.{type_}", f"{library}.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(PublisherNotLoaded, match=rf"pip install 'delta-outbox\[{type_}\]'"):
        find_publisher(type_, destination="default")

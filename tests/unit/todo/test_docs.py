"""The page for those who integrate: what it shows is what happens."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from tests.unit.todo.memory_items import item, office

from delta_outbox.core.setting_rules import TODO
from delta_outbox.core.settings import TodoSettings
from delta_outbox.todo.failures import STATUSES

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "railway" / "todo.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
PLACE = "http://127.0.0.1:8765"
TABLES = ("kafka", "signatures")


def lines() -> list[tuple[str, str]]:
    """Return the commands of the page, each with what it shows."""
    found = "".join(BLOCK.findall(PAGE)).split("$ curl ")[1:]
    return [(command, shown) for command, shown, *_ in (one.split("\n") for one in found)]


def agree(shown: Any, found: Any) -> None:
    """Demand that what a page shows is there; `...` stands for anything."""
    if isinstance(shown, dict):
        assert {*shown} - {"..."} <= {*found}
        assert "..." in shown or {*shown} == {*found}
        for name in {*shown} - {"..."}:
            agree(shown[name], found[name])
    elif isinstance(shown, list):
        assert len(shown) == len(found)
        for one, other in zip(shown, found, strict=True):
            agree(one, other)
    else:
        assert shown in ("...", found)


def test_the_page_shows_what_curl_gets() -> None:
    """Each line of the page, run by curl in its order, gets what the page shows below it."""
    assert 5 == len(lines())
    with office() as desk:
        desk.items.add(item("review-o4711"), item("review-o4712"))
        key = desk.key()["Authorization"].removeprefix("Bearer ")
        for command, shown in lines():
            line = command.replace(PLACE, str(desk.client.base_url).rstrip("/"))
            words = [os.path.expandvars(word) for word in shlex.split(line.replace("$KEY", key))]
            done = subprocess.run(["curl", *words], capture_output=True, text=True, check=True)
            agree(json.loads(shown), json.loads(done.stdout))


def test_the_page_names_each_status_and_setting() -> None:
    """Every status that an answer may have, and every setting, stands on the page, once each."""
    statuses, rest = PAGE.split("## Settings")
    named = [
        int(one)
        for row in re.findall(r"^\| ([\d, ]+) \|", statuses, re.MULTILINE)
        for one in row.split(", ")
    ]
    assert sorted({200, 202, 500, *STATUSES.values()}) == sorted(named)
    settings = [
        name
        for row in re.findall(r"^\| (`[a-z_`, ]+) \|", rest, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    ]
    assert sorted([*TODO, *TABLES]) == sorted(settings)
    assert {*TODO, *TABLES} == {one.name for one in fields(TodoSettings)}


@pytest.mark.parametrize("name", ["host", "port", "answer_seconds", "rate_per_second"])
def test_the_page_has_the_defaults(name: str) -> None:
    """The default that the page names is the one that counts."""
    assert str(getattr(TodoSettings(), name)).removesuffix(".0") in PAGE

"""outbox.toml.example: what it shows is there, and what it says holds."""

from __future__ import annotations

import base64
import dataclasses
import re
from pathlib import Path

from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.publishers.registry import BUILT_IN, find_publisher, prepare_settings
from delta_outbox.relay.destinations.payload_formats import prepare_payload_formats
from delta_outbox.runtime.settings_file import (
    AppendSettings,
    DestinationLimits,
    RelaySettings,
    StorageSettings,
    WorkflowSettings,
    load_settings,
)

EXAMPLE = Path(__file__).parents[3] / "outbox.toml.example"


def test_example_says_what_the_defaults_are(tmp_path: Path) -> None:
    """The example file, copied as it is, changes nothing."""
    defaults = load_settings(home=tmp_path, environ={}, folder=tmp_path)
    example = load_settings(home=tmp_path, path=EXAMPLE, environ={}, folder=tmp_path)
    assert dataclasses.replace(defaults, source=EXAMPLE) == example


def test_example_names_every_setting() -> None:
    """A setting that the example does not show would be hidden from its users."""
    text = EXAMPLE.read_text(encoding="utf-8")
    names = [
        field.name
        for kind in (
            RelaySettings,
            AppendSettings,
            StorageSettings,
            DestinationLimits,
            WorkflowSettings,
        )
        for field in dataclasses.fields(kind)
    ]
    assert [] == [name for name in names if f"{name} = " not in text]


def test_example_shows_every_destination(tmp_path: Path) -> None:
    """Each table that the example comments out is taken as it is, and no built-in lacks one."""
    text = EXAMPLE.read_text(encoding="utf-8")
    tables = re.findall(r"^# \[publishers\..*\n(?:# .*\n)+", text, re.MULTILINE)
    shown = re.sub("^# ", "", "".join(tables), flags=re.MULTILINE)
    # As `openssl rand` makes them: a webhook's secret must be good, any text will do elsewhere.
    secret = f"whsec_{base64.b64encode(bytes(32)).decode()}"
    environ = dict.fromkeys(re.findall(r"\$\{(\w+)\}", shown), secret)
    file = tmp_path / "shown.toml"
    file.write_text(shown, encoding="utf-8")
    settings = load_settings(home=tmp_path, path=file, environ=environ, folder=tmp_path)
    publishers = settings.publishers
    for name, one in publishers.items():
        found = find_publisher(one.type, destination=name)
        prepare_settings(found, one.settings, destination=name, home=tmp_path)
    everywhere = PolicySet.parse([{"event_type": "*", "destination": "|".join(publishers)}])
    assert ["shop"] == list(prepare_payload_formats(everywhere, settings))
    types = {one.type for one in publishers.values()}
    assert types == BUILT_IN.keys() - {"jsonl", "memory", "null"}

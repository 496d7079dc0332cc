"""What a destination of any type may say about its limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.settings import Settings
from delta_outbox.runtime.settings_file import DestinationLimits, load_settings


def load(folder: Path, text: str) -> Settings:
    """Read settings with a destination `shop` that has these lines."""
    file = folder / "given.toml"
    file.write_text(f'[publishers.shop]\ntype = "http"\n{text}\n', encoding="utf-8")
    return load_settings(home=folder / "home", path=file, environ={"RATE": "5"}, folder=folder)


def test_limits_are_read_and_kept_from_the_publisher(tmp_path: Path) -> None:
    """The limits are ours; a publisher sees its own settings only, also of a similar name."""
    found = load(
        tmp_path,
        "url = 'x'\nconcurrency = 8\nworkers = 2\nrate_per_second = 50\n"
        "rate_per_key_per_second = 0.5\nbreaker_failures = 5\nbreaker_seconds = 60",
    ).publishers["shop"]
    assert (
        DestinationLimits(
            workers=2,
            rate_per_second=50.0,
            rate_per_key_per_second=0.5,
            breaker_failures=5,
            breaker_seconds=60.0,
        )
        == found.limits
    )
    assert {"url": "x", "concurrency": 8} == dict(found.settings)


def test_without_settings_there_are_no_limits(tmp_path: Path) -> None:
    """Nothing is limited and no breaker opens unless somebody says so."""
    limits = load(tmp_path, "").publishers["shop"].limits
    assert DestinationLimits() == limits
    assert (None, None, None, None) == (
        limits.workers,
        limits.rate_per_second,
        limits.rate_per_key_per_second,
        limits.breaker_failures,
    )


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("workers = 0", "workers` must be a whole number from 1 to 4096. Got: 0."),
        ("workers = true", "workers` must be a whole number from 1 to 4096. Got: True."),
        (
            "rate_per_second = 0",
            "rate_per_second` must be a number of events from 0.001 to 1e+06. Got: 0.",
        ),
        (
            "rate_per_key_per_second = nan",
            "rate_per_key_per_second` must be a number of events from 0.001 to 1e+06. Got: nan.",
        ),
        (
            "rate_per_second = '${RATE}'",
            "rate_per_second` must be a number of events from 0.001 to 1e+06. Got: '${RATE}'.",
        ),
        (
            "breaker_failures = 1.5",
            "breaker_failures` must be a whole number from 1 to 1000000. Got: 1.5.",
        ),
        (
            "breaker_failures = 1\nbreaker_seconds = 0",
            "breaker_seconds` must be a number of seconds from 0.1 to 86400. Got: 0.",
        ),
        (
            "breaker_seconds = 9",
            "breaker_seconds` must come with `breaker_failures`: give both or none.",
        ),
    ],
)
def test_bad_limits_are_one_sentence(tmp_path: Path, line: str, rule: str) -> None:
    """What breaks a rule is named with the rule and what came."""
    with pytest.raises(BadSettings) as caught:
        load(tmp_path, line)
    assert f"{tmp_path / 'given.toml'}: `publishers.shop.{rule}" == str(caught.value)

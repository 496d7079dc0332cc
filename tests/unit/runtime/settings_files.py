"""Settings files for tests, and what is said of bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_outbox.core.errors import BadSettings
from delta_outbox.runtime.settings_file import Settings, load_settings


def load(folder: Path, text: str, **environ: str) -> Settings:
    """Read settings from a file with this text."""
    file = folder / "given.toml"
    file.write_text(text, encoding="utf-8")
    return load_settings(home=folder / "home", path=file, environ=environ, folder=folder)


def refusal(folder: Path, text: str, **environ: str) -> str:
    """Return what is said about a file with this text, after the name of the file."""
    with pytest.raises(BadSettings) as caught:
        load(folder, text, **environ)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'given.toml'}: ")
    return message.removeprefix(f"{folder / 'given.toml'}: ")

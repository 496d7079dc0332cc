"""What the tests of workflows share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def mypy_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder where mypy keeps what it knows of the package: it takes long to learn."""
    folder: Path = tmp_path_factory.mktemp("mypy")
    return folder

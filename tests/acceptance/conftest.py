"""What a stranger has: the repository, and what is built from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from delta_outbox.spark_settings import SHORT_LIVED


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the repository."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def clone(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a clone with what is committed, and nothing else."""
    folder = tmp_path_factory.mktemp("stranger") / "delta-outbox"
    subprocess.run(["git", "clone", "--quiet", str(repository), str(folder)], check=True)
    return folder


@pytest.fixture(scope="session")
def strangers_environment() -> dict[str, str]:
    """Return the environment variables without those that lead to this repository or an outbox.

    Each Spark lives for a minute or two, in which an optimising compiler does not pay off.
    """
    dropped = ("OUTBOX_", "PYTHON", "SPARK_", "PYSPARK_", "DBT_", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, "SPARK_SUBMIT_OPTS": " ".join(SHORT_LIVED)}


@pytest.fixture(scope="session")
def wheel(
    repository: Path,
    strangers_environment: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Return the wheel, built from the source archive as a release is, without a network."""
    folder = tmp_path_factory.mktemp("dist")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(repository)],
        cwd=folder,
        env=strangers_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (result,) = folder.glob("*.whl")
    return result

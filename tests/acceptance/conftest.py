"""What a stranger has: the repository, and what is built from it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from delta_outbox.runtime.spark_settings import SHORT_LIVED


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the repository."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def clone(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a clone with what is committed, and nothing else."""
    return cloned(repository, tmp_path_factory.mktemp("stranger"))


def cloned(repository: Path, folder: Path) -> Path:
    """Clone a repository into a folder, and return the clone."""
    target = folder / "delta-outbox"
    subprocess.run(["git", "clone", "--quiet", str(repository), str(target)], check=True)
    return target


@pytest.fixture(scope="session")
def set_up_clone(clone: Path, strangers_environment: dict[str, str]) -> Path:
    """Return the clone with what `make setup` would fetch: the packages of this environment.

    CI runs `make setup` from nothing, and so does test_setup.py.
    """
    packages_of(clone / ".venv", environment=strangers_environment)
    words = ("install", "--quiet", "--no-build-isolation", "--no-deps", "--editable", str(clone))
    pip(clone / ".venv", *words, environment=strangers_environment)
    (clone / ".venv" / ".installed").touch()
    return clone


def packages_of(folder: Path, *, environment: dict[str, str]) -> Path:
    """Make a virtual environment that finds the packages of this one, and return where its own go.

    They are what the constraints name: a path file adds them without the editable install of the
    repository beside them.

    Args:
        folder: what is made.
        environment: of the commands.
    """
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder)], env=environment, check=True
    )
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return packages


def pip(folder: Path, *words: str, environment: dict[str, str]) -> None:
    """Run our pip for another environment, without a network.

    Args:
        folder: of the virtual environment.
        words: what it is to do.
        environment: of the command.
    """
    python = str(folder / "bin" / "python")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, words[0], "--no-index", *words[1:]],
        cwd=folder,
        env=environment,
        check=True,
    )


@pytest.fixture(scope="session")
def strangers_environment() -> dict[str, str]:
    """Return the environment variables without those that lead to this repository or an outbox.

    Each Spark lives for a minute or two, in which an optimising compiler does not pay off.
    """
    ours = ("OUTBOX_", "PYTHON", "SPARK_", "PYSPARK_", "DBT_", "VIRTUAL_ENV")
    of_make = ("MAKE", "MFLAGS")  # who runs the tests may do so by make
    dropped = ours + of_make
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

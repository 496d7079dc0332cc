"""The wheel is complete: it works where no repository is."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest
from tests.acceptance.conftest import packages_of, pip

DBT_PARTS = (
    "dbt_project.yml",
    "selectors.yml",
    "macros",
    "models",
    "profiles",
    "seeds",
    "tests/dbt/generic",
)


@pytest.fixture(scope="session")
def installed(
    wheel: Path,
    strangers_environment: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Return the bin folder of a fresh virtual environment that holds the wheel."""
    folder = tmp_path_factory.mktemp("fresh")
    packages_of(folder, environment=strangers_environment)
    pip(folder, "install", "--quiet", "--no-deps", str(wheel), environment=strangers_environment)
    return folder / "bin"


def dbt_files(repository: Path) -> set[str]:
    """List the files of the dbt project, relative to its root."""
    found: set[str] = set()
    for part in DBT_PARTS:
        path = repository / part
        files = path.rglob("*") if path.is_dir() else [path]
        found |= {str(file.relative_to(repository)) for file in files if file.is_file()}
    return {name for name in found if not name.endswith(("/.gitkeep", "/.user.yml"))}


def test_wheel_carries_the_dbt_project(wheel: Path, repository: Path) -> None:
    """Every file of the dbt project is in the wheel, so that it builds without the repository."""
    prefix = "delta_outbox/dbt_project/"
    names = zipfile.ZipFile(wheel).namelist()
    carried = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    assert dbt_files(repository) == carried


def test_wheel_holds_nothing_else(wheel: Path) -> None:
    """A wheel puts one package into an environment, with its types, and no tests or scripts."""
    names = zipfile.ZipFile(wheel).namelist()
    folders = {name.split("/")[0] for name in names}
    assert {"delta_outbox", "delta_outbox-0.1.0.dist-info"} == folders
    assert "delta_outbox/py.typed" in names


def test_package_comes_from_the_wheel(
    installed: Path, strangers_environment: dict[str, str], tmp_path: Path
) -> None:
    """The fresh environment imports the wheel's own copy, so the other tests here try the wheel."""
    result = subprocess.run(
        [installed / "python", "-c", "import delta_outbox; print(delta_outbox.__file__)"],
        cwd=tmp_path,
        env=strangers_environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(result.stdout.strip()).is_relative_to(installed.parent)


def test_help_works_in_an_empty_folder(
    installed: Path, strangers_environment: dict[str, str], tmp_path: Path
) -> None:
    """`outbox --help` needs no repository, no outbox and no Java, and leaves nothing behind."""
    result = subprocess.run(
        [installed / "outbox", "--help"],
        cwd=tmp_path,
        env=strangers_environment | {"JAVA_HOME": str(tmp_path / "no-java-here")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("usage: outbox")
    assert list(tmp_path.iterdir()) == []

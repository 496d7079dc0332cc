"""The wheel is complete: it works where no repository is."""

from __future__ import annotations

import json
import subprocess
import sys
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


@pytest.mark.rest
def test_workflows_work_from_the_wheel(
    installed: Path, strangers_environment: dict[str, str], tmp_path: Path
) -> None:
    """A new workflow is written, tested and built into rows in a dbt project of a stranger, whose
    package is the wheel's: dbt finds all that the rows ask for.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    package = installed.parent / "lib" / version / "site-packages" / "delta_outbox" / "dbt_project"
    (tmp_path / "dbt_project.yml").write_text(
        'name: shop\nversion: "1.0"\nprofile: shop\n'
        "dispatch: [{macro_namespace: dbt, search_order: [shop, delta_outbox, dbt]}]\n"
    )
    (tmp_path / "profiles.yml").write_text(
        "shop: {target: local, outputs: {local: "
        "{type: spark, method: session, host: NA, schema: shop, threads: 1}}}\n"
    )
    (tmp_path / "packages.yml").write_text(f"packages: [{{local: '{package}'}}]\n")
    (tmp_path / "outbox.toml").write_text('[workflows]\nmodules = ["pay_back"]\n')
    outbox, python = str(installed / "outbox"), str(installed / "python")
    for words in (
        [outbox, "workflow", "new", "pay_back", "--category", "ToDo", "--third-party", "bank"],
        [python, "-m", "pytest", "-q", "test_pay_back.py"],
        [outbox, "workflow", "build"],
        [outbox, "workflow", "check"],
        [python, "-m", "dbt.cli.main", "deps"],
        [python, "-m", "dbt.cli.main", "parse", "--profiles-dir", "."],
    ):
        done = subprocess.run(
            words,
            cwd=tmp_path,
            env=strangers_environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}"
    manifest = json.loads((tmp_path / "target" / "manifest.json").read_text(encoding="utf-8"))
    model = manifest["nodes"]["model.shop.railway_in_force"]
    assert model["config"]["materialized"] == "outbox_workflows"
    assert "macro.delta_outbox.workflows_in_force" in model["depends_on"]["macros"]
    assert "exposure.shop.workflow_pay_back" in manifest["exposures"]

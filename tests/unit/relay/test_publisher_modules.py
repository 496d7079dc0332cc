"""Publishers of one's own are imported by workers from where the relay has imported them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from delta_outbox.relay.publish.publisher_modules import folders_of, make_importable


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with a module, a package and a namespace, all imported here."""
    (tmp_path / "lonely_module.py").touch()
    for name in ("own_package", "own_namespace"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "inner.py").touch()
    (tmp_path / "own_package" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    for name in ("lonely_module", "own_package.inner", "own_namespace.inner"):
        __import__(name)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    "type_", ["lonely_module:Class", "own_package.inner:Class", "own_namespace.inner:Class"]
)
def test_folder_of_a_class_is_found(folder: Path, type_: str) -> None:
    """A worker that knows nothing imports the module from the folder that is handed to it."""
    assert (str(folder),) == folders_of([type_])
    module = type_.partition(":")[0]
    code = (
        "import sys, importlib; "
        "from delta_outbox.relay.publish.publisher_modules import make_importable; "
        "make_importable(sys.argv[2:]); importlib.import_module(sys.argv[1])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, module, *folders_of([type_])], cwd="/", check=False
    )
    assert 0 == ended.returncode


def test_built_in_types_need_no_folder() -> None:
    """What comes with us, or with an installed package, is found without help."""
    assert () == folders_of(["jsonl", "kafka", "of_an_entry_point"])


def test_folders_come_last_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is added twice stands once, behind all that was there."""
    monkeypatch.setattr(sys, "path", ["first", "second"])
    make_importable(["third", "second"])
    make_importable(["third"])
    assert ["first", "second", "third"] == sys.path

"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_outbox.core.errors import NoJava
from delta_outbox.runtime.java import find_java


def java_home(folder: Path, version: str, *, exit_code: int = 0) -> Path:
    """Make a Java that can say its version and nothing else, as `java -version` does."""
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\nexit {exit_code}\n",
        encoding="utf-8",
    )
    executable.chmod(0o755)
    return folder


def test_empty_path_is_no_java(tmp_path: Path):
    """Without any Java one sentence says how to install it."""
    with pytest.raises(NoJava) as caught:
        find_java({"PATH": str(tmp_path)})
    assert "Java 17 or newer is needed. Found: none." == str(caught.value)
    assert "apt-get install openjdk-17-jre-headless" in caught.value.remedy
    assert "brew install openjdk@17" in caught.value.remedy


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402", "16"])
def test_old_java_is_named(tmp_path: Path, version: str):
    """A Java that is too old is named with its version and place."""
    old = java_home(tmp_path, version)
    with pytest.raises(NoJava) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert f"Found: {version} at {old}/bin/java." in str(caught.value)


def test_newer_one_on_the_path_is_taken(tmp_path: Path):
    """JAVA_HOME that is too old or wrong does not hide a good Java on the PATH."""
    old = java_home(tmp_path / "old", "11.0.2")
    new = java_home(tmp_path / "new", "21.0.1")
    for named in (old, tmp_path / "gone"):
        found = find_java({"JAVA_HOME": str(named), "PATH": f"{new}/bin"})
        assert (new / "bin" / "java", "21.0.1", None) == (
            found.executable,
            found.version,
            found.home,
        )


def test_java_home_comes_first(tmp_path: Path):
    """JAVA_HOME wins over the PATH if it is new enough."""
    named = java_home(tmp_path / "named", "17")
    other = java_home(tmp_path / "other", "21.0.1")
    found = find_java({"JAVA_HOME": str(named), "PATH": f"{other}/bin"})
    assert (named, "17") == (found.home, found.version)


def test_placeholder_is_no_java(tmp_path: Path):
    """A `java` that only says that there is none (macOS) counts as none."""
    placeholder = java_home(tmp_path, "17", exit_code=1)
    with pytest.raises(NoJava, match="Found: none"):
        find_java({"PATH": f"{placeholder}/bin"})

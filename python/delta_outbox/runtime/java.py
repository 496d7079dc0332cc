"""Finds Java, and checks that it is new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from delta_outbox.core.errors import NoJava

OLDEST_JAVA = 17
VERSION_TIMEOUT = 30.0  # seconds; a cold disk may take a few

# Homebrew installs openjdk@17 without putting it on PATH.
_BREW_HOMES = ("/opt/homebrew/opt/openjdk@17", "/usr/local/opt/openjdk@17")
_VERSION = re.compile(r'version "(?P<version>(?P<first>\d+)(?:\.(?P<second>\d+))?[^"]*)"')


@dataclass(frozen=True, kw_only=True)
class Java:
    """A Java that can run Spark."""

    executable: Path
    version: str
    home: Path | None  # None: found on PATH, where Spark's scripts find it too


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Path, Path | None]]:
    named = environ.get("JAVA_HOME", "").strip()
    if named:
        yield Path(named) / "bin" / "java", Path(named)
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield Path(on_path), None
    for home in map(Path, _BREW_HOMES):
        yield home / "bin" / "java", home


def _version_of(executable: Path, environ: Mapping[str, str]) -> tuple[int, str] | None:
    try:
        answer = subprocess.run(
            [str(executable), "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_TIMEOUT,
            check=False,
            env=dict(environ),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(answer.stderr + answer.stdout)
    if answer.returncode != 0 or found is None:
        return None  # macOS ships a `java` that only says that there is none
    first = int(found["first"])
    # Up to Java 8 the version is 1.<major>.
    major = int(found["second"] or 0) if first == 1 else first
    return major, found["version"]


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """Find a Java that is new enough: JAVA_HOME, then PATH, then Homebrew's folders.

    Raises:
        NoJava: there is none, or only older ones.
    """
    variables = os.environ if environ is None else environ
    too_old: str | None = None
    for executable, home in _candidates(variables):
        found = _version_of(executable, variables)
        if found is None:
            continue
        major, version = found
        if major >= OLDEST_JAVA:
            return Java(executable=executable, version=version, home=home)
        too_old = too_old or f"{version} at {executable}"
    raise NoJava(found=too_old)

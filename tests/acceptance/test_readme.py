"""The README, followed literally in a fresh clone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

PATIENCE = 1500.0  # seconds for one block on a busy machine
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def follow(block: str, *, clone: Path, environment: dict[str, str]) -> str:
    """Run a block of the README as it stands and return what it printed."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=clone,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode} of\n{block}\n{done.stdout[-4000:]}"
    return done.stdout


def test_every_command_of_the_readme_works(
    clone: Path, strangers_environment: dict[str, str]
) -> None:
    """The commands of the README, in its order, set up, prove the demo, and deliver an event."""
    blocks = BLOCK.findall((clone / "README.md").read_text(encoding="utf-8"))
    assert len(blocks) == 3

    told = follow(blocks[0], clone=clone, environment=strangers_environment)
    assert re.search(r"\bmissing\s+0\b", told)
    assert re.search(r"\bunexpected\s+0\b", told)

    looked = follow(blocks[1], clone=clone, environment=strangers_environment)
    assert "PUBLISHED" in looked

    own = follow(blocks[2], clone=clone, environment=strangers_environment)
    assert "order.created" in own
    lines = [
        line
        for file in (clone / "my-outbox" / "delivered").rglob("*.jsonl")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    assert len(lines) == 1
    assert '"event_id":"o-1"' in lines[0]

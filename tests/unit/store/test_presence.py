"""A relay whose process has ended is known to be gone at once, on its own machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from delta_outbox.store.presence import KEPT_SECONDS, Presence, Says

HOLDS = """
import sys
from pathlib import Path
from delta_outbox.store.presence import Presence, Says
presence = Presence(Path(sys.argv[1]))
presence.enter("other/relay")
print("in", flush=True)
sys.stdin.read()
presence.leave()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return where relays say that they live; nobody has yet."""
    return tmp_path / "relays"


def other(folder: Path) -> subprocess.Popen[str]:
    """Start a relay in a process of its own, and wait until it is in."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert "in\n" == process.stdout.readline()
    return process


def test_a_killed_relay_is_gone(folder: Path) -> None:
    """While its process lives a relay is there; killed, it is gone, for whoever asks."""
    presence = Presence(folder)
    presence.enter("mine")
    with other(folder) as process:
        assert (True, False) == (presence.is_there("other/relay"), presence.is_gone("other/relay"))
        assert ["mine", "other/relay"] == presence.there()
        process.kill()
        process.wait()
        assert ["mine"] == presence.there()
        assert (False, True) == (presence.is_there("other/relay"), presence.is_gone("other/relay"))
        assert (True, False) == (presence.is_there("mine"), presence.is_gone("mine"))


def test_of_a_relay_that_was_never_here_nothing_is_known(folder: Path) -> None:
    """A relay of another machine, one that has stopped in order, and all where there is no home:
    none of them counts as gone.
    """
    presence = Presence(folder)
    assert (False, False) == (presence.is_there("elsewhere"), presence.is_gone("elsewhere"))
    with other(folder) as process:
        process.communicate()
        assert not presence.is_gone("other/relay")
    nowhere = Presence(None)
    nowhere.enter("mine")
    assert [] == nowhere.there()
    assert (False, False) == (nowhere.is_there("mine"), nowhere.is_gone("mine"))
    nowhere.leave()


def test_a_relay_says_something_of_itself(folder: Path) -> None:
    """What a relay said last is there while it lives; of one that says nothing, or works elsewhere,
    nothing is known.
    """
    presence = Presence(folder)
    presence.enter("mine")
    for problem in ("long " * 100, None):
        says: Says = {"batch_size": 10, "problem": problem}
        presence.say(says)
        assert says == Presence(folder).words_of("mine")
    with other(folder) as process:
        assert {} == presence.words_of("other/relay")
        process.communicate()
    presence.leave()
    assert [{}, {}] == [Presence(folder).words_of("mine"), Presence(None).words_of("mine")]


def test_what_killed_relays_leave_is_removed(folder: Path) -> None:
    """What a relay left that was killed long ago goes away; what is held or new stays."""
    with other(folder) as process:
        long_ago = time.time() - KEPT_SECONDS - 1
        (folder / "dead").touch()
        (folder / "just-dead").touch()
        for name in ("dead", "other%2Frelay"):
            os.utime(folder / name, (long_ago, long_ago))
        presence = Presence(folder)
        presence.enter("mine")
        assert {"mine", "just-dead", "other%2Frelay"} == {path.name for path in folder.iterdir()}
        presence.leave()
        process.kill()

"""Whose process is known to have ended."""

from __future__ import annotations

import os
import subprocess
import sys

from delta_outbox.runtime.dead_clients import has_ended, user_of_process


def test_only_a_process_of_ours_that_has_ended_has_ended() -> None:
    """Sessions are ended of clients whose process was one of ours here, and has ended; what has its
    number in another container is somebody else, and so is a client that only has a name.
    """
    assert not has_ended(user_of_process())
    with subprocess.Popen([sys.executable, "-c", "pass"]) as child:
        child.wait()
    ended = user_of_process().replace(f"/{os.getpid()}", f"/{child.pid}")
    assert has_ended(ended)
    prefix, *numbers, _ = ended.split("/")
    elsewhere = "/".join([prefix, *numbers, "of-another", str(child.pid)])
    for user in ("", "ann", f"ann/{child.pid}", f"{prefix}//", elsewhere):
        assert not has_ended(user)

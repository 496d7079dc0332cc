"""Who really has a home, when whoever signed for it is gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from delta_outbox.core.errors import HomeInUse
from delta_outbox.runtime.home import Home

# A child inherits the lock and nobody has signed for it yet, as in the first moment of a JVM.
LEAVE = """
import subprocess, sys
from pathlib import Path
from delta_outbox.runtime.home import Home
lock = Home(root=Path(sys.argv[1])).lock
lock.acquire()
closed = dict.fromkeys(["stdin", "stdout", "stderr"], subprocess.DEVNULL)
print(subprocess.Popen(["sleep", "600"], pass_fds=(lock.descriptor,), **closed).pid)
"""


@pytest.mark.parametrize("signer", ["gone", "number used again"])
def test_the_message_names_who_really_has_the_home(tmp_path: Path, signer: str):
    """Where the process that signed for the home is gone, also if another has its number by now,
    the message names, and advises to stop, the one that has the lock.
    """
    home = Home(root=tmp_path / "home").create()
    left = subprocess.run(
        [sys.executable, "-c", LEAVE, str(home.root)], capture_output=True, text=True, check=True
    )
    child = int(left.stdout)
    signed = json.loads(home.lock_file.read_text(encoding="utf-8"))["pid"]
    if signer != "gone":
        signed = os.getppid()
        home.lock_file.write_text(json.dumps({"pid": signed}), encoding="utf-8")
    try:
        with pytest.raises(HomeInUse) as caught:
            home.lock.acquire()
    finally:
        os.kill(child, 9)
    assert child == caught.value.pid
    assert f"kill {child}" in caught.value.remedy
    assert f"kill {signed}" not in caught.value.remedy

"""Relays that are killed while third parties are called."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest
from scripts import environment
from tests.faults.conftest import PATIENCE, wait_for
from tests.unit.workflow_engine.hosts.ledger import Ledger, ledger

from delta_outbox.runtime.home import Home

pytestmark = pytest.mark.rest

SCRIPT = Path(__file__).with_name("parcels_relay.py")
AUTHOR = Path(__file__).parents[2] / "integration" / "railway" / "author"
PARCELS = 20  # more than black boxes may be called at once before all kills
KILLED_AFTER = (5, 25, 46)  # requests at third parties, of 60 or a few more


class Shop:
    """A home in which parcels are workflows.

    Args:
        home: with an outbox.
        third_parties: what they were asked.
    """

    def __init__(self, home: Home, third_parties: Ledger) -> None:
        self.root, self.third_parties = home.root, third_parties
        self.environment = {**environment.plain(), "OUTBOX_HOME": str(self.root)}

    def run(self, *words: str) -> str:
        """Run a command of the command line to its end."""
        code = "import sys; from delta_outbox.cli.main import main; sys.exit(main())"
        return self._output([sys.executable, "-c", code, *words, "--json"])

    def relay(self) -> subprocess.Popen[str]:
        """Start a relay."""
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), str(AUTHOR), "run"],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )

    def has_asked(self, count: int) -> bool:
        """Say whether third parties were asked so often."""
        return len(self.third_parties.read()) >= count

    def report(self) -> list[tuple[str, str, str | None]]:
        """Return id, reason and outcome of each ending."""
        lines = self._output([sys.executable, str(SCRIPT), str(AUTHOR), "report"]).splitlines()
        return [tuple(row) for row in json.loads(lines[-1])]

    def _output(self, command: list[str]) -> str:
        done = subprocess.run(
            command,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        return done.stdout


def hosts_of(relay: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the hosts of a relay."""
    children = psutil.Process(relay.pid).children()
    return [one for one in children if "delta_outbox.workflow_engine.hosts.host" in one.cmdline()]


def test_no_kill_makes_a_third_party_act_twice(
    made_home: Callable[[Path], Home], tmp_path: Path
) -> None:
    """Relays are killed while third parties are asked; the last one ends every instance. Who can be
    asked what it did has acted once, a black box at most once, and no host outlives its relay.
    """
    with ledger() as third_parties:
        shop = Shop(made_home(tmp_path / "home"), third_parties)
        names = [f"p{number}" for number in range(PARCELS)]
        events = tmp_path / "events.jsonl"
        events.write_text(
            "".join(
                json.dumps(
                    {
                        "event_id": f"ordered-{name}",
                        "event_type": "parcel.ordered",
                        "payload": {"parcel": name, "port": third_parties.port},
                    }
                )
                + "\n"
                for name in names
            )
        )
        first = shop.relay()  # puts the workflows into force
        assert 0 == first.wait(PATIENCE)
        shop.run("append", str(events))
        for count in KILLED_AFTER:
            relay = shop.relay()
            wait_for(partial(shop.has_asked, count))
            hosts = hosts_of(relay)
            os.killpg(relay.pid, signal.SIGKILL)
            relay.wait()
            psutil.wait_procs(hosts, timeout=30)
            assert hosts
            assert not [one for one in hosts if one.is_running()]
        assert 0 == shop.relay().wait(PATIENCE)
        endings = shop.report()
        asked = Counter(third_parties.read())
    for name in names:
        assert asked[f"book-{name}"] >= 1, name
        assert 1 == asked[f"pay-{name}"], name
        assert asked[f"tell-{name}"] <= 1, name
        (told,) = [one for one in endings if one[0] == f"tell-{name}" and one[2]]
        assert (told[1], told[2]) in {("completed", "told"), ("uncertain", "maybe_told")}
        paid = [one for one in endings if one[0] == f"pay-{name}" and one[2]]
        assert [(f"pay-{name}", "completed", "paid")] == paid
    uncertain = [one for one in endings if one[1] == "uncertain"]
    assert len(uncertain) <= 4 * len(KILLED_AFTER), uncertain  # black boxes at once

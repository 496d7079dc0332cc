"""The folder of the demo: a dbt project of its own with an outbox in it, and the ledgers."""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import shutil
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scripts.orders_demo import EXAMPLE, ROOT
from third_party import PRODUCTS

from delta_outbox.core.errors import WrongUsage
from delta_outbox.demo.ports import free_ports
from delta_outbox.runtime.home import DEFAULT_NAME, Home

DEMO: Final = "demo.json"  # what a folder holds; it comes first, and whole
MODULES: Final = (
    "demo_times.py",
    "http_clients.py",
    "order_compensation.py",
    "order_creation.py",
    "orders.py",
    "orders_hurried.py",
)
PROJECT: Final = ("dbt_project.yml", "profiles.yml")
BEAT_SECONDS: Final = 0.5  # between two signs that the demo is alive
HOSTS: Final = 12  # that call the terminal at once: most of the time they wait

SETTINGS: Final = """\
# Written by the demo at each start.

[relay]
refresh_seconds = 20

[workflows]
modules = ["orders_hurried"]
hosts = {hosts}

[todo]
port = {port}
rate_per_second = 1000
answer_seconds = 25
link_secret = "{link_secret}"

[publishers.default]
type = "jsonl"
"""
THIRD_PARTY: Final = """
[third_parties.{name}]
url = "{url}"
token = "of-the-demo"
"""


@dataclass(frozen=True, kw_only=True)
class Folder:
    """Where everything of one demo lies.

    Args:
        root: the folder.
    """

    root: Path

    @property
    def home(self) -> Home:
        """Return the home of the outbox."""
        return Home(root=self.root / DEFAULT_NAME)

    @property
    def ledgers(self) -> Path:
        """Return where third parties and people write what they have done."""
        return self.root / "ledgers"

    @property
    def logs(self) -> Path:
        """Return where processes write what goes wrong."""
        return self.root / "process_logs"

    @property
    def orders(self) -> Path:
        """Return the file of the orders, as `outbox append` takes them."""
        return self.root / "orders.jsonl"

    @property
    def deaths(self) -> Path:
        """Return the file of what has died beside the demo."""
        return self.ledgers / "deaths.jsonl"

    @property
    def keys(self) -> Path:
        """Return the file with the API keys of the people, by role."""
        return self.root / "keys.json"

    @property
    def is_built(self) -> Path:
        """Return the file that is there once the workflows are in force."""
        return self.root / ".built"

    @property
    def is_running(self) -> Path:
        """Return the file that is there while a demo runs, and after one that was killed. Its time
        is when the demo was last seen alive.
        """
        return self.root / ".running"

    @contextlib.contextmanager
    def alive(self) -> Iterator[None]:
        """Show for a block that this demo is alive, whatever it waits for."""
        is_over = threading.Event()

        def beat() -> None:
            self.is_running.touch()
            while not is_over.wait(BEAT_SECONDS):
                self.is_running.touch()

        beating = threading.Thread(target=beat, name="alive", daemon=True)
        beating.start()
        try:
            yield
        finally:
            is_over.set()
            beating.join()

    def make(self, *, orders: int, seed: int) -> None:
        """Write the project, unless it is there.

        Args:
            orders: how many.
            seed: of all that happens.

        Raises:
            WrongUsage: the folder holds something else, or a demo with other orders.
        """
        asked = {"orders": orders, "seed": seed}
        known, part = self.root / DEMO, self.root / f"{DEMO}.part"
        others = set(self.root.iterdir()) - {part} if self.root.exists() else set()
        if others and not known.is_file():
            raise WrongUsage(
                f"demo: {self.root} must be empty or a folder of the demo.",
                remedy="Give it another one: FOLDER=...",
            )
        if known.is_file() and (found := json.loads(known.read_text())) != asked:
            raise WrongUsage(
                f"demo: {self.root} holds a demo of {found['orders']} orders, seed "
                f"{found['seed']}. Got: {orders} orders, seed {seed}.",
                remedy=f"Go on with that one, remove {self.root}, or give another FOLDER=...",
            )
        self.root.mkdir(parents=True, exist_ok=True)
        if not known.is_file():
            part.write_text(json.dumps(asked))
            part.replace(known)
        for one in (self.ledgers, self.logs):
            one.mkdir(exist_ok=True)
        self.home.create()
        if not self.is_built.exists():  # after that it has the rows of these modules
            for name in MODULES:
                shutil.copyfile(EXAMPLE / name, self.root / name)
        for name in PROJECT:
            shutil.copyfile(ROOT / "examples" / "consumer" / name, self.root / name)
        packages = f"packages:\n  - local: {json.dumps(str(ROOT))}\n"
        (self.root / "packages.yml").write_text(packages)
        self.orders.write_text("".join(f"{json.dumps(one)}\n" for one in self._orders(**asked)))

    def write_settings(self, urls: Mapping[str, str]) -> str:
        """Write the settings of the outbox, and return the address of its server of items.

        Args:
            urls: by third party, where it listens.
        """
        (port,) = free_ports(1)
        parts = [SETTINGS.format(hosts=HOSTS, port=port, link_secret=secrets.token_urlsafe(32))]
        parts += [THIRD_PARTY.format(name=name, url=url) for name, url in urls.items()]
        self.home.write_settings("".join(parts))
        return f"http://127.0.0.1:{port}"

    def write_keys(self, keys: Mapping[str, str]) -> None:
        """Write the API keys of the people, for this user alone.

        Args:
            keys: by role.
        """
        part = self.keys.with_suffix(".part")
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(keys, file)
        part.replace(self.keys)

    def _orders(self, *, orders: int, seed: int) -> Iterator[dict[str, object]]:
        chance = random.Random(f"{seed}/orders")
        for number in range(1, orders + 1):
            order_id = f"o{number}"
            yield {
                "event_id": f"requested-{order_id}",
                "event_type": "order.requested",
                "payload": {
                    "order_id": order_id,
                    # The terminal knows its customer alone, and its ledger tells the order by it.
                    "customer": f"customer-{order_id}",
                    "products": chance.sample(PRODUCTS, chance.randint(1, 3)),
                },
            }

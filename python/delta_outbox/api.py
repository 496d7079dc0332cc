"""Opens an outbox; `Outbox` and this are where the public API begins (docs/api.md)."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from delta_outbox.core.clock import Clock
from delta_outbox.runtime.home import Home, find_home
from delta_outbox.runtime.home_spark import opened_spark
from delta_outbox.runtime.session import is_remote
from delta_outbox.runtime.settings_file import load_settings

if TYPE_CHECKING:
    from delta_outbox.operations.outbox import Outbox

__all__ = ["Outbox", "open_outbox"]

_OUTBOX: Final = "delta_outbox.operations.outbox"


def __getattr__(name: str) -> object:
    """Import what is asked for first.

    Args:
        name: of `__all__`.
    """
    if name != "Outbox":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_OUTBOX), name)


@contextlib.contextmanager
def open_outbox(
    *,
    home: Home | None = None,
    config: Path | None = None,
    create: bool = False,
    only_served: bool = False,
    short_lived: bool = False,
    debug: bool = False,
    clock: Clock | None = None,
) -> Iterator[Outbox]:
    """Open an outbox for a block.

    The session is the one that SPARK_REMOTE names, else that of the server of this home, else a
    local one that takes the home for itself.

    Args:
        home: the home; looked for if left out.
        config: the settings file; looked for if left out.
        create: create what is missing; the first time on a machine, this also leaves behind what
            makes later starts of Spark faster (runtime/class_archive.py).
        only_served: never take the home for itself: others are to work in it.
        short_lived: start fast and compute slower, for a command of a minute at most.
        debug: show what Spark prints, on standard error.
        clock: the time.

    Raises:
        ServerNeeded: nobody serves the home, and it is not to be taken.
        NoOutboxHere: there is none and it is not to be created.
        HomeInUse: another process works in this home and does not serve it.
        ServerUnreachable: the server does not answer.
        TornCommit: the newest commit of a log is not whole.
        FormatTooNew: a newer release wrote the logs.
        FormatTooOld: an older release wrote the logs, and they are not to be created.
        StoragePrecondition: the logs lie where two drivers can both win a commit.
        BadSettings: a setting breaks a rule.
    """
    home = home or find_home(create=create)
    settings = load_settings(home=home.root, path=config)
    # Beside the start of a JVM: it takes half a second.
    threading.Thread(target=import_module, args=(_OUTBOX,), name="imports").start()
    with opened_spark(
        home,
        only_served=only_served,
        short_lived=short_lived,
        record_classes=create,
        debug=debug,
    ) as spark:
        from delta_outbox.operations.outbox import outbox_on

        if create:
            from delta_outbox.core.tables import Tables
            from delta_outbox.runtime.dbt import default_schema
            from delta_outbox.store.opening import create_outbox

            tables = Tables(schema=default_schema())
            single_driver = settings.storage.single_driver
            create_outbox(spark, home, tables, single_driver=single_driver)
        outbox = outbox_on(
            spark, home=home, settings=settings, clock=clock, exclusive=not is_remote(spark)
        )
        try:
            yield outbox
        finally:
            outbox.close()

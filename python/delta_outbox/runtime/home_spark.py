"""Opens the Spark that works on the outbox of a home."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from delta_outbox.core.errors import ServerNeeded
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.served_home import find_served, remote_address
from delta_outbox.runtime.session import local_session, stop_session, using_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextlib.contextmanager
def opened_spark(
    home: Home, *, only_served: bool, short_lived: bool, record_classes: bool, debug: bool
) -> Iterator[SparkSession]:
    """Open the session that works on the outbox of a home: the one that SPARK_REMOTE names, else
    that of the server of this home, else a local one that takes the home for itself.

    Args:
        home: the home.
        only_served: take no home: others are to work in it.
        short_lived: start fast and compute slower.
        record_classes: leave behind what makes later starts of Spark faster.
        debug: show what Spark prints, on standard error.

    Raises:
        ServerNeeded: there is no server, and the home is not to be taken.
        HomeInUse: another process works in this home and does not serve it.
        ServerUnreachable: the server does not answer.
        TornCommit: the newest commit of a log is not whole.
    """
    served = find_served(home)
    address = remote_address(served)
    if address is not None:
        is_ours = served is not None and served.url == address
        with using_server(address, served=served if is_ours else None) as spark:
            yield spark
        return
    if only_served:
        raise ServerNeeded(home=home.root)
    spark = local_session(home, short_lived=short_lived, record_classes=record_classes, debug=debug)
    try:
        yield spark
    finally:
        stop_session()
        home.lock.release()

"""Libraries that only some publishers need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Name the extra that is missing where an import of a block finds no module.

    Args:
        extra: of this package.

    Raises:
        ImportError: a module of the block is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(
            f"it needs {error.name!r}: install the extra with pip install 'delta-outbox[{extra}]', "
            "where the relay and the executors run."
        ) from error

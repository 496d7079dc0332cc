"""Libraries that come with an extra of the package."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def needs(extra: str) -> Iterator[None]:
    """Say which extra to install if an import of the block finds nothing.

    Args:
        extra: its name in pyproject.toml.

    Raises:
        ImportError: a library is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{error.name} is missing: pip install 'delta-outbox[{extra}]'", name=error.name
        ) from error

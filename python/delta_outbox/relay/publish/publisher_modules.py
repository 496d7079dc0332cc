"""Lets workers import the code of `package.module:Class` from where the driver has it.

The workers of a server know the paths of the process that started it, not those of a relay that
came later.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path


def folders_of(types: Iterable[str]) -> tuple[str, ...]:
    """Return the folders from which this process has imported publishers, in order.

    Args:
        types: `type` of each destination; what is built in or installed is found anyway.
    """
    folders: dict[str, None] = {}
    for type_ in types:
        module, colon, _ = type_.partition(":")
        top = sys.modules.get(module.partition(".")[0]) if colon else None
        if top is None:
            continue
        # A package's folder, all folders of a namespace, or the file of a plain module.
        places = list(getattr(top, "__path__", [])) or [getattr(top, "__file__", None)]
        folders.update({str(Path(place).absolute().parent): None for place in places if place})
    return tuple(folders)


def make_importable(folders: Iterable[str]) -> None:
    """Let this worker import from folders, after all that it can import already.

    Args:
        folders: as `folders_of` returned them.
    """
    new = [folder for folder in folders if folder not in sys.path]
    if new:
        sys.path += new
        importlib.invalidate_caches()

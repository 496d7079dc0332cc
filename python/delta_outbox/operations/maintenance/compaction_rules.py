"""Which partitions are worth compacting: pure, over the paths of a table's files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

MANY_FILES: Final = 8  # in one partition; fewer are not worth a rewrite
SMALL_FILE: Final = 32 * 1024 * 1024  # bytes; what is larger is not written again for its size

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")


def partition_of(path: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the values of the partition that a file lies in, as its path spells them.

    Args:
        path: of the file.
        columns: the partition columns of its table, in order.
    """
    folders = path.rsplit("/", len(columns) + 1)[1:-1]
    values = []
    for name, folder in zip(columns, folders, strict=True):
        found, _, value = folder.partition("=")
        if found != name:
            raise ValueError(f"{path}: the folder of {name} is missing")
        # Spark escapes the value, and a URI escapes it once more.
        values.append(unquote(unquote(value)))
    return tuple(values)


def with_many_files(paths: Iterable[str], columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the partitions that hold many files.

    Args:
        paths: of all files of a table.
        columns: its partition columns.
    """
    counted = Counter(partition_of(path, columns) for path in paths)
    return sorted(
        values
        for values, files in counted.items()
        if files >= MANY_FILES and all(map(_is_plain, values))
    )


def small(sizes: Mapping[str, int]) -> list[str]:
    """Return the files that are small: a partition of large ones is not compacted once more.

    Args:
        sizes: path to bytes.
    """
    return [path for path, size in sizes.items() if size < SMALL_FILE]


def _is_plain(value: str) -> bool:
    """Say whether a value is one that we write: a number, a day, a word. It goes into SQL."""
    return _PLAIN.fullmatch(value) is not None


def condition(partitions: Iterable[Sequence[str]], columns: Sequence[str]) -> str:
    """Return the partitions as a condition on partition columns only.

    Args:
        partitions: values, in the order of the columns.
        columns: the partition columns.
    """
    return " or ".join(
        "(" + " and ".join(map(_equals, columns, values)) + ")" for values in partitions
    )


def _equals(column: str, value: str) -> str:
    if value.isdigit():
        return f"{column} = {value}"
    return f"{column} = {'date' if _DATE.fullmatch(value) else ''}'{value}'"

"""Checks where the logs lie, and that one commit has one winner there (design rule 10).

A commit of Delta is a file that must not be there yet. Some stores put a file only where there is
none; on others two drivers that put the same commit both believe that they have won, and an
acknowledged event is gone. What decides is where the logs lie, not where the warehouse of the
session is: a schema or a table may have a location of its own. dbt says the same of each run that
writes (macros/storage/check_storage.sql).
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from delta_outbox.core.errors import StoragePrecondition
from delta_outbox.core.tables import LOGS, PROJECTION
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.session import Machine, is_remote, spark_here

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

LOCAL: Final = "file"
# The driver asks the file system, or Delta's own store for it, to put a commit where there is none.
# HDFS was tried (0 of 4,000 races had two winners); of the others Delta's documentation says so.
ONE_WINNER: Final = frozenset({"hdfs", "abfs", "abfss", "adl", "wasb", "wasbs", "gs"})
# The stores that Delta ships of which only one driver may use an object store: they look, then put.
LOOK_THEN_PUT: Final = re.compile(
    r"(?:io\.delta\.storage|org\.apache\.spark\.sql\.delta\.storage)\."
    r"(?:S3SingleDriver|HDFS|Azure|Local|GCS|Delegating)LogStore"
)

PROMISE: Final = "storage.single_driver"

_OWN_HOME: Final = (
    "Let the logs lie in the home, and share it with other processes by `outbox serve` (with "
    "OUTBOX_HOME set to that home); for several machines use HDFS."
)
_PROMISE: Final = (
    "Use HDFS, or give Delta a log store for it that puts a commit only where there is none "
    "(spark.delta.logStore.{scheme}.impl). If one Spark driver, and never a second one, writes to "
    "these tables, promise it: `single_driver = true` below [storage] in outbox.toml, and the "
    "variable `single_driver: true` of dbt; `outbox status` shows the promise."
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a table lies.

    Args:
        table: its full name.
        location: as the catalog has it, a path with a scheme or without.
    """

    table: str
    location: str

    @property
    def scheme(self) -> str:
        """Return which kind of store that is; Hadoop takes a path without a scheme for its own."""
        found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", self.location)
        return found[1].lower() if found else LOCAL

    @property
    def path(self) -> Path:
        """Return the path of a place on a local disk."""
        bare = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*(?=/))?", "", self.location)
        return Path(bare)


def check_storage(
    spark: SparkSession, *, schema: str, home: Home | None, single_driver: bool
) -> Mapping[str, Place]:
    """Refuse logs that lie where two drivers can both win a commit.

    Args:
        spark: the session.
        schema: of the outbox.
        home: whose Spark it may be; None for a Spark of somebody else.
        single_driver: the operator has promised that one driver alone writes.

    Returns:
        Where they lie, by name.

    Raises:
        StoragePrecondition: they do.
    """
    places = places_of(spark, schema=schema, names=(*LOGS, PROJECTION))
    check_places(
        places.values(),
        own_warehouse=home.warehouse if home is not None and _is_of(spark, home) else None,
        setting=lambda name: spark.conf.get(name, None),
        single_driver=single_driver,
    )
    return places


_checked: weakref.WeakKeyDictionary[
    SparkContext | Machine, dict[tuple[str, Home | None, bool], Mapping[str, Place]]
] = weakref.WeakKeyDictionary()


def checked_places(
    spark: SparkSession, *, schema: str, home: Home | None, single_driver: bool
) -> Mapping[str, Place]:
    """Return what `check_storage` does; of a Spark on this machine it is asked once.

    Args:
        spark: the session.
        schema: of the outbox.
        home: whose Spark it may be; None for a Spark of somebody else.
        single_driver: the operator has promised that one driver alone writes.

    Raises:
        StoragePrecondition: the logs lie where two drivers can both win a commit.
    """
    here = spark_here(spark)
    known = {} if here is None else _checked.setdefault(here, {})
    key = schema, home, single_driver
    if key not in known:
        known[key] = check_storage(spark, schema=schema, home=home, single_driver=single_driver)
    return known[key]


def _is_of(spark: SparkSession, home: Home) -> bool:
    """Say whether the lock of a home keeps other drivers away: this process holds it, or the
    server of the home, with which it talks.
    """
    return spark_here(spark) is not None if is_remote(spark) else home.lock.held


# twin: macros/storage/storage_problem.sql::storage_problem
def check_places(
    places: Iterable[Place],
    *,
    own_warehouse: Path | None,
    setting: Callable[[str], str | None],
    single_driver: bool,
) -> None:
    """Refuse a store on which two drivers can both win.

    Args:
        places: of the logs.
        own_warehouse: of the home whose lock this session, or its `outbox serve`, holds; None if
            it is a Spark of somebody else.
        setting: returns a setting of Spark, None if it is left at its default.
        single_driver: the operator has promised that one driver alone writes.

    Raises:
        StoragePrecondition: a log lies where this is not ruled out.
    """
    for place in places:
        scheme = place.scheme
        if scheme == LOCAL:
            if own_warehouse is None or not _lies_in(place.path, own_warehouse):
                ours = "this home" if own_warehouse is None else f"this home, {own_warehouse}"
                whose = " through a Spark that is not of this home" if own_warehouse is None else ""
                raise StoragePrecondition(
                    f"{place.table}: a log on a local disk must lie in the warehouse of {ours}, "
                    "because only its lock keeps a second driver away, and two drivers on local "
                    f"files can both win. Got: {place.location}{whose}.",
                    remedy=_OWN_HOME,
                )
        elif not single_driver and not _has_one_winner(scheme, setting):
            raise StoragePrecondition(
                f"{place.table}: Delta's log store for {scheme}:// lets two drivers win the same "
                f"commit, and what one of them has appended would be gone. Got: {place.location}.",
                remedy=_PROMISE.format(scheme=scheme),
            )


def _has_one_winner(scheme: str, setting: Callable[[str], str | None]) -> bool:
    # In Delta's order: one for all schemes, else one for this scheme, else its own for it.
    named = (
        setting("spark.delta.logStore.class")
        or setting(f"spark.delta.logStore.{scheme}.impl")
        or setting(f"spark.hadoop.delta.logStore.{scheme}.impl")
    )
    if named is None or not named.strip():
        return scheme in ONE_WINNER
    if LOOK_THEN_PUT.fullmatch(named.strip()):
        # Delta's own store of another kind of file system is as good as that one's rename.
        return scheme == "hdfs" and "HDFS" in named
    return True


def _lies_in(path: Path, folder: Path) -> bool:
    spelled = (path, Path(unquote(str(path))))
    inside = folder.resolve()
    return any(Path(os.path.realpath(one)).is_relative_to(inside) for one in spelled)


def places_of(spark: SparkSession, *, schema: str, names: Iterable[str]) -> Mapping[str, Place]:
    """Return where the tables of a schema lie, by name; those that are missing are left out.

    Args:
        spark: the session.
        schema: of the outbox.
        names: of the tables.

    Raises:
        StoragePrecondition: the catalog does not say where one lies.
    """
    wanted = set(names)
    rows = spark.sql(f"show table extended in {schema} like '{'|'.join(sorted(wanted))}'").collect()
    found: dict[str, Place] = {}
    for row in rows:
        if row["tableName"] in wanted:
            table = f"{schema}.{row['tableName']}"
            location = re.search(r"^Location: (.+)$", row["information"], re.MULTILINE)
            if location is None:
                raise StoragePrecondition(
                    f"{table}: must be a table of which the catalog says where it lies. It does "
                    "not.",
                )
            found[row["tableName"]] = Place(table=table, location=location[1].strip())
    return found

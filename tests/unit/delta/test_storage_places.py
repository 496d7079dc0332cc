"""Which store may hold the logs: one on which a commit has one winner (design rule 10)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.macro_namespace import Macros

from delta_outbox.core.errors import StoragePrecondition
from delta_outbox.delta.storage_places import Place, check_places

DYNAMO = "io.delta.storage.S3DynamoDBLogStore"
SINGLE = "io.delta.storage.S3SingleDriverLogStore"


def check(
    location: str,
    *,
    home: Path | None = None,
    settings: Mapping[str, str] | None = None,
    single_driver: bool = False,
) -> None:
    """Check one log."""
    check_places(
        [Place(table="outbox.outbox_events", location=location)],
        own_warehouse=home,
        setting=(settings or {}).get,
        single_driver=single_driver,
    )


@pytest.mark.parametrize("scheme", ["file:", "file://", ""])
def test_a_local_log_lies_in_the_own_home(tmp_path: Path, scheme: str):
    """A log on a local disk is taken in the warehouse of the home whose lock we have, however its
    path is written, and nowhere else, whatever is promised.
    """
    warehouse = tmp_path / "my höme" / "warehouse"
    warehouse.mkdir(parents=True)
    check(f"{scheme}{warehouse}/outbox.db/outbox_events", home=warehouse)
    check(f"{scheme}{warehouse}/outbox.db/outbox_events".replace(" ", "%20"), home=warehouse)
    elsewhere = f"{scheme}{tmp_path}/my höme/warehouse2/outbox.db/outbox_events"
    for single_driver in (False, True):
        with pytest.raises(StoragePrecondition, match="must lie in the warehouse of this home"):
            check(elsewhere, home=warehouse, single_driver=single_driver)


def test_a_link_leads_no_log_out_of_the_home(tmp_path: Path):
    """A schema that is a link to another folder lies where the link leads."""
    warehouse, other = tmp_path / "warehouse", tmp_path / "other.db"
    warehouse.mkdir()
    other.mkdir()
    (warehouse / "outbox.db").symlink_to(other)
    with pytest.raises(StoragePrecondition):
        check(f"file:{warehouse}/outbox.db/outbox_events", home=warehouse)


def test_a_local_log_of_another_spark_is_refused(tmp_path: Path):
    """A Spark Connect server that is not the `serve` of the home may not be the only driver on its
    disk: two with local masters and a shared catalog were, and both won.
    """
    with pytest.raises(StoragePrecondition, match="through a Spark that is not of this home") as it:
        check(f"file:{tmp_path}/outbox.db/outbox_events")
    assert "outbox serve" in it.value.remedy


@pytest.mark.parametrize("scheme", ["s3a", "s3", "s3n", "S3A", "oss", "viewfs", "memory"])
def test_a_store_on_which_two_drivers_win_is_refused(scheme: str):
    """An object store with Delta's default log store is refused, with what to do, and taken where
    the operator has promised a single driver.
    """
    location = f"{scheme}://bucket/outbox/outbox_events"
    with pytest.raises(StoragePrecondition, match="lets two drivers win the same commit") as caught:
        check(location)
    assert "single_driver = true" in caught.value.remedy
    check(location, single_driver=True)


@pytest.mark.parametrize("name", ["S3SingleDriverLogStore", "HDFSLogStore", "LocalLogStore"])
@pytest.mark.parametrize(
    "setting",
    [
        "spark.delta.logStore.class",
        "spark.delta.logStore.s3a.impl",
        "spark.hadoop.delta.logStore.s3a.impl",
    ],
)
def test_naming_a_store_that_looks_and_then_puts_changes_nothing(setting: str, name: str):
    """Such a store is refused on s3a by whichever setting it is named; one that puts only where
    there is nothing is taken.
    """
    location = "s3a://bucket/outbox/outbox_events"
    for package in ("io.delta.storage", "org.apache.spark.sql.delta.storage"):
        with pytest.raises(StoragePrecondition):
            check(location, settings={setting: f"{package}.{name}"})
    check(location, settings={setting: DYNAMO})
    check(location, settings={setting: "com.example.ConditionalPut"})


@pytest.mark.parametrize("scheme", ["hdfs", "abfss", "abfs", "gs"])
def test_a_store_that_puts_only_where_there_is_nothing_is_taken(scheme: str):
    """HDFS, and what Delta's documentation says the same of, is taken without a word; but not with
    a log store that looks first.
    """
    check(f"{scheme}://host/outbox/outbox_events")
    with pytest.raises(StoragePrecondition):
        check(
            f"{scheme}://host/outbox/outbox_events",
            settings={f"spark.delta.logStore.{scheme}.impl": SINGLE},
        )


def test_every_log_is_looked_at(tmp_path: Path):
    """One log elsewhere is enough to refuse the outbox, and it is the one that is named."""
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    places = [
        Place(table="outbox.outbox_events", location=f"file:{warehouse}/outbox.db/outbox_events"),
        Place(table="outbox.outbox_relays", location="file:/elsewhere/outbox_relays"),
    ]
    with pytest.raises(StoragePrecondition, match=r"outbox\.outbox_relays: .*/elsewhere/"):
        check_places(places, own_warehouse=warehouse, setting=lambda _: None, single_driver=False)


HOMES = "/homes/of/ann/warehouse"
LOCATIONS = [
    f"file:{HOMES}/outbox.db/outbox_events",
    f"file://{HOMES}/outbox.db/outbox_events",
    f"{HOMES}/outbox.db/outbox_events",
    f"file:{HOMES}2/outbox.db/outbox_events",
    "file:/homes/of/ann b/höme 50%/warehouse/outbox.db/outbox_events",
    "file:/elsewhere/outbox_events",
    "s3a://bucket/outbox_events",
    "S3A://bucket/outbox_events",
    "hdfs://host/outbox_events",
    "abfss://host/outbox_events",
    "viewfs://host/outbox_events",
]
STORES = [
    None,
    *(DYNAMO, SINGLE, "com.example.ConditionalPut", "io.delta.storage.HDFSLogStore"),
    "org.apache.spark.sql.delta.storage.LocalLogStore",
]


@pytest.mark.parametrize("single_driver", [False, True])
@pytest.mark.parametrize("warehouse", [None, HOMES, "/homes/of/ann b/höme 50%/warehouse"])
@pytest.mark.parametrize("location", LOCATIONS)
def test_dbt_says_the_same(location: str, warehouse: str | None, single_driver: bool):
    """A dbt that nobody has started for a home takes and refuses the same places as a command, in
    the same words.
    """
    macros = Macros("storage")
    for store in STORES:
        said = ""
        try:
            check(
                location,
                home=None if warehouse is None else Path(warehouse),
                settings={} if store is None else {"spark.delta.logStore.class": store},
                single_driver=single_driver,
            )
        except StoragePrecondition as error:
            said = f"{error} {error.remedy}"
        assert said == macros.storage_problem(
            "outbox.outbox_events", location, warehouse, store, single_driver
        )

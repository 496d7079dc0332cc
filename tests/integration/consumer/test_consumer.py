"""A stranger's dbt project that uses ours as a package: examples/consumer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from order_compensation import order_compensation
from order_creation import order_creation
from tests.integration.conftest import REPOSITORY
from tests.integration.other_project import run_in

from delta_outbox.railway.generated_files import files_of, write
from delta_outbox.railway.rows import COLUMNS
from delta_outbox.runtime.dbt import check_result

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest

PURGED = "1004,8,5.00,2026-01-31 18:05:00"  # an order whose event the outbox holds no more
CONSUMER = REPOSITORY / "examples" / "consumer"
IGNORED = shutil.ignore_patterns("dbt_packages", "logs", "target", ".outbox", "package-lock.yml")

RunDbt = Callable[..., "dbtRunnerResult"]


@pytest.fixture
def consumer(tmp_path: Path, outbox_schema: str, spark: SparkSession) -> RunDbt:
    """Return a function that runs dbt in a copy of the example, in this process's session."""
    project = tmp_path / "examples" / "consumer"
    shutil.copytree(CONSUMER, project, ignore=IGNORED)
    packages = project / "packages.yml"
    packages.write_text(packages.read_text().replace("../..", str(REPOSITORY)))

    def run(*args: str) -> dbtRunnerResult:
        return run_in(project, args, variables={"outbox_schema": outbox_schema})

    check_result(run("deps"))
    return run


def test_a_stranger_uses_the_outbox_as_a_package(
    consumer: RunDbt, spark: SparkSession, outbox_schema: str, tmp_path: Path
) -> None:
    """A project of somebody else builds the outbox beside its own models and appends events, each
    once, also where they were purged; the outbox is where the project says, and the project's own
    models stay where they were. Its workflows are in force after a build, and in its lineage.
    """

    def rows(text: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [row.asDict() for row in spark.sql(text).collect()]
        return found

    project = tmp_path / "examples" / "consumer"
    write(files_of([order_compensation, order_creation], project, whole=True))
    try:
        built = consumer("build")
        check_result(built)
        kinds = {str(one.node.resource_type) for one in getattr(built.result, "results", ())}
        assert {"model", "seed", "test"} <= kinds
        assert "unit_test" not in kinds  # ours are our own business
        tables = {row["tableName"] for row in rows(f"show tables in {outbox_schema}")}
        assert {"outbox_events", "outbox_state", "dead_letters", "delivery_policies"} <= tables
        ours = {row["tableName"] for row in rows("show tables in shop") if not row["isTemporary"]}
        views = {"instances_of_order_compensation", "instances_of_order_creation"}
        workflows = {*COLUMNS, "railway_in_force", *views}
        assert {"raw_orders", "orders", "unannounced_orders", *workflows} == ours
        kept = rows(
            "select get_json_object(plan, '$.rows.railway_workflows[*].workflow') as names "
            f"from {outbox_schema}.outbox_progress where writer = 'workflows'"
        )
        assert [{"names": '["order_compensation","order_creation"]'}] == kept
        assert [] == rows("select make_order, state from shop.instances_of_order_creation")
        manifest = json.loads((project / "target" / "manifest.json").read_text("utf-8"))
        exposed = {
            one["name"]: one["depends_on"]["nodes"]
            for one in manifest["exposures"].values()
            if one["package_name"] == "shop"
        }
        in_force = ["model.shop.railway_in_force"]
        assert (
            dict.fromkeys(("workflow_order_compensation", "workflow_order_creation"), in_force)
            == exposed
        )
        with (tmp_path / "examples/consumer/seeds/raw_orders.csv").open("a") as orders:
            orders.write(f"{PURGED}\n")
        spark.sql(
            f"insert into {outbox_schema}.outbox_purged (number, event_id, arrival, destination, "
            "event_type, created_at, state, ended_at, events_version) select 1, "
            "'order-placed-1004', 0, 'default', 'order.placed', timestamp '2026-01-31 18:05:00', "
            "'PUBLISHED', now(), 0"
        )
        check_result(consumer("build"))
        assert 4 == len(rows("select * from shop.orders"))
        # Seen by the refresh of the second build, which announced nothing again.
        announced = rows(
            "select event_id, event_type, ordering_key, cast(payload as string) as payload "
            f"from {outbox_schema}.outbox_events order by event_id"
        )
        assert ["order-placed-1001", "order-placed-1002", "order-placed-1003"] == [
            row["event_id"] for row in announced
        ]
        assert {
            "event_id": "order-placed-1002",
            "event_type": "order.placed",
            "ordering_key": "customer-8",
            "payload": '{"order_id":1002,"customer_id":8,"amount":110.50}',
        } == announced[1]
        assert 3 == len(rows(f"select * from {outbox_schema}.eligible_events"))
        assert [] == rows("select * from shop.unannounced_orders")
    finally:
        spark.sql("drop schema if exists shop cascade")


def test_what_is_not_public_is_refused(consumer: RunDbt, tmp_path: Path) -> None:
    """Another project cannot build on what may change, and dbt says so."""
    model = tmp_path / "examples/consumer/models/nosy.sql"
    model.write_text("select * from {{ ref('delta_outbox', 'policy_rows') }}\n")
    result = consumer("parse")
    assert not result.success
    assert "policy_rows" in str(result.exception)


def test_a_project_that_forgets_dispatch_is_told(consumer: RunDbt, tmp_path: Path) -> None:
    """Without `dispatch` views would land beside the logs: the build stops and says what to add."""
    project = tmp_path / "examples/consumer/dbt_project.yml"
    text = project.read_text()
    begin, end = text.index("dispatch:"), text.index("vars:")
    project.write_text(text[:begin] + text[end:])
    result = consumer("build")
    assert not result.success
    messages = " ".join(str(one.message) for one in getattr(result.result, "results", ()))
    told = f"{result.exception} {messages}"
    assert "dispatch: [{macro_namespace: dbt, search_order: [shop, delta_outbox, dbt]}]" in told

"""One Spark session for a whole pytest process, on a home of its own.

The fixtures do not say which kind of session it is, and a process holds one kind only. A folder
below runs some of the same tests through Spark Connect by overriding `remote_url`; with
OUTBOX_TESTS_THROUGH=connect all go through it, but for those that are `local`.
"""

from __future__ import annotations

import gc
import itertools
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scripts import environment
from tests.integration.outboxes import Store, open_store
from tests.integration.serving import served

from delta_outbox.api import Outbox
from delta_outbox.runtime.dbt import check_result, run_dbt
from delta_outbox.runtime.home import Home, find_home
from delta_outbox.runtime.session import local_session, remote_session, stop_session

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).resolve().parents[2]

SHARED_SCHEMA = "t_shared"

THROUGH_CONNECT = os.environ.get("OUTBOX_TESTS_THROUGH") == "connect"

_numbers = itertools.count(1)


# What pyspark and dbt leave to the garbage collector; it is not ours to close.
LEFT_OPEN = (
    "unclosed <socket",
    "unclosed running multiprocessing pool",
    r"unclosed file .*dbt\.log",
)


def pytest_configure(config: pytest.Config) -> None:
    """Allow what is in `LEFT_OPEN` during a test."""
    for message in LEFT_OPEN:
        config.addinivalue_line("filterwarnings", f"ignore:{message}:ResourceWarning")
    config.addinivalue_line("markers", "local: needs the home, or a JVM, for itself")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a server cannot do, also where the folder `connect` takes tests of others."""
    local = [
        item
        for item in items
        if item.get_closest_marker("local")
        and (THROUGH_CONNECT or item.path.parent.name == "connect")
    ]
    config.hook.pytest_deselected(items=local)
    items[:] = [item for item in items if item not in local]


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """Allow it at the end of the run, where pytest no longer asks the filters of a folder."""
    with warnings.catch_warnings():
        for message in LEFT_OPEN:
            warnings.filterwarnings("ignore", message, ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a new home that the whole run shares."""
    root = tmp_path_factory.mktemp("outbox") / "home"
    return find_home(environ={"OUTBOX_HOME": str(root)}, create=True)


@pytest.fixture(scope="session")
def remote_url(home: Home, plain_environment: Mapping[str, str]) -> Iterator[str | None]:
    """Return the address of the Spark Connect server that the tests go through, if any."""
    if not THROUGH_CONNECT:
        yield None
        return
    with served(home, plain_environment) as url:
        yield url


@pytest.fixture(scope="session")
def spark(home: Home, remote_url: str | None) -> Iterator[SparkSession]:
    """Return the session of this process: UTC, Delta, and nothing else in its catalog."""
    if remote_url is not None:
        session = remote_session(remote_url)
        yield session
        session.stop()
        return
    # Not as a short-lived one: it lives long enough for the optimising compiler to pay off.
    session = local_session(home, app_name="tests")
    yield session
    stop_session()
    home.lock.release()


@pytest.fixture(scope="session")
def shared_store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox for all files whose tests leave nothing open and its lanes as they are; each
    has ids of its own.
    """
    with open_store(spark, home, SHARED_SCHEMA) as store:
        yield store
        changed = store.rows(f"select plan from {store.tables.progress} where writer = 'lanes'")
        assert not changed, "a test has changed the lanes of an outbox that others share"


@pytest.fixture
def outbox_schema(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Return the name of a schema that no other test uses; it is dropped afterwards."""
    words = re.sub(r"\W+", "_", request.node.name).strip("_").lower()
    name = f"t{next(_numbers)}_{words}"[:60]
    yield name
    spark.sql(f"drop schema if exists {name} cascade")


@pytest.fixture
def dbt(spark: SparkSession, home: Home, outbox_schema: str) -> Callable[..., dbtRunnerResult]:
    """Return a function that runs a dbt command on the test's schema and demands success.

    `dbt("build", "--select", "outbox_state", variables={...}, check=False)`
    """

    def run(
        *args: str, check: bool = True, variables: Mapping[str, object] | None = None
    ) -> dbtRunnerResult:
        result = run_dbt(args, home=home, schema=outbox_schema, variables=variables)
        if check:
            check_result(result)
        return result

    return run


@pytest.fixture
def read_views(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows with each read view that is made: of the workers that made them."""
    made: list[str] = []
    open_deliveries = Outbox.open_deliveries

    def noted(self: Outbox, latest: object = None) -> object:
        made.append(self.worker_id)
        return open_deliveries(self, latest)  # type: ignore[arg-type]

    monkeypatch.setattr(Outbox, "open_deliveries", noted)
    return made


@pytest.fixture(scope="session")
def plain_environment() -> dict[str, str]:
    """Return the environment for another process."""
    return environment.plain()

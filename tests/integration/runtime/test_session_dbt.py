"""dbt in our own process: runs, results, compiled SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from delta_outbox.core.errors import DbtFailed
from delta_outbox.runtime.dbt import compile_sql, project_dir
from delta_outbox.runtime.home import Home

pytestmark = pytest.mark.rest


def test_dbt_runs_on_the_session_of_the_process(
    dbt: Callable[..., Any],
    spark: SparkSession,
    home: Home,
    outbox_schema: str,
    capfd: pytest.CaptureFixture[str],
):
    """A dbt command works on the session that is there and on the schema that is asked for, leaves
    standard output to the command that it is part of, and writes into the home alone.
    """
    before = _places_of_dbts_own()
    dbt("run-operation", "create_logs")
    assert ("", "") == tuple(capfd.readouterr())
    assert (home.dbt_target / outbox_schema / "manifest.json").is_file()
    assert (home.logs / "dbt.log").is_file()
    assert before == _places_of_dbts_own()
    tables = {row.tableName for row in spark.sql(f"show tables in {outbox_schema}").collect()}
    assert "outbox_events" in tables


def _places_of_dbts_own() -> dict[str, int]:
    """Return when the folders that dbt uses by default were changed, if they exist."""
    folders = [project_dir() / name for name in ("target", "logs")]
    return {folder.name: folder.stat().st_mtime_ns for folder in folders if folder.exists()}


def test_failed_run_is_an_error_in_dbts_words(dbt: Callable[..., Any]):
    """What went wrong in dbt is the message of our error."""
    with pytest.raises(DbtFailed, match="no_such_macro"):
        dbt("run-operation", "no_such_macro")
    assert not dbt("run-operation", "no_such_macro", check=False).success


def test_failed_operation_says_why(dbt: Callable[..., Any], outbox_schema: str):
    """An operation whose SQL fails ends with the reason that Spark gave."""
    with pytest.raises(DbtFailed, match="no_such_schema_anywhere"):
        dbt("run-operation", "latest_version", "--args", "{log: no_such_schema_anywhere.t}")


def test_compiled_sql_is_kept(home: Home):
    """Compiling the same text again reads a file; schema and variables are part of the key."""
    text = "select '{{ var('outbox_schema') }}' as schema_, '{{ var('as_of') }}' as as_of"
    before = set(home.compiled.iterdir())

    def compiled() -> str:
        return compile_sql(text, home=home, schema="one", variables={"as_of": "2026-01-31"})

    assert "select 'one' as schema_, '2026-01-31' as as_of" == compiled()
    [kept] = set(home.compiled.iterdir()) - before
    kept.write_text("select 'kept'")
    assert "select 'kept'" == compiled()
    kept.unlink()
    assert "select 'two' as schema_, '2026-01-31' as as_of" == compile_sql(
        text, home=home, schema="two", variables={"as_of": "2026-01-31"}
    )


def test_text_that_does_not_compile_is_an_error(home: Home):
    """A snippet or name that dbt does not know is an error in its words, and is not kept."""
    kept = list(home.compiled.iterdir())
    with pytest.raises(DbtFailed, match="no_such_macro"):
        compile_sql("select {{ no_such_macro() }}", home=home)
    with pytest.raises(DbtFailed, match="no_such_model"):
        compile_sql("no_such_model", home=home)
    assert kept == list(home.compiled.iterdir())

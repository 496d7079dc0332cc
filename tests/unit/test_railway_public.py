"""What authors of workflows import."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PUBLIC = ("delta_outbox.railway", "delta_outbox.testing.workflows")
HEAVY = ("pyspark", "py4j", "dbt", "pyarrow", "numpy", "pandas", "confluent_kafka", "pytest")


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name: str) -> None:
    """Each name that a package lists can be imported, and is listed once."""
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, one) for one in module.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_workflows_import_nothing_heavy(name: str) -> None:
    """Whoever declares or tests a workflow waits for neither Spark nor dbt."""
    code = f"import sys, {name}; print([one for one in {HEAVY!r} if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == done.stdout.strip()

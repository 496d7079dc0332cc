"""Settings of the unit tests."""

from __future__ import annotations

import importlib.abc
import os
import sys

import pyarrow as pa
import pytest
from hypothesis import settings

# A busy machine is no fault: no example has a time to keep. `make test-unit` tries fewer examples
# of each property than `make test`.
EXAMPLES = int(os.environ.get("OUTBOX_TESTS_EXAMPLES", "100"))
# One failure of several, the smallest: a mutant is noticed by an assertion, not by a group of them.
settings.register_profile(
    "unhurried", deadline=None, max_examples=EXAMPLES, report_multiple_bugs=False
)
settings.load_profile("unhurried")


class WithoutPandas(importlib.abc.MetaPathFinder):
    """Let pandas look as if it were not installed."""

    def find_spec(self, fullname, path, target=None):
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def pytest_configure(config: pytest.Config) -> None:
    """Spare pyarrow the import of pandas, which takes as long as hundreds of tests.

    It looks for pandas once, at its first array. Nothing here has anything of pandas; Spark needs
    it, so where tests of other folders run beside these all stays as it is.
    """
    if all("tests/unit" in argument for argument in config.args):
        sys.meta_path.insert(0, without := WithoutPandas())
        pa.array([])
        sys.meta_path.remove(without)

"""Put the dbt project into the wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# What an installed project needs to build, test and replay; our own tests stay at home.
REQUIRED = (
    *("dbt_project.yml", "selectors.yml"),
    *("macros", "models", "profiles", "seeds", "tests/dbt/generic"),
)


class DbtProjectHook(BuildHookInterface[Any]):
    """Include the dbt project of the repository as `delta_outbox/dbt_project`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files to include.

        Args:
            version: "standard" for a wheel; "editable" needs nothing, because an editable
                install reads the repository itself and a copy would only grow stale.
            build_data: Hatchling's description of the build.

        Raises:
            FileNotFoundError: a part of the dbt project is missing.
        """
        if version == "editable":
            return
        root = Path(self.root)
        for name in REQUIRED:
            source = root / name
            if not source.exists():
                message = f"the dbt project has no {name} at {root}"
                raise FileNotFoundError(message)
            build_data["force_include"][str(source)] = f"delta_outbox/dbt_project/{name}"

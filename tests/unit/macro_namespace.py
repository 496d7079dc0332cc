"""The project's macros without dbt: for those that use nothing of dbt's but its modules."""

from __future__ import annotations

import datetime as datetime_module
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jinja2.sandbox import SandboxedEnvironment

MACROS = Path(__file__).resolve().parents[2] / "macros"


class Macros:
    """What `delta_outbox.` means in the macros of some folders.

    Args:
        folders: below macros/.
    """

    def __init__(self, *folders: str) -> None:
        environment = SandboxedEnvironment(extensions=["jinja2.ext.do"])
        environment.globals["delta_outbox"] = self
        environment.globals["modules"] = SimpleNamespace(re=re, datetime=datetime_module)
        self._found: dict[str, Callable[..., Any]] = {}
        for folder in folders:
            for file in sorted((MACROS / folder).glob("*.sql")):
                template = environment.from_string(file.read_text(encoding="utf-8"))
                module = template.make_module()
                self._found |= {
                    name: value for name, value in vars(module).items() if name == file.stem
                }

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self._found:
            raise AttributeError(name)
        return self._found[name]

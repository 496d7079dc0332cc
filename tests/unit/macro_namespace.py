"""The project's macros without dbt: for those that use little of dbt's own."""

from __future__ import annotations

import datetime as datetime_module
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from jinja2.sandbox import SandboxedEnvironment

MACROS = Path(__file__).resolve().parents[2] / "macros"


class Refused(Exception):
    """A macro has ended the run."""


class _Returned(Exception):
    """A macro returns an object, and not its text."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _return(value: Any) -> NoReturn:
    raise _Returned(value)


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _refuse(message: str) -> NoReturn:
    raise Refused(message)


class Macros:
    """What `delta_outbox.` means in the macros of some folders.

    Args:
        folders: below macros/.
        variables: of dbt; looked at when a macro asks.
    """

    def __init__(self, *folders: str, variables: Mapping[str, object] | None = None) -> None:
        given = {} if variables is None else variables
        environment = SandboxedEnvironment(extensions=["jinja2.ext.do"])
        environment.globals["delta_outbox"] = self
        environment.globals["modules"] = SimpleNamespace(re=re, datetime=datetime_module)
        environment.globals["exceptions"] = SimpleNamespace(raise_compiler_error=_refuse)
        environment.globals["return"] = _return
        environment.globals["fromjson"] = _from_json
        environment.globals["local_md5"] = _md5
        environment.globals["var"] = given.get
        environment.globals["env_var"] = lambda _name, default: default
        self._found: dict[str, Callable[..., Any]] = {}
        for folder in folders:
            for file in sorted((MACROS / folder).glob("*.sql")):
                if file.stem.startswith("materialization_"):
                    continue  # dbt's own grammar
                template = environment.from_string(file.read_text(encoding="utf-8"))
                module = template.make_module()
                self._found |= {
                    name: value for name, value in vars(module).items() if name == file.stem
                }

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self._found:
            raise AttributeError(name)
        macro = self._found[name]

        def call(*args: Any, **given: Any) -> Any:
            try:
                return macro(*args, **given)
            except _Returned as returned:
                return returned.value

        return call

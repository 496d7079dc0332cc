"""Reads a payload by the JSON Schema of its workflow."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from pydantic_core import from_json
from referencing import Registry


class DoesNotFit(Exception):
    """A payload is not what its contract asks for. The message names nothing of the payload."""


class Contract:
    """What a payload must look like. Nothing is fetched to find out.

    Args:
        schema: a JSON Schema, an object; empty if every object will do.
    """

    def __init__(self, schema: str) -> None:
        self._schema: dict[str, Any] = {}
        self._validator: Validator | None = None
        try:
            read = json.loads(schema or "{}")
            Draft202012Validator.check_schema(read)
            validator = Draft202012Validator(read, registry=Registry())
        except Exception:  # noqa: BLE001 - whatever it is, nobody can read by it
            return
        if isinstance(read, dict):
            self._schema, self._validator = read, validator

    @property
    def is_readable(self) -> bool:
        """Return whether payloads can be read by it; by another one none is."""
        return self._validator is not None

    def read(self, payload: bytes) -> dict[str, Any]:
        """Return the object of a payload.

        Args:
            payload: JSON.

        Raises:
            DoesNotFit: it is no JSON object, or another one than the contract asks for.
        """
        try:
            value = from_json(payload, allow_inf_nan=False)
        except ValueError as error:
            raise DoesNotFit("it is no JSON") from error
        if not isinstance(value, dict):
            raise DoesNotFit("it is no JSON object")
        if self._validator is None:
            raise DoesNotFit("its contract is no JSON Schema")
        try:
            broken = next(iter(self._validator.iter_errors(value)), None)
        except Exception as error:
            # A reference to nowhere or to itself, a number or a nesting beyond what can be judged.
            raise DoesNotFit("its contract cannot be applied") from error
        if broken is None:
            return value
        rule = "/".join(map(str, broken.absolute_schema_path))
        missing = [
            name
            for name in (broken.validator_value if broken.validator == "required" else ())
            if name not in broken.instance
        ]
        raise DoesNotFit(f"it breaks {rule}" + (f": {', '.join(missing)}" if missing else ""))

    def default(self, key: str) -> Any:
        """Return what counts where an object leaves a key out, None if nothing does.

        Args:
            key: of the object.
        """
        try:
            return self._schema["properties"][key]["default"]
        except (KeyError, TypeError):
            return None

"""Reads a payload by the JSON Schema of its workflow."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic_core import from_json
from referencing import Registry
from referencing.exceptions import Unresolvable


class DoesNotFit(Exception):
    """A payload is not what its contract asks for. The message names nothing of the payload."""


class Contract:
    """What a payload must look like. Nothing is fetched to find out.

    Args:
        schema: a JSON Schema; empty if every object will do.
    """

    def __init__(self, schema: str) -> None:
        self._schema: dict[str, Any] = json.loads(schema or "{}")
        self._validator = Draft202012Validator(self._schema, registry=Registry())
        try:
            self._validator.check_schema(self._schema)
            self._readable = True
        except SchemaError:
            self._readable = False

    def read(self, payload: bytes) -> dict[str, Any]:
        """Return the object of a payload.

        Args:
            payload: JSON.

        Raises:
            DoesNotFit: it is no JSON object, or another one than the contract asks for.
        """
        try:
            value = from_json(payload)
        except ValueError as error:
            raise DoesNotFit("it is no JSON") from error
        if not isinstance(value, dict):
            raise DoesNotFit("it is no JSON object")
        if not self._readable:
            raise DoesNotFit("its contract is no JSON Schema")
        try:
            broken = next(iter(self._validator.iter_errors(value)), None)
        except Unresolvable as error:
            raise DoesNotFit("its contract refers to what it does not hold") from error
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
        return self._schema.get("properties", {}).get(key, {}).get("default")

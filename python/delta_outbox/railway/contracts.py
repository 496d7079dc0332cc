"""Reads a payload by the JSON Schema of its workflow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from pydantic_core import SchemaValidator, core_schema, from_json
from pydantic_core import ValidationError as DoesNotMatch
from referencing import Registry


class DoesNotFit(Exception):
    """A payload is not what its contract asks for. The message names nothing of the payload."""


@lru_cache(maxsize=256)
def _pattern(text: str) -> SchemaValidator:
    """Return what matches a pattern as pydantic does: in linear time, where Python's `re` may take
    for ever over some dozen letters, and lets nothing else run meanwhile.
    """
    return SchemaValidator(core_schema.str_schema(pattern=text))


def _matches(_: Validator, text: str, value: object, __: object) -> Iterator[ValidationError]:
    if isinstance(value, str):
        try:
            _pattern(text).validate_python(value)
        except DoesNotMatch:
            yield ValidationError("it does not match")


_Judge: Any = extend(Draft202012Validator, {"pattern": _matches})  # type: ignore[no-untyped-call]


def _demand_linear(schema: object) -> None:
    """Compile the patterns of a schema.

    Raises:
        Exception: one cannot be matched in linear time, or is about names of fields.
    """
    if isinstance(schema, list):
        for one in schema:
            _demand_linear(one)
    elif isinstance(schema, dict):
        if "patternProperties" in schema:
            raise ValueError(schema)
        if isinstance(schema.get("pattern"), str):
            _pattern(schema["pattern"])
        for name, value in schema.items():
            is_named = name in ("properties", "$defs") and isinstance(value, dict)
            _demand_linear([*value.values()] if is_named else value)


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
            _demand_linear(read)
            validator = _Judge(read, registry=Registry())
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

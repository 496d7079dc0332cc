"""Reads a payload by the JSON Schema of its workflow, in time that grows as the payload does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextvars import ContextVar, copy_context
from functools import lru_cache
from itertools import islice
from typing import Any, Final

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


# Which values fit what is referred to: by the schema that refers, and the value.
_judged: ContextVar[dict[tuple[int, int], bool]] = ContextVar("judged")
_REFERRED: Final = Draft202012Validator.VALIDATORS["$ref"]


def _refers(
    validator: Validator, to: str, value: object, schema: object
) -> Iterator[ValidationError]:
    """Judge a value once by what is referred to. Two alternatives of a union that refer to the same
    rules judge what is nested in a value twice as often with each level.
    """
    judged, place = _judged.get(), (id(schema), id(value))
    if place not in judged:
        error = next(iter(_REFERRED(validator, to, value, schema)), None)
        judged[place] = error is None
        if error is not None:
            yield error
    elif not judged[place]:
        yield ValidationError("it does not fit")


def _fits(validator: Any, value: object, schemas: Sequence[object]) -> Iterator[object]:
    """Yield the schemas that a value fits. Each is left at the first error: a list of a million
    values may have as many.
    """
    return (one for one in schemas if next(iter(validator.descend(value, one)), None) is None)


def _fits_any(
    validator: Validator, schemas: Sequence[object], value: object, _: object
) -> Iterator[ValidationError]:
    if next(_fits(validator, value, schemas), None) is None:
        yield ValidationError("it fits none")


def _fits_one(
    validator: Validator, schemas: Sequence[object], value: object, _: object
) -> Iterator[ValidationError]:
    if len([*islice(_fits(validator, value, schemas), 2)]) != 1:
        yield ValidationError("it fits none, or several")


def _is_unique(
    _: Validator, is_asked: bool, value: object, __: object
) -> Iterator[ValidationError]:
    if is_asked and isinstance(value, list):
        texts = {json.dumps(_plain(one), sort_keys=True) for one in value}
        if len(texts) < len(value):
            yield ValidationError("it repeats")


def _plain(value: Any) -> Any:
    """Return a value, so that equal numbers have one text: 1.0 is 1."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


_Judge: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        "pattern": _matches,
        "$ref": _refers,
        "anyOf": _fits_any,
        "oneOf": _fits_one,
        "uniqueItems": _is_unique,
    },
)
_NOT_LINEAR: Final = {
    *("$schema", "patternProperties", "$dynamicRef", "unevaluatedItems", "unevaluatedProperties")
}


def _first_error(validator: Validator, value: object) -> ValidationError | None:
    _judged.set({})
    return next(iter(validator.iter_errors(value)), None)


def _demand_linear(schema: object) -> None:
    """Compile the patterns of a schema.

    Raises:
        Exception: one cannot be matched in linear time, or the schema has a rule that cannot be
            judged so.
    """
    if isinstance(schema, list):
        for one in schema:
            _demand_linear(one)
    elif isinstance(schema, dict):
        if not _NOT_LINEAR.isdisjoint(schema):
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
            if isinstance(read, dict):
                read.pop("$schema", None)  # where there is one, jsonschema takes rules of its own
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
            broken = copy_context().run(_first_error, self._validator, value)
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

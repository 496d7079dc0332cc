"""Reads a contract, a JSON Schema, as the fields of a form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from delta_outbox.core.json_pointers import key_of, step
from delta_outbox.todo.pages.fields import (
    INPUTS,
    MISSING,
    Choice,
    Field,
    Kind,
    human,
    json_text,
)

MOST_LEVELS: Final = 6  # of objects in objects; what is deeper is written as JSON
MOST_FIELDS: Final = 200  # of a form; a larger one is written as JSON


def fields_of_schema(schema: Mapping[str, Any]) -> Sequence[Field]:
    """Return the fields of a contract: those of its object, or one for the whole answer as JSON.

    Args:
        schema: a JSON Schema (draft 2020-12) without remote references, as pydantic writes it.
    """
    whole = Field(pointer="", key="", title="Answer", kind=Kind.JSON)
    reader = _Reader(schema)
    try:
        Draft202012Validator.check_schema(schema)
        root = reader.field(schema, pointer="", key="", required=True, above=())
    except (SchemaError, RecursionError, TypeError, ValueError, AttributeError):
        return (whole,)  # no schema, too large a one, or one of a form that no field has
    return root.fields if root.kind is Kind.GROUP and not root.nullable else (whole,)


class _Reader:
    """Reads one schema.

    Args:
        schema: that references are found in.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._count = 0

    def field(
        self,
        schema: Any,
        *,
        pointer: str,
        key: str,
        required: bool,
        above: tuple[str, ...],
    ) -> Field:
        """Return the field of a place.

        Args:
            schema: of the place.
            pointer: to the place.
            key: of its object.
            required: the object must have it.
            above: the references that lead here, of which none may come again.
        """
        self._count += 1
        if self._count > MOST_FIELDS:
            raise ValueError("too many fields")
        blank = Field(pointer=pointer, key=key, title=human(key), kind=Kind.JSON, required=required)
        if not isinstance(schema, Mapping):
            return blank
        own = replace(
            blank,
            title=_title(schema, key),
            description=str(schema.get("description", "")),
            default=schema.get("default", MISSING),
        )
        resolved, nullable, above = self._resolved(schema, above)
        own = replace(own, nullable=nullable)
        if resolved is None or len(above) > MOST_LEVELS:
            return own
        if not own.description and len(above):
            own = replace(own, description=str(resolved.get("description", "")))
        return self._typed(own, resolved, above)

    def _resolved(
        self, schema: Mapping[str, Any], above: tuple[str, ...]
    ) -> tuple[Mapping[str, Any] | None, bool, tuple[str, ...]]:
        """Return the one schema that a place comes to, None if it is not one; whether null is a
        value too; and the references that lead there.
        """
        nullable = False
        found: Mapping[str, Any] = schema
        while True:
            if "$ref" in found:
                name = found["$ref"]
                target = self._target(name)
                if target is None or name in above:
                    return None, nullable, above
                above = (*above, name)
                found = target
            elif "allOf" in found and len(found["allOf"]) == 1:
                found = {**found, **found["allOf"][0]}
                del found["allOf"]
            elif (options := found.get("anyOf", found.get("oneOf"))) is not None:
                others = [one for one in options if one.get("type") != "null"]
                nullable = nullable or len(others) < len(options)
                if len(others) != 1:
                    return _decimal(others), nullable, above
                around = {key: one for key, one in found.items() if key not in ("anyOf", "oneOf")}
                found = {**around, **others[0]}
            else:
                break
        if isinstance(found.get("type"), list):
            types = [one for one in found["type"] if one != "null"]
            nullable = nullable or len(types) < len(found["type"])
            found = {**found, "type": types[0] if len(types) == 1 else None}
        if isinstance(found.get("enum"), list) and None in found["enum"]:
            nullable = True
            found = {**found, "enum": [one for one in found["enum"] if one is not None]}
        return found, nullable, above

    def _target(self, reference: object) -> Mapping[str, Any] | None:
        """Return what a reference within the schema names."""
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        found: Any = self._root
        for part in reference[2:].split("/"):
            found = found.get(key_of(part)) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping) else None

    def _typed(self, own: Field, schema: Mapping[str, Any], above: tuple[str, ...]) -> Field:
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(values, list) and values:
            choices = tuple(Choice(value=one, label=_label(one)) for one in values)
            is_fixed = "const" in schema and own.required and not own.nullable
            return replace(own, kind=Kind.FIXED if is_fixed else Kind.CHOICE, choices=choices)
        match schema.get("type"):
            case "boolean":
                return replace(
                    own,
                    kind=Kind.CHOICE,
                    choices=(Choice(value=True, label="Yes"), Choice(value=False, label="No")),
                )
            case "integer":
                return replace(_bounded(own, schema), kind=Kind.INTEGER)
            case "number":
                return replace(_bounded(own, schema), kind=Kind.NUMBER)
            case "string":
                return _text(own, schema)
            case "array":
                return self._array(own, schema, above)
            case "object":
                return self._group(own, schema, above)
        return own

    def _array(self, own: Field, schema: Mapping[str, Any], above: tuple[str, ...]) -> Field:
        if "prefixItems" in schema or not isinstance(schema.get("items"), Mapping):
            return own
        item = self.field(
            schema["items"], pointer=own.pointer, key=own.key, required=True, above=above
        )
        if item.nullable:
            return own
        own = replace(own, lowest=schema.get("minItems"), highest=schema.get("maxItems"))
        if item.kind is Kind.CHOICE and schema.get("uniqueItems"):
            return replace(own, kind=Kind.CHOICES, choices=item.choices)
        if item.kind in (Kind.TEXT, Kind.INTEGER, Kind.NUMBER):
            return replace(own, kind=Kind.LINES, item=item)
        return own

    def _group(self, own: Field, schema: Mapping[str, Any], above: tuple[str, ...]) -> Field:
        properties = schema.get("properties")
        # Any reader of a person's answer would miss what only JSON can say.
        if not isinstance(properties, Mapping) or not properties:
            return own
        if isinstance(schema.get("additionalProperties"), Mapping) or "patternProperties" in schema:
            return own
        if own.pointer.count("/") >= MOST_LEVELS:
            return own
        required = schema.get("required", ())
        fields = tuple(
            self.field(
                one,
                pointer=own.pointer + step(key),
                key=key,
                required=key in required,
                above=above,
            )
            for key, one in properties.items()
        )
        return replace(own, kind=Kind.GROUP, fields=fields)


def _title(schema: Mapping[str, Any], key: str) -> str:
    """Return the label of a place. What pydantic makes of a name itself, `Invoice Number`, is
    no title that somebody has written.
    """
    title = schema.get("title")
    if not isinstance(title, str) or not title or title == key.replace("_", " ").title():
        return human(key)
    return title


def _label(value: Any) -> str:
    if isinstance(value, bool):
        return "Yes" if value else "No"
    return human(value) if isinstance(value, str) and value else json_text(value)


def _decimal(options: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return a text for what is a number or a text, as pydantic declares a Decimal: a text keeps
    every digit. None for any other choice of types.
    """
    by_type = {one.get("type"): one for one in options}
    if len(options) == 2 and by_type.keys() in ({"number", "string"}, {"integer", "string"}):
        return {**by_type["string"], "minLength": 1, "maxLength": 60}
    return None


def _text(own: Field, schema: Mapping[str, Any]) -> Field:
    form = str(schema.get("format", ""))
    return replace(
        own,
        kind=Kind.DATE_TIME if form == "date-time" else Kind.TEXT,
        input=INPUTS.get(form, "text"),
        lowest=schema.get("minLength"),
        highest=schema.get("maxLength"),
    )


def _bounded(own: Field, schema: Mapping[str, Any]) -> Field:
    low, high = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    return replace(
        own,
        lowest=schema.get("minimum") if low is None else low,
        highest=schema.get("maximum") if high is None else high,
        is_open_below=low is not None,
        is_open_above=high is not None,
    )

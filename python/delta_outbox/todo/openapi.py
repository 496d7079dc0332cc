"""The parts of the OpenAPI document that follow from contracts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from delta_outbox.workflow_engine.items import ItemType

_LOCAL: Final = "#/$defs/"
_ODD: Final = re.compile(r"[^A-Za-z0-9._-]")


def contract_name(type_: ItemType) -> str:
    """Return the name of a contract among the components of the document.

    Args:
        type_: of items.
    """
    return f"{type_.workflow}.{type_.task}"


def contract_reference(type_: ItemType) -> dict[str, Any]:
    """Return what stands for a contract in the document.

    Args:
        type_: of items.
    """
    return {"$ref": f"#/components/schemas/{contract_name(type_)}"}


def without_types(document: Mapping[str, Any], hidden: Iterable[ItemType]) -> dict[str, Any]:
    """Return an OpenAPI document without what it says of some types of items.

    Args:
        document: of all.
        hidden: the types.
    """
    paths, schemas = dict(document["paths"]), dict(document["components"]["schemas"])
    for type_ in hidden:
        name, place = contract_name(type_), f"{type_.workflow}/{type_.task}"
        its_paths = (f"/items/{place}", f"/answers/{place}")
        for found, ends, its in ((paths, "/", its_paths), (schemas, ".", (name,))):
            for one in [*found]:
                if one in its or one.startswith(tuple(f"{start}{ends}" for start in its)):
                    del found[one]
    components = {**document["components"], "schemas": schemas}
    return {**document, "paths": paths, "components": components}


def contract_schemas(type_: ItemType) -> dict[str, Any]:
    """Return the JSON Schemas of a contract, as components of an OpenAPI document: the definitions
    in it are components of their own, and what refers to them refers to those.

    Args:
        type_: of items.
    """
    name = contract_name(type_)
    schema = dict(type_.contract)
    definitions = schema.pop("$defs", {})
    return {
        name: _referring(schema, name),
        **{_inner(name, one): _referring(its, name) for one, its in definitions.items()},
    }


def _inner(name: str, definition: str) -> str:
    return f"{name}.{_ODD.sub('_', definition)}"


def _referring(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_referring(one, name) for one in value]
    if not isinstance(value, Mapping):
        return value
    found = {key: _referring(one, name) for key, one in value.items()}
    reference = value.get("$ref")
    if isinstance(reference, str) and reference.startswith(_LOCAL):
        found["$ref"] = f"#/components/schemas/{_inner(name, reference.removeprefix(_LOCAL))}"
    return found

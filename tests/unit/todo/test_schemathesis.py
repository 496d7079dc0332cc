"""Requests made from the OpenAPI document, good and bad: each is answered as the document says."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.generation.modes import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection
from tests.unit.todo.memory_items import item, office

pytestmark = pytest.mark.rest

EXAMPLES = 20  # requests of each kind to each operation


def test_the_document_is_true() -> None:
    """Whatever is sent that the document describes, or nearly describes, has an answer that it
    describes, and none of them is a failure of the server.
    """
    tried = []
    with office() as desk:
        desk.items.add(*(item(f"review-o{number}") for number in range(3)))
        desk.items.add(item("payment-o1", task="payment"))
        who = desk.key("ann", "support", "provider")
        document = desk.client.get("/openapi.json", headers=who).json()
        # It takes Python's engine for ever, on the side of whoever makes requests of it.
        order = document["components"]["schemas"]["orders.review"]["properties"]["order"]
        order["pattern"] = "^(a+|o[0-9]{1,6})$"
        schema = schemathesis.openapi.from_dict(document)
        schema.config.update(base_url=str(desk.client.base_url))
        operations: list[Any] = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
        for operation in operations:
            tried.append(f"{operation.method.upper()} {operation.path}")
            for mode in GenerationMode:

                @settings(
                    max_examples=EXAMPLES,
                    deadline=None,
                    database=None,
                    phases=[Phase.explicit, Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )
                @given(operation.as_strategy(generation_mode=mode))
                def asked(case: Any) -> None:
                    # Parameters that nobody knows are ignored, as everywhere in HTTP.
                    case.call_and_validate(headers=who, excluded_checks=[negative_data_rejection])

                asked()
    assert 13 == len(tried)

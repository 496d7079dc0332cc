"""A transactional outbox for the lakehouse: Delta logs, dbt projection, Spark relay.

Public are these names, and those of `delta_outbox.publishers`, `.consumer`, `.railway` and
`.testing` (docs/api.md). Each is imported when it is first asked for: a worker, a publisher or a
workflow does not import the product.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from delta_outbox.core.version import __version__

if TYPE_CHECKING:
    from delta_outbox.api import open_outbox
    from delta_outbox.core import errors
    from delta_outbox.core.errors import OutboxError
    from delta_outbox.operations.outbox import Outbox
    from delta_outbox.producer.append import AppendReport
    from delta_outbox.publishers.protocol import Event
    from delta_outbox.relay.relay import Relay
    from delta_outbox.relay.summary import Mode, Summary
    from delta_outbox.workflow_engine.instances import Instances
    from delta_outbox.workflow_engine.item_answers import Completion, GivenAnswer
    from delta_outbox.workflow_engine.item_deliveries import WaitingItem
    from delta_outbox.workflow_engine.item_holds import HoldRequest
    from delta_outbox.workflow_engine.items import Items
    from delta_outbox.workflow_engine.opening import task_runner

__all__ = [
    "AppendReport",
    "Completion",
    "Event",
    "GivenAnswer",
    "HoldRequest",
    "Instances",
    "Items",
    "Mode",
    "Outbox",
    "OutboxError",
    "Relay",
    "Summary",
    "WaitingItem",
    "__version__",
    "errors",
    "open_outbox",
    "task_runner",
]

_HOMES = {
    "AppendReport": "producer.append",
    "Completion": "workflow_engine.item_answers",
    "Event": "publishers.protocol",
    "GivenAnswer": "workflow_engine.item_answers",
    "HoldRequest": "workflow_engine.item_holds",
    "Instances": "workflow_engine.instances",
    "Items": "workflow_engine.items",
    "Mode": "relay.summary",
    "Outbox": "operations.outbox",
    "OutboxError": "core.errors",
    "Relay": "relay.relay",
    "Summary": "relay.summary",
    "WaitingItem": "workflow_engine.item_deliveries",
    "errors": "core",
    "open_outbox": "api",
    "task_runner": "workflow_engine.opening",
}


def __getattr__(name: str) -> object:
    """Import what is asked for first.

    Args:
        name: of `__all__`.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = f"{__name__}.{_HOMES[name]}"
    if name == "errors":
        return import_module(f"{home}.{name}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__

"""Whether a relay can sign the links that events of items carry."""

from __future__ import annotations

import logging
from typing import Final

from delta_outbox.core.errors import BadSettings
from delta_outbox.workflow_engine.derivation.plans import Plan

logger: Final = logging.getLogger(__name__)


def demand_secret(plan: Plan, secret: str | None) -> None:
    """Demand the secret of links, if items ask for links.

    Args:
        plan: in force.
        secret: of the settings, `[todo] link_secret`.

    Raises:
        BadSettings: they do, and there is none.
    """
    asking = sorted(
        f"{name}.{task}"
        for name, version in plan.versions.items()
        for task, row in version.routing.tasks.items()
        if row.get("sends_link")
    )
    if asking and secret is None:
        raise BadSettings(
            f"Events of {', '.join(asking)} carry links, which `[todo] link_secret` signs, and "
            "there is none.",
            remedy="Give it the same value as the server of items has, by ${ENV}.",
        )


def warn_of_links(plan: Plan, secret: str | None) -> None:
    """Say that links cannot be signed of workflows that came into force while a relay runs: it goes
    on, and what tells of their items carries none.

    Args:
        plan: in force.
        secret: of the settings, `[todo] link_secret`.
    """
    try:
        demand_secret(plan, secret)
    except BadSettings as error:
        logger.warning("links_unsigned", extra={"number": plan.number, "problem": str(error)})

"""`outbox init`, `refresh` and `dbt`: what dbt declares, created and brought up to date."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from delta_outbox.cli.outcome import Invocation, Outcome

if TYPE_CHECKING:
    from rich.console import RenderableType


def init(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Create the outbox, or what is missing of it."""
    del args
    with invocation.create() as outbox:
        home = str(outbox.home.root) if outbox.home else None
        schema = outbox.tables.schema

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import sentence

        yield sentence(f"The outbox is ready: {home or f'schema {schema}'}.")
        yield sentence("Next: `outbox append FILE.jsonl`, then `outbox relay --drain`.")

    return Outcome(document={"home": home, "schema": schema}, text=text)


def refresh(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Bring the projection up to everything that was committed before."""
    from delta_outbox.operations import inspection

    with invocation.open() as outbox:
        outbox.refresh(rebuild=args.rebuild)
        document: dict[str, Any] = {"freshness": inspection.freshness(outbox)}

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import facts

        yield facts((document["freshness"] or {}).items())

    return Outcome(document=document, text=text)


def dbt(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Run dbt unchanged; its exit code is ours."""
    del invocation
    from delta_outbox.cli.dbt_launcher import run_launcher

    exit_code = run_launcher(args.dbt_args)
    return Outcome(document={"dbt": {"exit_code": exit_code}}, exit_code=exit_code)

"""`outbox todo link`: a signed link to one item, for somebody without a key."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from delta_outbox.cli.outcome import Invocation, Outcome
from delta_outbox.core.errors import BadSettings
from delta_outbox.core.instants import iso_text

if TYPE_CHECKING:
    from rich.console import RenderableType


def link(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Make a link. The outbox is not asked: a link to what is no item leads nowhere."""
    from delta_outbox.runtime.home import find_home
    from delta_outbox.runtime.settings_file import load_settings
    from delta_outbox.workflow_engine.item_links import Links

    secret = load_settings(home=find_home().root, path=args.config).todo.link_secret
    if secret is None:
        raise BadSettings(
            "Links are signed by `[todo] link_secret`, and there is none.",
            remedy="Give it at least 32 random characters, by ${ENV}.",
        )
    path = Links(secret).link(args.id, args.until)

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import sentence

        yield sentence(path)

    until = args.until and iso_text(args.until)
    return Outcome(document={"path": path, "until": until}, text=text)

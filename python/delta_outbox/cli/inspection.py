"""`outbox status`, `list` and `show`: what is where, and why."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.cli.outcome import Invocation, Outcome
from delta_outbox.operations.inspection_filter import Filter
from delta_outbox.runtime.served_home import find_served, read_served

if TYPE_CHECKING:
    from rich.console import RenderableType

    from delta_outbox.api import Outbox

QUERIES_AT_ONCE: Final = 3


def status(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Show counts, ages, freshness, and who is at work."""
    del args
    return _outcome(invocation, _status, status_text)


def _outcome(
    invocation: Invocation,
    look: Callable[[Outbox], Mapping[str, Any]],
    text: Callable[[Mapping[str, Any]], Iterable[RenderableType]],
) -> Outcome:
    """Return what the server of the home says, else what a look at the outbox shows."""
    told = invocation.told()
    if told is None:
        with invocation.open() as outbox:
            told = look(outbox)
    document = told
    return Outcome(document=document, text=lambda: text(document))


def _status(outbox: Outbox) -> Mapping[str, Any]:
    from delta_outbox.operations import inspection

    # Beside each other: each is a small query, and Spark plans a query in one thread.
    threads = ThreadPoolExecutor(QUERIES_AT_ONCE)
    try:
        relays = threads.submit(inspection.relays_alive, outbox)
        destinations = threads.submit(inspection.destinations, outbox)
        policy = threads.submit(outbox.policy_status)
        outbox.refresh()
        freshness = threads.submit(inspection.freshness, outbox)
        workflows = threads.submit(_workflows, outbox)
        counts, age = inspection.counts_and_age(outbox)
        return {
            "counts": counts,
            "oldest_pending_seconds": age,
            "freshness": freshness.result(),
            "relays": relays.result(),
            "destinations": destinations.result(),
            "policy": policy.result(),
            **workflows.result(),
            **surroundings(outbox),
        }
    finally:
        # Without a wait: who is interrupted ends the Spark that they ask.
        threads.shutdown(wait=False, cancel_futures=True)


def _workflows(outbox: Outbox) -> Mapping[str, Any]:
    """Return what there is to say of workflows; nothing where none are named."""
    if not outbox.settings.workflows.modules:
        return {}
    from delta_outbox.workflow_engine.workflow_views import workflow_status

    return {"workflows": workflow_status(outbox)}


def surroundings(outbox: Outbox) -> dict[str, object]:
    """Return where the outbox is and which settings are in force; values of secrets never."""
    settings = outbox.settings
    home = outbox.home
    served = home and (read_served(home) if home.lock.serves else find_served(home))
    found: dict[str, object] = {
        "home": str(outbox.home.root) if outbox.home else None,
        "server": served and served.as_dict(),
        "schema": outbox.tables.schema,
        "settings": {
            "source": str(settings.source) if settings.source else None,
            "destinations": {name: one.type for name, one in settings.publishers.items()},
        },
        "storage": {
            "location": outbox.location,
            "single_driver": settings.storage.single_driver,
        },
    }
    offset = getattr(outbox.clock, "offset_seconds", 0.0)
    if offset:
        found["clock_offset_seconds"] = offset
    return found


def status_text(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    """Return the status as a person reads it.

    Args:
        document: the status.
    """
    from delta_outbox.cli.render import Column, Rows, duration, facts

    counts, settings = document["counts"], document["settings"]
    yield Rows(columns=[Column(name=name, right=True) for name in counts], rows=[counts])
    relays = ", ".join(relay["relay_id"] for relay in document["relays"])
    destinations = (f"{name} ({kind})" for name, kind in settings["destinations"].items())
    pairs = [
        ("oldest pending", duration(document["oldest_pending_seconds"])),
        ("refreshed at", (document["freshness"] or {}).get("refreshed_at")),
        ("relays alive", relays or "none"),
        ("policy", document["policy"]["version"] or "none"),
        ("home", document["home"]),
        ("server", _server_text(document["server"])),
        ("logs at", document["storage"]["location"]),
        ("settings", settings["source"] or "defaults"),
        ("destinations", ", ".join(destinations)),
    ]
    if document["storage"]["single_driver"]:
        pairs.append(("promised", "one Spark driver alone writes (storage.single_driver)"))
    if document["policy"]["problem"]:
        pairs.append(("policy problem", document["policy"]["problem"]))
    if "clock_offset_seconds" in document:
        offset = document["clock_offset_seconds"]
        pairs.append(("clock offset", f"{offset:+g} s (OUTBOX_CLOCK_OFFSET_SECONDS)"))
    yield ""
    yield facts(pairs)
    if "workflows" in document:
        yield ""
        yield facts(_workflow_facts(document["workflows"], document["relays"]))
    held = [row for row in document["destinations"] if row["paused"] or row["breaker"] != "closed"]
    if held:
        yield ""
        columns = [Column(name=name) for name in ("destination", "paused", "breaker")]
        columns += [
            Column(name="paused_by", rank=2),
            Column(name="pause_reason", rank=1),
            Column(name="next_probe_at", rank=3),
            Column(name="breaker_error", rank=1),
        ]
        yield Rows(columns=columns, rows=held)


def _workflow_facts(
    workflows: Mapping[str, Any], relays: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, object]]:
    by_state = ", ".join(f"{count} {state}" for state, count in workflows["by_state"].items())
    yield "open instances", f"{workflows['open_instances']}{by_state and f' ({by_state})'}"
    yield "open items", workflows["open_items"]
    yield "expire within the hour", workflows["expire_within_the_hour"]
    yield "uncertain in a day", workflows["uncertain_in_a_day"]
    if workflows["in_force"] is None:
        yield "workflows", "none are in force; `outbox workflow build`, then `outbox dbt build`"
    for relay in relays:
        if relay["workflows_problem"]:
            yield f"workflows of {relay['relay_id']}", relay["workflows_problem"]


def _server_text(server: Mapping[str, object] | None) -> str:
    if server is None:
        return "none; `outbox up` starts one"
    return "{address} (process {pid}), up since {since}".format(**server)


def list_(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """List deliveries, one row each, without payload and headers."""
    wanted = filter_of(args)

    def look(outbox: Outbox) -> Mapping[str, Any]:
        from delta_outbox.operations import inspection

        outbox.refresh()
        rows, more = inspection.list_deliveries(outbox, wanted)
        return {"events": rows, "more": more}

    return _outcome(invocation, look, list_text)


def filter_of(args: argparse.Namespace) -> Filter:
    """Return what the arguments of `list` select.

    Raises:
        WrongUsage: they contradict each other.
    """
    return Filter(
        states=tuple(args.state or ()),
        event_type=args.type,
        ordering_key=args.key,
        since=args.since,
        until=args.until,
        min_attempts=args.min_attempts,
        sort=args.sort,
        limit=args.limit,
    )


def list_text(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    """Return a listing as a person reads it.

    Args:
        document: deliveries, and whether there are more than these.
    """
    from delta_outbox.cli.render import Column, Rows, sentence

    rows = document["events"]
    if not rows:
        yield sentence("No events match.")
        return
    columns = [
        Column(name="event_id"),
        Column(name="event_type", rank=1),
        Column(name="ordering_key", rank=3),
        Column(name="state"),
        Column(name="attempts", right=True),
        Column(name="created_at", rank=4),
        Column(name="available_at", rank=6),
        Column(name="destination", rank=5),
        Column(name="last_error", rank=2),
    ]
    yield Rows(columns=columns, rows=rows)
    if document["more"]:
        yield sentence(f"The first {len(rows)}; --limit shows more.", style="dim")


def show(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Show one event with its transitions, what is left of a purged one, or one command."""

    def look(outbox: Outbox) -> Mapping[str, Any]:
        from delta_outbox.operations import event_life

        outbox.refresh()
        return event_life.show(outbox, args.id, with_payload=args.payload)

    return _outcome(invocation, look, show_text)


def show_text(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    """Return an event's life, or a command, as a person reads it.

    Args:
        document: as `event_life.show` returns it.
    """
    from delta_outbox.cli.render import Column, Rows, facts, sentence

    if "purged" in document:
        yield from _purged_text(document["purged"])
        return
    is_event = "event" in document
    shown: Mapping[str, Any] = document["event"] if is_event else document["command"]
    deliveries = shown["deliveries"]
    skipped = ("deliveries", "headers", "more")
    # A fact that nobody has given tells nothing.
    yield facts(
        [
            *(pair for pair in shown.items() if pair[0] not in skipped and pair[1] is not None),
            *((f"header {name}", value) for name, value in (shown.get("headers") or {}).items()),
        ]
    )
    if not is_event or len(deliveries) > 1:
        yield ""
        names = ("event_id", "destination", "lifecycle", "state", "status", "attempts")
        columns = [Column(name=name) for name in names if name in deliveries[0]]
        yield Rows(columns=columns, rows=deliveries)
    if not is_event:
        if shown["more"]:
            yield sentence("and more; `counts` counts them all.", style="dim")
        return
    yield ""
    transitions = [
        {
            **row,
            "transition": f"{row['from_state']} -> {row['to_state']}",
            "by": row["actor"] or row["relay_id"],
        }
        for row in document["transitions"]
    ]
    if not transitions:
        yield sentence("No transitions yet.")
        return
    columns = [
        Column(name="occurred_at"),
        Column(name="transition"),
        Column(name="reason"),
        Column(name="attempt", rank=3, right=True),
        Column(name="lifecycle", rank=5, right=True),
        Column(name="destination", rank=6),
        Column(name="by", rank=4),
        Column(name="error", rank=1),
        Column(name="receipt", rank=2),
    ]
    yield Rows(columns=columns, rows=transitions)


def _purged_text(purged: Mapping[str, Any]) -> Iterable[RenderableType]:
    from delta_outbox.cli.render import Column, Rows, facts, sentence

    yield sentence("This event was purged; what is left of it:", style="bold")
    yield facts([pair for pair in purged.items() if pair[0] != "deliveries"])
    yield ""
    columns = [Column(name=name) for name in ("destination", "state", "ended_at")]
    yield Rows(columns=columns, rows=purged["deliveries"])

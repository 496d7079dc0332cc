"""The tables of docs/performance.md, each from the document of a case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

Document = Mapping[str, Any]

OURS: Final = "delta-outbox"
RAW: Final = "raw producer"
_WHOSE: Final = ("live_heap", "driver", "workers")
_PEERS: Final = {
    "skip locked": "PostgreSQL, `for update skip locked`",
    "procrastinate": "procrastinate, key as lock",
    "procrastinate, no order": "procrastinate, no order per key",
}


def drain(document: Document) -> str:
    """Return the comparison of those who deliver; where a peer wins, it says so."""
    found = document["contenders"]
    own = found[OURS]["rate"]
    rows = [("**delta-outbox**", _events(own), _batch(found[OURS]), _times(own, found[RAW]), "")]
    for name, label in _PEERS.items():
        if name in found:
            peer = found[name]
            faster = peer["rate"] > own
            verdict = "**it wins**" if faster else f"ours: {_times(own, peer)} times"
            columns = _events(peer["rate"]), _batch(peer), _times(peer["rate"], found[RAW])
            rows.append((label, *columns, verdict))
    rows.append(("raw producer", _events(found[RAW]["rate"]), "", "1", "the limit"))
    what = document["what"]
    note = (
        f"{what['events']:,} pending events, {what['processes']} publishing processes each, "
        f"medians of {what['rounds']} (raw producer: {len(found[RAW]['rates'])}, between the "
        "others)."
    )
    return f"{note}\n\n{_table(('', 'events/s', 'batch', 'of the raw producer', ''), rows)}"


def history(document: Document) -> str:
    """Return what the past costs."""
    what, seconds = document["what"], document["seconds"]
    rows = [
        (name, _seconds(seconds["none"][name]), _seconds(seconds["long"][name]), f"{times:g}")
        for name, times in document["ratios"].items()
    ]
    header = ("", "nothing before", f"{what['past']:,} published before", "times")
    note = f"A drain is of {what['events']:,} events, an append of {what['appended']:,}."
    return f"{note}\n\n{_table(header, rows)}"


def backlog(document: Document) -> str:
    """Return what a backlog costs."""
    rows = [
        (
            f"{int(count):,}",
            _events(one["rate"]),
            f"{one['heap_at_rest_mib']:.0f}",
            *(f"{one[f'{who}_mib']:.0f} to {one[f'{who}_most_mib']:.0f}" for who in _WHOSE),
        )
        for count, one in document["backlogs"].items()
    ]
    header = (
        *("pending", "events/s", "heap at rest, MiB", "live heap"),
        *("Python driver", "workers"),
    )
    shares = ", ".join(f"{name} {share:.0%}" for name, share in document["spread"].items())
    return f"{_table(header, rows)}\n\nLargest above smallest: {shares}."


def large_payloads(document: Document) -> str:
    """Return what large payloads cost."""
    rows = [
        (
            name,
            f"{one['gigabytes']:g}",
            f"{one['mib_per_second']:.0f}",
            *(f"{one[f'{who}_most_mib']:.0f}" for who in ("jvm", "driver", "worker")),
        )
        for name, one in document["drains"].items()
    ]
    header = ("payloads, read by", "GB", "MiB/s", "Java, MiB", "Python driver", "a worker")
    return _table(header, rows)


def trickle(document: Document) -> str:
    """Return how long an event is under way."""
    what, cpu = document["what"], document["cpu"]
    rows = [
        (label, _seconds(document[name]["p50"]), _seconds(document[name]["p95"]))
        for name, label in (
            ("seconds", "from the end of the append"),
            ("with_the_append", "from the call of the append"),
        )
    ]
    table = _table((f"{what['per_second']} events/s", "p50", "p95"), rows)
    return (
        f"{table}\n\nFor {what['seconds']} s; the last third took {document['drift']} times the "
        f"first. The producer alone keeps {cpu['producer_alone']} cores busy, both together "
        f"{cpu['together']}: its share is {cpu['share_of_the_producer']:.0%}."
    )


def hot_key(document: Document) -> str:
    """Return what a hot key costs the others."""
    what = document["what"]
    beside = f"beside {what['hot']:,} events of one key"
    return _with_and_without(document, f"{what['others']:,} other events", beside)


def dead_destination(document: Document) -> str:
    """Return what a destination that hangs costs the others."""
    what = document["what"]
    beside = f"beside {what['hanging']:,} that hang"
    return _with_and_without(document, f"{what['events']:,} events for Kafka", beside)


def two_destinations(document: Document) -> str:
    """Return what it costs to isolate destinations."""
    rows = [
        ("one destination", _events(document["rate"]["one"])),
        ("two destinations, half of the events each", _events(document["rate"]["two"])),
        ("two to one", f"{document['ratios']['two to one']:g}"),
    ]
    return _table((f"{document['what']['events']:,} events", "events/s"), rows)


def failing(document: Document) -> str:
    """Return what failures cost."""
    rows = [
        ("none", _events(document["rate"]["clean"])),
        (f"{document['what']['failing']:.1%} of the events", _events(document["rate"]["failing"])),
        ("failing to clean", f"{document['ratios']['failing to clean']:g}"),
    ]
    return _table(("failing the first time", "events/s"), rows)


def old_retry(document: Document) -> str:
    """Return what an old event costs its batch."""
    rows = [
        (name, _seconds(seconds), f"{document['mib_read'][name]:g}")
        for name, seconds in document["seconds"].items()
    ]
    what = document["what"]
    header = (f"{what['fresh']:,} fresh events", "seconds", "MiB read")
    note = f"The old event is {what['days']} days and {what['past']:,} events old."
    return f"{_table(header, rows)}\n\n{note}"


def publishers(document: Document) -> str:
    """Return how fast the other destinations are served."""
    rows = [
        (f"`{name}`", "server not there", "")
        if "not_there" in one
        else (f"`{name}`", _events(one["rate"]), f"{one['events']:,}")
        for name, one in document["destinations"].items()
    ]
    return _table(("destination", "events/s", "events"), rows)


def first_drain(document: Document) -> str:
    """Return what a process has to learn."""
    rows = [
        (name, _events(one["rate"]), f"{one['cpu_microseconds']:.0f}")
        for name, one in document["drains"].items()
    ]
    table = _table(("drain of its process", "events/s", "CPU time, microseconds per event"), rows)
    return f"{table}\n\nFirst to third: {document['ratios']['first to third']:g}."


def small_drains(document: Document) -> str:
    """Return what small backlogs take, beside somebody else."""
    rows = [
        (
            f"{int(count):,}",
            *(_events(rate) for rate in of.values()),
            f"{document['ratios'][count]:g}",
        )
        for count, of in document["rates"].items()
    ]
    table = _table(("pending", "delta-outbox", "PostgreSQL, `skip locked`", "times"), rows)
    ahead = document["ahead_from"]
    said = "It stays ahead of us." if ahead is None else f"We are ahead from {ahead:,} events on."
    return f"{table}\n\n{said}"


def batch_sizes(document: Document) -> str:
    """Return how fast batches of each size are, and what the default reaches of the best."""
    default = str(document["what"]["default"])
    sizes = list(next(iter(document["rates"].values())))
    rows = [
        (
            name,
            *(_events(of[size]) for size in sizes),
            f"{document['ratios'][name]:.2f}",
        )
        for name, of in document["rates"].items()
    ]
    labels = [f"{int(size):,}" + (" (default)" * (size == default)) for size in sizes]
    return _table(("events/s in batches of at most", *labels, "default to best"), rows)


def exceptions(document: Document) -> str:
    """Return what a drain pays for what is not usual."""
    rows = [
        (
            f"{what}, {kind}",
            _seconds(both["without"]),
            _seconds(both["with"]),
            *(f"{document['ratios'][kind][what][of]:g}" for of in ("seconds", "cpu_seconds")),
        )
        for kind, by_what in document["seconds"].items()
        for what, both in by_what.items()
    ]
    return _table(("a drain of", "without it", "with it", "times", "CPU time"), rows)


def scheduled(document: Document) -> str:
    """Return what an event costs that is due behind what is not."""
    what = document["what"]
    rows = [
        (
            kind,
            *(
                f"{_seconds(document['seconds'][name])}, {_seconds(document['cpu_seconds'][name])}"
                for name in (f"{kind}, {before} before it" for before in ("nothing", "them"))
            ),
            *(f"{both[of]:g}" for of in ("seconds", "cpu_seconds")),
        )
        for kind, both in document["ratios"].items()
    ]
    behind = (
        f"behind {what['scheduled']:,} scheduled with a key each, and {what['claimed']:,} claimed"
    )
    header = ("one event, in seconds and CPU time", "alone", behind, "times", "CPU time")
    idle = document["idle_cores"]
    return (
        f"{_table(header, rows)}\n\nA relay with nothing to do keeps {idle['nothing']:g} cores "
        f"busy, and {idle['them']:g} with all of that waiting."
    )


def two_relays(document: Document) -> str:
    """Return what further relays bring at a slow destination."""
    rows = [
        (
            name,
            _events(rate),
            f"{document['ratios'][name]:.2f}",
            f"{document['cores'][name]:g}",
        )
        for name, rate in document["rate"].items()
    ]
    newcomer = document["newcomer"]
    seconds = ", ".join(f"{one:g}" for one in newcomer["seconds"])
    return (
        f"{_table(('', 'events/s', 'to one relay', 'cores busy'), rows)}\n\nA newcomer had its "
        f"share of the lanes after {seconds} s: {newcomer['beats']:g} beats at most."
    )


def recovery(document: Document) -> str:
    """Return how soon deliveries go on after a kill."""
    what = document["what"]
    rows = [
        (label, *(_seconds(document[name][of]) for of in ("p50", "p95", "most")))
        for name, label in (
            ("redelivered", "the first of what was in flight"),
            ("others", "the first of what was not"),
            ("over", "all of what was in flight"),
        )
    ]
    table = _table(("published again", "p50", "p95", "most"), rows)
    return f"{table}\n\n{what['kills']} kills, leases of {what['lease']} s."


def checks(document: Document) -> str:
    """Return what it costs to check what was delivered."""
    rows = [(name, _seconds(found)) for name, found in document["seconds"].items()]
    table = _table((f"{document['what']['events']:,} new events", "seconds"), rows)
    share = document["ratios"]["invariants to delivery"]
    return f"{table}\n\nThe invariants to the delivery: {share:g}."


def cold(document: Document) -> str:
    """Return how long commands take that start a Spark."""
    return _to_bare(document)


def served(document: Document) -> str:
    """Return how long commands take beside a server."""
    few, what = document["few_events"], document["what"]
    return (
        f"{_to_bare(document)}\n\n{what['few']} events that are appended to a relay that runs are "
        f"delivered within {few['p50']:g} s in the median, and {few['p95']:g} s at the 95th "
        f"percentile of {what['appends']}."
    )


def _to_bare(document: Document) -> str:
    rows = [
        (
            f"`{name}`" if name in document["ratios"] and "," not in name else name,
            _seconds(found),
            f"{document['ratios'].get(name, 1):g}",
        )
        for name, found in document["seconds"].items()
    ]
    return _table(("from start to exit", "seconds", "to a bare PySpark"), rows)


def workflows(document: Document) -> str:
    """Return what workflows make of their steps, beside a peer that runs the same one."""
    what, steps = document["what"], document["steps"]
    beside = f"{what['ended']:,} instances that have ended and {what['waiting']:,} that wait"
    labels = {
        "alone": "**three steps**",
        "beside": f"three steps, beside {beside}",
        "peer": "three steps, DBOS on PostgreSQL",
    }
    rows = [
        (f"one task, `{name}`", _events(one["rate"]), "", "")
        for name, one in document["categories"].items()
    ]
    for name, label in labels.items():
        one = steps[name]
        p50, p95 = (_seconds(one["next_call"][share]) for share in ("p50", "p95"))
        rows.append((label, _events(one["rate"]), p50, p95))
    table = _table(("", "steps/s", "from an outcome to the next call, p50", "p95"), rows)
    return (
        f"{table}\n\nBacklogs of {what['instances']:,} instances (a tenth of `opaque`) in a warm "
        f"process, medians of {what['rounds']}; the time to the next call while an instance starts "
        f"each second, for {what['seconds']} s."
    )


TABLES: Final[Mapping[str, Callable[[Document], str]]] = {
    "drain": drain,
    "first_drain": first_drain,
    "small_drains": small_drains,
    "batch_sizes": batch_sizes,
    "history": history,
    "backlog": backlog,
    "large_payloads": large_payloads,
    "trickle": trickle,
    "hot_key": hot_key,
    "failing": failing,
    "exceptions": exceptions,
    "scheduled": scheduled,
    "two_destinations": two_destinations,
    "dead_destination": dead_destination,
    "two_relays": two_relays,
    "recovery": recovery,
    "old_retry": old_retry,
    "checks": checks,
    "publishers": publishers,
    "cold": cold,
    "served": served,
    "workflows": workflows,
}


def _with_and_without(document: Document, counted: str, beside: str) -> str:
    rates = document["rate"]
    rows = [
        ("alone", _events(rates["without"])),
        (beside, _events(rates["with"])),
        ("with to without", f"{document['ratios']['with to without']:g}"),
    ]
    return _table((counted, "events/s"), rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def _events(rate: float) -> str:
    return f"{rate:,.0f}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s"


def _batch(contender: Mapping[str, Any]) -> str:
    return f"{contender['batch']:,}" if "batch" in contender else ""


def _times(rate: float, to: Mapping[str, Any]) -> str:
    times = rate / to["rate"]
    return f"{times:.2g}" if times < 1 else f"{times:.1f}" if times < 10 else f"{times:,.0f}"

"""What a soak found: the document, and the page that is made of it."""

from __future__ import annotations

import math
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pyspark
from scripts.soak.damage import Damage, damages
from scripts.soak.evidence import Evidence, Kill
from scripts.soak.folder import Terms
from scripts.soak.oracle import by_event, violations
from scripts.soak.plan import Strike, strikes
from scripts.soak.processes import REPOSITORY
from scripts.soak.producer import LEASE

from delta_outbox.runtime.java import find_java

EXAMPLES = 10  # of each kind of violation
ALONE = "alone"
NAMES = {
    ALONE: "relay, at work: no other kill before all is over",
    "relay": "relay, at work",
    "jvm": "JVM: that of `outbox serve`, and with it every relay",
    "worker": "Python worker: of that JVM, while it sends",
}


PAGE = """\
<!-- Written by `make soak`. -->
# Soak

{total} processes were ended with SIGKILL in {minutes} minutes, while {events} events were appended
through `outbox serve` and delivered to a Kafka. Two relays were there at any time, one at work and
one standing by, with a lease of {lease_seconds} seconds. Every worker was killed while the broker
was frozen (sent, not acknowledged), and about half of the relays and JVMs too. Relays are clients
of the server. The first kills were made alone, to see how soon deliveries go on: each came once the
other relay stood by and all was delivered that the one before had left, and until then nobody took
the place of a dead one. The others came a few seconds after each other.

| | |
|---|---|
| commit | {commit} |
| seed | {seed} |
| machine | {machine} |
| ran | {began} to {ended}, in stretches: {stretches} |
| kills | {total} |
| events | {events} |
| messages | {messages} |
| **lost** | {lost} |
| not recorded as published in the end | {unfinished} |
| recorded as published before the broker had it | {unfounded} |
| **illegal** steps | {illegal} |
| **order violations** | {disordered} |
| DEAD, though nothing was wrong with the event | {dead} |
| messages that nobody appended so | {altered} |
| repeated without an interrupted claim | {repeated} |
| duplicates of what was in flight at a kill | {duplicates} |

Three numbers are the median, the 95th percentile and the largest.

| killed | kills | with any in flight | duplicates per kill | recovery (s) | others (s) | over (s) |
|---|---|---|---|---|---|---|
{table}

- In flight is what the dead process left under a claim.
- Recovery is the time from the kill to the first message that a later claim sent of it.
- Others is the time from the kill to the next message of an event that was not in flight.
- Over is that of recovery until all of it was sent, whatever was killed in between.
- A kill that left nothing in flight has no recovery. Instants are the broker's (LogAppendTime).

All of it is judged from the files that Delta's commits name and from the topic, read by Kafka's
own client, with a statement of the lifecycle that shares nothing with the code
([oracle.py](../scripts/soak/oracle.py)). An append that failed because its server died was not
repeated; what it left in the log counts as appended.
"""


def report_of(
    evidence: Evidence, terms: Terms, *, stretches: Sequence[tuple[float, float]], machine: str
) -> dict[str, Any]:
    """Return the document.

    Args:
        evidence: of the soak.
        terms: what it was begun with.
        stretches: when it ran.
        machine: what it ran on.
    """
    found = violations(evidence)
    broken = {name: len(examples) for name, examples in vars(found).items()}
    return {
        "commit": terms.commit,
        "seed": terms.seed,
        "machine": machine,
        "began": _date(stretches[0][0]),
        "ended": _date(stretches[-1][1]),
        "minutes": round(sum(end - begin for begin, end in stretches) / 60, 1),
        "stretches": len(stretches),
        "lease_seconds": LEASE,
        "events": len({row.event_id for row in evidence.appended}),
        "messages": len(evidence.copies),
        "claims_without_answer": _without_answer(evidence),
        "kills_wanted": dict(Counter(map(_name, strikes(terms.seed, terms.kills)))),
        "kills": _kills(damages(evidence)),
        "violations": broken,
        "examples": {
            name: list(examples[:EXAMPLES]) for name, examples in vars(found).items() if examples
        },
        "kept": found.none and len(evidence.kills) >= terms.kills,
    }


def page(report: Mapping[str, Any]) -> str:
    """Return docs/soak.md.

    Args:
        report: the document.
    """
    kinds = report["kills"]
    rows = [_row(NAMES.get(name, name), kind) for name, kind in kinds.items()]
    return PAGE.format(
        **report["violations"],
        **{name: value for name, value in report.items() if isinstance(value, str | int | float)},
        total=kinds["all"]["kills"],
        duplicates=kinds["all"]["duplicates"]["total"],
        table="\n".join(rows),
    )


def this_machine() -> str:
    """Return a sentence about this machine."""
    memory = psutil.virtual_memory().total / 1024**3
    return (
        f"{os.cpu_count()} cores ({processor()}), {memory:.0f} GiB, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}, Java {find_java().version}, "
        f"Spark {pyspark.__version__}"
    )


def commit() -> str:
    """Return the commit of the code, and whether the code differs from it."""
    name = _git("rev-parse", "--short=12", "HEAD")
    if not name:
        return "unknown"
    # What is measured is written down while the rest is still running: that is no change of code.
    others = _git("status", "--porcelain", "--", ".", ":!docs", ":!benchmarks/results")
    return f"{name} with local changes" if others else name


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least a share of the values does not exceed.

    Args:
        values: at least one.
        share: above 0, up to 1.
    """
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def _kills(found: Sequence[Damage]) -> dict[str, Any]:
    kinds = sorted({_name(one.kill) for one in found}, key=list(NAMES).index)
    groups = {kind: [one for one in found if _name(one.kill) == kind] for kind in kinds}
    return {name: _numbers(group) for name, group in {**groups, "all": found}.items()}


def _name(one: Kill | Strike) -> str:
    return ALONE if one.alone else one.kind


def _numbers(group: Sequence[Damage]) -> dict[str, Any]:
    return {
        "kills": len(group),
        "with_events_in_flight": sum(one.in_flight > 0 for one in group),
        "duplicates": {
            "total": sum(one.duplicates for one in group),
            **_spread(one.duplicates for one in group),
        },
        "recovery_seconds": _spread(one.recovery for one in group),
        "others_seconds": _spread(one.others for one in group),
        "over_seconds": _spread(one.over for one in group),
    }


def _spread(values: Iterable[float | None]) -> dict[str, float | int]:
    known = [value for value in values if value is not None]
    if not known:
        return {"measured": 0}
    return {
        "measured": len(known),
        "p50": round(percentile(known, 0.50), 1),
        "p95": round(percentile(known, 0.95), 1),
        "max": round(max(known), 1),
    }


def _row(name: str, kind: Mapping[str, Any]) -> str:
    names = ("duplicates", "recovery_seconds", "others_seconds", "over_seconds")
    spreads = [kind[name] for name in names]
    cells = [name, str(kind["kills"]), str(kind["with_events_in_flight"])]
    cells += [f"{s['p50']}, {s['p95']}, {s['max']}" if s["measured"] else "none" for s in spreads]
    return f"| {' | '.join(cells)} |"


def _without_answer(evidence: Evidence) -> dict[str, int]:
    """Count the claims, event by event, that ended as neither delivered nor released."""
    endings = (step for history in by_event(evidence.steps).values() for step in history)
    calm = {"claimed", "delivered", "released"}
    return dict(Counter(step.reason for step in endings if step.reason not in calm))


def processor() -> str:
    """Return the name of the processor, as far as the system tells it."""
    file = Path("/proc/cpuinfo")
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _git(*words: str) -> str:
    """Return what git says; nothing if this is no repository."""
    done = subprocess.run(
        ["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _date(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"

"""The command line as argparse sees it."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from delta_outbox.cli import arguments
from delta_outbox.core.errors import WrongUsage
from delta_outbox.core.version import __version__
from delta_outbox.lifecycle.states import State
from delta_outbox.operations.inspection_filter import DEFAULT_LIMIT, SORT_COLUMNS, Sort
from delta_outbox.workflow_engine.workflow_states import STATES

DEFAULT_MAX_WAIT = 60.0  # seconds
MAX_WAIT_UP = 180.0  # seconds; the first start on a machine fetches Delta's jars

_EPILOG = """\
exit codes: 0 done; 1 finished, with something to look at (rejected rows, dead or waiting events);
2 wrong usage, settings or environment; 130 interrupted by Ctrl-C or SIGTERM (a relay or a server
that is told to stop ends with 0). The home is OUTBOX_HOME, else .outbox in this folder or above it.
"""

_SERVE_EPILOG = """\
It takes the home and starts a Spark Connect server there, on this machine only and with a token
of its own. It is ready when it says "Serving ..." on standard error; then served.json is in the
home (address, token, pid; readable by its owner alone), and every outbox command and
.venv/bin/dbt use the server by themselves. The document of --json comes at its end. For a bare
dbt, export OUTBOX_HOME and SPARK_REMOTE="<address>/;token=<token>". `outbox up` starts the same in
the background, `outbox down` ends it.
"""

_UP_EPILOG = """\
It starts `outbox serve` in the background, apart from this terminal, with its log in
logs/serve.log of the home, and returns when that is ready; if the home is served already, it says
since when, and is done. While it is up, every outbox command and .venv/bin/dbt use its Spark by
themselves, and several may run at once. If it does not become ready, or this command is interrupted
before, nothing is left of it.
"""

_DOWN_EPILOG = """\
It ends what `outbox up` or `outbox serve` has started for this home, and returns when the home is
free; if nothing is up, it says so (exit code 0). Relays and other commands at work through it end
with SERVER_UNREACHABLE: nothing is lost, and what a relay had in flight is sent again by the next
one. Stop relays first (SIGTERM), and nothing is sent twice.
"""


_MAINTAIN_EPILOG = """\
It refreshes, finishes a purge that was interrupted, compacts the partitions with many small files,
forgets heartbeats of more than a week ago, and deletes files that nobody needs any more: a week
after they were replaced (those of heartbeats a day), later where a derived writer (the projection,
the invariants of `dbt build`) has not read them yet. It may run at any time, beside anything, but
is refused while another process has a local home that is not up (`outbox up`); run it every hour.
"""

_LANES_EPILOG = """\
Each lane of the transition log takes one append after the other, and a relay works on several: more
lanes let more relays work beside each other. With --to --apply nothing more is claimed; what is in
flight is finished, claims of those that are gone are ended, and then the next epoch begins. That
takes as long as the longest claim in flight, at most a lease. If it takes longer than --max-wait,
the exit code is 1, and a relay or the same command finishes it: so they do after a crash.
--to with the number that there is already begins a new epoch, too.
"""

_PURGE_EPILOG = """\
A day goes as a whole, and only if every event of it has ended: one that holds an open event, a
replay to be applied, a row that the projection does not show, something that was appended
lately, a DEAD event (without --include-dead), or the first row of an event that is repeated on a
day that stays, is left as it is, which is said, and makes the exit code 1. What was purged stays on
record (`outbox show ID`), but can never be delivered again. Its room is freed by the `outbox
maintain` of a week later.
"""


class _Parser(argparse.ArgumentParser):
    """A parser that raises what it would print: every error takes the same way out."""

    def error(self, message: str) -> NoReturn:
        """Raise the message."""
        where = self.prog.removeprefix("outbox").strip()
        raise WrongUsage(
            f"{where}: {message}" if where else message,
            remedy=f"Correct the command line; `{self.prog} --help` explains it.",
        )


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line.

    Raises:
        WrongUsage: it breaks a rule.
        SystemExit: it asks for help or the version, which has been printed.
    """
    ours, rest = split_dbt(argv)
    parsed = build().parse_args(ours)
    parsed.dbt_args = rest
    return parsed


def split_dbt(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split off what follows `dbt`: it is dbt's, word for word.

    Only `--json` directly after it is still ours (dbt has no such option).
    """
    words = list(argv)
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] == "--config" else 1
    if at >= len(words) or words[at] != "dbt":
        return words, []
    at += 1
    if words[at : at + 1] == ["--json"]:
        at += 1
    return words[:at], words[at:]


def build() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = _Parser(
        prog="outbox",
        description="A transactional outbox for Delta Lake.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[_shared(top=True)],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"delta-outbox {__version__}")
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True, parser_class=_Parser
    )

    def command(name: str, sentence: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=sentence,
            description=sentence,
            parents=[_shared(top=False)],
            allow_abbrev=False,
        )

    command("init", "Create the outbox, or what is missing of it; never alters data.")
    _append(command("append", "Append events from JSON lines: all of them, or none."))
    _relay(command("relay", "Publish what is due, and record what happened."))
    command("status", "Show how many events are in which state, and who is at work.")
    _list(command("list", "List deliveries, in the order of their arrival."))
    _show(command("show", "Show the whole life of one event, or what became of a command."))
    _replay(command("replay", "Deliver again what is PUBLISHED or DEAD; a preview unless --apply."))
    _kill(command("kill", "End events without delivering them: they become DEAD."))
    _release(command("release", "End claims whose lease is over, so that others can take over."))
    _pausing(command("pause", "Take nothing more for a destination; its events stay PENDING."))
    _pausing(command("resume", "Take events for a destination again."))
    refresh = command("refresh", "Bring the projection up to what the logs hold now.")
    refresh.add_argument(
        "--rebuild", action="store_true", help="derive everything anew from the logs"
    )
    _lanes(
        command("lanes", "Show the lanes of the log, or change how many; a preview unless --apply.")
    )
    _maintain(command("maintain", "Compact small files and delete unused ones; fit for cron."))
    _purge(command("purge", "Remove days of which everything has ended; a preview unless --apply."))
    _up(command("up", "Start a Spark in the background, which makes every command fast."))
    _down(command("down", "End what `up` has started."))
    _serve(command("serve", "Let several processes work on one home, until SIGTERM or Ctrl-C."))
    command("dbt", "Run dbt on this outbox: everything after `dbt` is dbt's own.")
    _workflow(
        command(
            "workflow", "Check and draw workflows of third-party calls; see what became of each."
        )
    )
    _todo(command("todo", "Show what workflows wait for, assign it, and answer it."))
    return parser


def _shared(*, top: bool) -> _Parser:
    """Return the options that may stand before the command and after it."""
    shared = _Parser(add_help=False, allow_abbrev=False)

    def default(value: object) -> object:
        # A command's own default would win over what was said before its name.
        return value if top else argparse.SUPPRESS

    options = shared.add_argument_group("options of every command" if not top else "options")
    options.add_argument(
        "--json",
        action="store_true",
        default=default(False),
        help="print one JSON document on standard output; everything else goes to standard error",
    )
    options.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        default=default(None),
        help="the settings (default: OUTBOX_CONFIG, outbox.toml in the home, outbox.toml here)",
    )
    options.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=default(0),
        help="log what happens; twice: in detail",
    )
    options.add_argument(
        "--debug",
        action="store_true",
        default=default(False),
        help="log in detail and show the trace of an error",
    )
    return shared


def _up(parser: argparse.ArgumentParser) -> None:
    _serve(parser)
    parser.epilog = _UP_EPILOG
    _max_wait(parser, "how long to wait until it is ready", default=MAX_WAIT_UP)


def _down(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _DOWN_EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    _max_wait(parser, "how long to wait until the home is free")


def _max_wait(
    parser: argparse.ArgumentParser, sentence: str, *, default: float = DEFAULT_MAX_WAIT
) -> None:
    parser.add_argument(
        "--max-wait",
        type=arguments.seconds,
        metavar="SECONDS",
        default=default,
        help=f"{sentence} (default: %(default)g)",
    )


def _serve(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _SERVE_EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--port",
        type=arguments.port,
        metavar="PORT",
        help="the port of 127.0.0.1 to listen on (default: a free one)",
    )
    parser.add_argument(
        "--short-lived",
        action="store_true",
        help="start fast and compute slower: for minutes, or for batches of a few hundred events",
    )


def _actions(
    parser: argparse.ArgumentParser, *, dest: str = "action"
) -> Callable[[str, str], argparse.ArgumentParser]:
    """Return what adds an action to a command."""
    actions = parser.add_subparsers(
        title="actions", dest=dest, metavar="ACTION", required=True, parser_class=_Parser
    )

    def action(name: str, sentence: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = actions.add_parser(
            name,
            help=sentence,
            description=sentence,
            parents=[_shared(top=False)],
            allow_abbrev=False,
        )
        return made

    return action


def _workflow(parser: argparse.ArgumentParser) -> None:
    action = _actions(parser)

    def modules(made: argparse.ArgumentParser) -> argparse.ArgumentParser:
        made.add_argument(
            "module",
            metavar="MODULE",
            nargs="*",
            help="with workflows (default: [workflows] modules of the settings)",
        )
        return made

    _new_workflow(action("new", "Ask what a third party can promise; write a task and its test."))
    modules(action("check", "Say what is wrong with the workflows, by task, rule and remedy."))
    modules(action("list", "List the workflows, what starts them and what ends them."))
    draw = modules(action("draw", "Draw the workflows: Mermaid, SVG or PNG."))
    draw.add_argument(
        "--format",
        choices=("mermaid", "svg", "png"),
        default="mermaid",
        help="SVG and PNG need the extra `draw` (default: %(default)s)",
    )
    draw.add_argument("--to", type=Path, metavar="FOLDER", help="a file for each goes there")
    build_ = modules(
        action("build", "Write a page for each workflow, and in a dbt project the rows of all.")
    )
    build_.add_argument(
        "--check", action="store_true", help="write nothing, and name what is stale (exit code 1)"
    )
    _explain_rule(action("explain", "Say why there is a rule, and what to do."))
    _instances(action("instances", "List instances, those first that were started last."))
    shown = action("show", "Show what happened to an instance, and what happens next.")
    shown.add_argument("instance", metavar="INSTANCE", help="its business key")
    _of_workflow(shown)
    _cancel(action("cancel", "End instances by their default exit; a preview unless --apply."))
    _extend(action("extend", "Let open tasks expire later; a preview unless --apply."))
    _accept_late(
        action(
            "accept-late",
            "Let instances go on by answers that came too late; a preview unless --apply.",
        )
    )
    _migrate(action("migrate", "Move open instances to another version; a preview unless --apply."))


def _of_workflow(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workflow", metavar="NAME", help="only of this one")


def _instances(parser: argparse.ArgumentParser) -> None:
    _of_workflow(parser)
    state = parser.add_mutually_exclusive_group()
    state.add_argument(
        "--state",
        choices=STATES,
        action="append",
        help="may be given several times (default: all but ended)",
    )
    state.add_argument("--all", action="store_true", help="those that have ended, too")
    _started_between(parser)
    _limit(parser)


def _cancel(parser: argparse.ArgumentParser) -> None:
    _open_tasks(parser)
    _who_and_why(parser, dry_run_by_default=True)


def _extend(parser: argparse.ArgumentParser) -> None:
    _open_tasks(parser)
    _later(parser)


def _later(parser: argparse.ArgumentParser) -> None:
    """Add when open tasks are to expire, and who asks for it."""
    when = parser.add_mutually_exclusive_group(required=True)
    when.add_argument(
        "--to",
        type=arguments.instant,
        metavar="TIME",
        help="when they expire then (ISO 8601 with an offset)",
    )
    when.add_argument(
        "--by",
        dest="by_seconds",
        type=arguments.whole_number(1),
        metavar="SECONDS",
        help="by how much each expires later",
    )
    _who_and_why(parser, dry_run_by_default=True)


def _accept_late(parser: argparse.ArgumentParser) -> None:
    _open_tasks(parser)
    parser.add_argument(
        "--late-task",
        metavar="NAME",
        help="only answers to this task; needed where an instance has late answers to several",
    )
    _who_and_why(parser, dry_run_by_default=True)


def _migrate(parser: argparse.ArgumentParser) -> None:
    _open_tasks(parser)
    version = arguments.whole_number(1)
    parser.add_argument(
        "--from",
        dest="from_version",
        type=version,
        metavar="VERSION",
        help="only instances that go by this version (default: by any other than --to)",
    )
    parser.add_argument(
        "--to",
        dest="to_version",
        type=version,
        metavar="VERSION",
        required=True,
        help="the version by which they go on",
    )
    parser.add_argument(
        "--map",
        action="append",
        type=arguments.pair,
        metavar="OLD=NEW",
        required=True,
        help="instances that stand at OLD go on at NEW; may be given several times",
    )
    _who_and_why(parser, dry_run_by_default=True)


def _open_tasks(parser: argparse.ArgumentParser) -> None:
    """Add what selects open tasks, and the instances that stand there."""
    parser.add_argument(
        "instances",
        nargs="*",
        metavar="INSTANCE",
        help="business keys; if left out, all that the options select",
    )
    parser.add_argument(
        "--task-id",
        dest="task_ids",
        action="append",
        metavar="ID",
        help="that stand at the task of this identifier; may be given several times",
    )
    _at_tasks(parser)
    parser.add_argument("--third-party", metavar="NAME", help="that stand at a task of this one")


def _open_items(parser: argparse.ArgumentParser) -> None:
    """Add what selects items that are open."""
    parser.add_argument(
        "task_ids",
        nargs="*",
        metavar="ID",
        help="task identifiers; if left out, all that the options select",
    )
    parser.add_argument(
        "--instance",
        dest="instances",
        action="append",
        metavar="KEY",
        help="only of this instance; may be given several times",
    )
    _at_tasks(parser)
    parser.set_defaults(third_party=None)


def _at_tasks(parser: argparse.ArgumentParser) -> None:
    _of_workflow(parser)
    parser.add_argument("--task", metavar="NAME", help="that stand at this task of the workflow")
    parser.add_argument("--role", metavar="ROLE", help="that stand at an item that it may answer")
    _started_between(parser)


def _started_between(parser: argparse.ArgumentParser) -> None:
    for name, sentence in (("since", "at TIME or later"), ("until", "before TIME")):
        parser.add_argument(
            f"--{name}",
            type=arguments.instant,
            metavar="TIME",
            help=f"started {sentence} (ISO 8601 with an offset)",
        )


def _limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit",
        type=arguments.whole_number(1),
        metavar="N",
        default=DEFAULT_LIMIT,
        help="at most N rows (default: %(default)s)",
    )


def _todo(parser: argparse.ArgumentParser) -> None:
    action = _actions(parser)
    listed = action("list", "List what waits for somebody, in the order in which it expires.")
    _of_workflow(listed)
    role = listed.add_mutually_exclusive_group()
    role.add_argument("--role", metavar="ROLE", help="only what it may answer")
    role.add_argument(
        "--orphans", action="store_true", help="only what nobody with an API key may answer"
    )
    listed.add_argument(
        "--known-role",
        action="append",
        metavar="ROLE",
        help="for --orphans: somebody has it by a JWT or by links; repeatable",
    )
    listed.add_argument("--ended", action="store_true", help="what has ended instead")
    held = listed.add_mutually_exclusive_group()
    held.add_argument("--assigned-to", metavar="WHO", help="only what this person takes care of")
    held.add_argument("--unassigned", action="store_true", help="only what nobody takes care of")
    _limit(listed)
    shown = action("show", "Show what an item is about, and what an answer must look like.")
    shown.add_argument("id", metavar="ID", help="the task identifier")
    complete = action("complete", "Answer an item.")
    complete.add_argument("id", metavar="ID", help="the task identifier")
    data = complete.add_mutually_exclusive_group()
    data.add_argument("--data", metavar="JSON", help="the answer, an object")
    data.add_argument("--data-file", metavar="FILE", help="the same in a file; - is standard input")
    complete.add_argument(
        "--outcome", metavar="NAME", help="refuse the answer if it means another outcome"
    )
    _by_whom(complete)
    assign = action("assign", "Say who takes care of items; a preview unless --apply.")
    _open_items(assign)
    to = assign.add_mutually_exclusive_group(required=True)
    to.add_argument("--to", metavar="WHO", help="the person")
    to.add_argument("--take", action="store_true", help="the actor, if nobody else does so far")
    to.add_argument("--release", action="store_true", help="nobody any more")
    assign.add_argument(
        "--unassigned", action="store_true", help="leave alone what somebody else takes care of"
    )
    _who_and_why(assign, dry_run_by_default=True)
    extend = action("extend", "Let items expire later; a preview unless --apply.")
    _open_items(extend)
    _later(extend)
    link = action("link", "Make a signed link to one item, for somebody without a key.")
    link.add_argument("id", metavar="ID", help="the task identifier")
    link.add_argument(
        "--until", type=arguments.instant, metavar="TIME", help="(default: until the item is over)"
    )
    serve = action("serve", "Let people and third parties answer items over HTTP.")
    serve.add_argument(
        "--port",
        type=arguments.port,
        metavar="PORT",
        help="where it listens (default: `[todo] port`, which is 8765)",
    )
    action("consume", "Take answers from topics of Kafka.")
    _keys(action("keys", "Say who may talk to the server of items."))


def _keys(parser: argparse.ArgumentParser) -> None:
    action = _actions(parser, dest="keys_action")
    add = action("add", "Add an API key, which is shown once.")
    add.add_argument("--person", required=True, metavar="NAME", help="whom it stands for")
    add.add_argument(
        "--role", required=True, action="append", metavar="ROLE", help="of that person; repeatable"
    )
    _by_whom(add)
    action("list", "List the keys that count, without their secrets.")
    revoke = action("revoke", "Revoke an API key.")
    revoke.add_argument("id", metavar="ID", help="of the key")
    _by_whom(revoke)


def _explain_rule(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", metavar="RULE", help="as it stands in brackets in a message")


def _new_workflow(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the task, such as reserve_stock")
    parser.add_argument(
        "--category",
        choices=("Idempotent", "PessimisticLock", "BlackBox", "ToDo"),
        help="left out: three questions decide",
    )
    parser.add_argument("--third-party", metavar="NAME", help="whom it calls, or who answers")
    parser.add_argument(
        "--compromise",
        choices=("at_most_once", "at_least_once", "up_to", "human"),
        help="of a BlackBox: what follows when it may have happened",
    )
    for name, choices in (
        ("visibility", ("self_evident", "traceable", "invisible")),
        ("necessity", ("must_happen", "should_happen", "nice_to_have")),
        ("hurt", ("own", "third_party", "customer")),
        ("risk", ("reputation", "legal", "data_breach", "economic_loss")),
    ):
        parser.add_argument(f"--{name}", choices=choices, help="of a BlackBox")
    parser.add_argument("--decided-by", metavar="WHO", help="of a BlackBox, with a date")
    parser.add_argument("--why", metavar="SENTENCE", help="of a BlackBox")


def _append(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="JSON lines with the columns of the log; - is standard input"
    )


def _relay(parser: argparse.ArgumentParser) -> None:
    mode = parser.add_mutually_exclusive_group(required=True)
    for name, sentence in (
        ("once", "one batch"),
        ("drain", "until nothing is open, or all that is left waits longer than --max-wait"),
        ("continuous", "until SIGTERM or Ctrl-C"),
    ):
        mode.add_argument(f"--{name}", dest="mode", action="store_const", const=name, help=sentence)
    parser.add_argument(
        "--limit",
        type=arguments.whole_number(1),
        metavar="N",
        help="at most N events claimed at any instant, and per batch",
    )
    _max_wait(parser, "what --drain waits for, at most")


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        type=arguments.state,
        action="append",
        metavar="STATE",
        help=f"one of {', '.join(State)}; may be given several times",
    )
    _event_type(parser)
    parser.add_argument("--key", metavar="KEY", help="this ordering key")
    _created_between(parser)
    parser.add_argument(
        "--min-attempts",
        type=arguments.whole_number(0),
        metavar="N",
        default=0,
        help="at least N attempts",
    )
    parser.add_argument(
        "--sort",
        type=arguments.sort,
        metavar="COLUMN[:desc]",
        default=Sort(),
        help=f"one of {', '.join(SORT_COLUMNS)} (default: arrival)",
    )
    _limit(parser)


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the id of an event or of a command")
    parser.add_argument(
        "--payload", action="store_true", help="show the payload and the values of headers too"
    )


def _replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", required=True, metavar="STATE", help="DEAD or PUBLISHED")
    _event_type(parser)
    _created_between(parser)
    parser.add_argument(
        "--id",
        dest="event_ids",
        action="append",
        metavar="ID",
        help="this event; may be given several times",
    )
    parser.add_argument("--error", metavar="TEXT", help="the last error holds TEXT")
    parser.add_argument(
        "--all",
        dest="everything",
        action="store_true",
        help="no filter: PUBLISHED needs one otherwise",
    )
    _who_and_why(parser, dry_run_by_default=True)


def _kill(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "event_ids", nargs="+", metavar="ID", help="the id of an event; several are possible"
    )
    _who_and_why(parser, dry_run_by_default=False)


def _release(parser: argparse.ArgumentParser) -> None:
    for name, what in (("id", "the claims of this event"), ("claim", "this claim")):
        parser.add_argument(
            f"--{name}",
            dest="event_ids" if name == "id" else "claim_ids",
            action="append",
            metavar="ID",
            help=f"only {what}; may be given several times",
        )
    _who_and_why(parser, dry_run_by_default=False)


def _maintain(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _MAINTAIN_EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")


def _purge(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _PURGE_EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--before",
        type=arguments.day,
        required=True,
        metavar="DATE",
        help="events created on DATE (UTC) and later stay; at the latest as long ago as ids "
        "are held against new events (append.horizon_days, or dbt's identity_horizon_days)",
    )
    parser.add_argument(
        "--include-dead",
        action="store_true",
        help="purge days with DEAD events, too; a key that one of them holds is let go",
    )
    _who_and_why(parser, dry_run_by_default=True)


def _lanes(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _LANES_EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--to",
        type=arguments.whole_number(1),
        metavar="N",
        help="begin a new epoch with N lanes; needs --actor and --reason",
    )
    _max_wait(parser, "how long to wait for what is claimed")
    _who_and_why(parser, dry_run_by_default=True, is_required=False)


def _pausing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "destination", metavar="DESTINATION", help="its name, as in the policies and the settings"
    )
    _by_whom(parser)


def _by_whom(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reason", default="not given", metavar="TEXT", help="why; it is kept (default: none)"
    )
    parser.add_argument(
        "--actor",
        default=_user(),
        metavar="NAME",
        help="who asks; it is kept (default: the user of this process)",
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # no name for this user: in a container, say
        return "unknown"


def _event_type(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--type", type=arguments.glob, metavar="GLOB", help="event type, such as 'order.*'"
    )


def _created_between(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--since",
        type=arguments.instant,
        metavar="TIME",
        help="created at TIME or later (ISO 8601 with an offset)",
    )
    parser.add_argument(
        "--until", type=arguments.instant, metavar="TIME", help="created before TIME"
    )


def _who_and_why(
    parser: argparse.ArgumentParser, *, dry_run_by_default: bool, is_required: bool = True
) -> None:
    parser.add_argument("--reason", required=is_required, metavar="TEXT", help="why; it is kept")
    parser.add_argument(
        "--actor", required=is_required, metavar="NAME", help="who asks; it is kept"
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--apply",
        dest="dry_run",
        action="store_const",
        const=False,
        help="do it" + ("" if dry_run_by_default else " (the default)"),
    )
    mode.add_argument(
        "--dry-run",
        dest="dry_run",
        action="store_const",
        const=True,
        help="only show what it is about" + (" (the default)" if dry_run_by_default else ""),
    )
    parser.set_defaults(dry_run=dry_run_by_default)

"""`outbox workflow new | check | list | draw | build`: no Spark, no outbox needed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.cli.outcome import TO_LOOK_AT, Invocation, Outcome
from delta_outbox.errors import BadSettings, WrongUsage

if TYPE_CHECKING:
    from rich.console import RenderableType

    from delta_outbox.railway import Workflow

PAGES: Final = Path("docs") / "workflows"


def workflow(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Run one of the commands for workflows."""
    return _COMMANDS[args.action](args, invocation)


def check(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Import the workflows and say what is wrong with them."""
    from delta_outbox.railway.modules import warnings

    del invocation
    workflows = _workflows(args)
    warned = [str(one) for one in warnings(workflows)]
    document = {"workflows": [_summary(one) for one in workflows], "warnings": warned}

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import sentence

        for one in workflows:
            yield sentence(f"{one.name}: {len(one.tasks)} tasks, nothing wrong.")
        for words in warned:
            yield sentence(f"Warning: {words}")

    return Outcome(document=document, text=text)


def list_(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """List the workflows, what starts them and what ends them."""
    del invocation
    workflows = [_summary(one) for one in _workflows(args)]

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import facts

        for one in workflows:
            yield facts(one.items())

    return Outcome(document={"workflows": workflows}, text=text)


def draw(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Draw workflows: Mermaid to standard output, or a file for each."""
    from delta_outbox.railway import drawing

    del invocation
    if args.format != "mermaid" and args.to is None:
        raise WrongUsage(
            f"workflow draw: --format {args.format} needs a folder.",
            remedy="Add --to FOLDER; only Mermaid is printed.",
        )
    drawn = {one.name: drawing.draw(one) for one in _workflows(args)}
    files: list[str] = []
    if args.to is not None:
        args.to.mkdir(parents=True, exist_ok=True)
        for name, one in drawn.items():
            suffix = "mmd" if args.format == "mermaid" else args.format
            file = args.to / f"{name}.{suffix}"
            files.append(str(file))
            if args.format == "mermaid":
                file.write_text(drawing.mermaid(one), encoding="utf-8")
            else:
                from delta_outbox.railway.picture import save

                save(one, file)
    pictures = {name: drawing.mermaid(one) for name, one in drawn.items()}

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import sentence

        if args.to is None:
            yield from (sentence(picture) for picture in pictures.values())
        else:
            yield from (sentence(f"Drawn: {file}") for file in files)

    return Outcome(document={"files": files, "mermaid": pictures}, text=text)


def build(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Write what follows from the workflows; with --check only say what is stale."""
    from delta_outbox.railway.modules import project_folder
    from delta_outbox.railway.pages import page

    del invocation
    folder = project_folder(Path.cwd())
    wanted = {folder / PAGES / f"{one.name}.md": page(one) for one in _workflows(args)}
    stale = [file for file, text in wanted.items() if _text_of(file) != text]
    if not args.check:
        for file in stale:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(wanted[file], encoding="utf-8")
    names = [str(file.relative_to(folder)) for file in stale]
    verb = "Stale" if args.check else "Written"

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import sentence

        yield from (sentence(f"{verb}: {name}") for name in names)
        if not names:
            yield sentence("Everything is as the workflows say.")

    key = "stale" if args.check else "written"
    code = TO_LOOK_AT if args.check and names else 0
    return Outcome(document={key: names}, text=text, exit_code=code)


def new(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Ask what the third party can promise, and write a workflow and its test."""
    from delta_outbox.railway import scaffold
    from delta_outbox.railway.modules import project_folder

    category = args.category or _ask_category(invocation)
    concerns: dict[str, str] = {}
    compromise = args.compromise
    if category == "BlackBox":
        compromise = compromise or _ask(
            invocation, "When it may have happened?", list(scaffold.COMPROMISES), "--compromise"
        )
        concerns = _ask_concerns(args, invocation)
    third_party = args.third_party or _ask(
        invocation, "What is the third party called?", [], "--third-party"
    )
    answers = scaffold.Answers(
        name=args.name,
        category=category,
        third_party=third_party,
        compromise=compromise or "human",
        concerns=concerns,
    )
    folder = project_folder(Path.cwd())
    files = {folder / name: text for name, text in scaffold.files(answers).items()}
    there = [file.name for file in files if file.exists()]
    if there:
        raise WrongUsage(
            f"workflow new: {', '.join(there)} is there already in {folder}.",
            remedy="Choose another name; nothing was written.",
        )
    for file, content in files.items():
        file.write_text(content, encoding="utf-8")
    names = [file.name for file in files]

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import sentence

        yield from (sentence(f"Written: {name}") for name in names)
        yield sentence(f"Next: `python -m pytest {names[1]}`, then `outbox workflow check`.")
        yield sentence(f'Name the module in outbox.toml: [workflows] modules = ["{args.name}"].')

    return Outcome(document={"written": names}, text=text)


_COMMANDS: Final[Mapping[str, Callable[[argparse.Namespace, Invocation], Outcome]]] = {
    "new": new,
    "check": check,
    "list": list_,
    "draw": draw,
    "build": build,
}


def _workflows(args: argparse.Namespace) -> list[Workflow[Any]]:
    from delta_outbox.config import load_settings
    from delta_outbox.railway.modules import load, project_folder

    names = args.module or load_settings(home=_home(), path=args.config).workflows.modules
    if not names:
        raise BadSettings(
            "No module of workflows is named.",
            remedy='Add `[workflows] modules = ["..."]` to outbox.toml, or name modules here.',
        )
    return load(names, project_folder(Path.cwd()))


def _home() -> Path | None:
    from delta_outbox.errors import OutboxError
    from delta_outbox.home import find_home

    try:
        return find_home(create=False).root
    except OutboxError:
        return None  # none is needed


def _summary(one: Workflow[Any]) -> dict[str, Any]:
    from delta_outbox.railway import Event

    ends = {end.event_type for end in one.reachable(one.first) if isinstance(end, Event)}
    return {
        "name": one.name,
        "version": one.version,
        "starts_on": one.starts_on,
        "ends_with": sorted(ends),
        "tasks": [task.task_name() for task in one.tasks],
    }


def _text_of(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


# --- questions --------------------------------------------------------------------------------


def _ask(invocation: Invocation, question: str, choices: list[str], option: str) -> str:
    """Ask on standard error, so that standard output stays a document."""
    words = f" ({', '.join(choices)})" if choices else ""
    while True:
        print(f"{question}{words} ", end="", file=invocation.errors, flush=True)
        try:
            answer = input().strip()
        except EOFError:
            raise WrongUsage(
                f"workflow new: nobody answers '{question}'.",
                remedy=f"Answer it, or give {option}.",
            ) from None
        if answer and (not choices or answer in choices):
            return answer


def _ask_category(invocation: Invocation) -> str:
    from delta_outbox.railway.scaffold import CATEGORIES, QUESTIONS

    for key, question in QUESTIONS:
        if _ask(invocation, question, ["yes", "no"], "--category") == "yes":
            return CATEGORIES[key]
    return CATEGORIES[""]


def _ask_concerns(args: argparse.Namespace, invocation: Invocation) -> dict[str, str]:
    from delta_outbox.railway.scaffold import CHECKLIST

    concerns = {}
    for key, (question, kind) in CHECKLIST.items():
        given = getattr(args, key)
        concerns[key] = given or _ask(invocation, question, [str(one) for one in kind], f"--{key}")
    for key, question in (("decided_by", "Who decides?"), ("why", "Why, in a sentence?")):
        option = f"--{key.replace('_', '-')}"
        concerns[key] = getattr(args, key) or _ask(invocation, question, [], option)
    return concerns

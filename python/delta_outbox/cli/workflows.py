"""`outbox workflow new | check | list | draw | build | explain`: no Spark, no outbox needed; and
what instances.py has.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.cli import instances
from delta_outbox.cli.outcome import TO_LOOK_AT, Invocation, Outcome
from delta_outbox.core.errors import BadSettings, WrongUsage

if TYPE_CHECKING:
    from rich.console import RenderableType

    from delta_outbox.core.settings import Settings
    from delta_outbox.railway import Workflow


def workflow(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Run one of the commands for workflows."""
    return _COMMANDS[args.action](args, invocation)


def check(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Import the workflows and say what is wrong with them."""
    from delta_outbox.railway.generated_files import is_ours, same_versions
    from delta_outbox.railway.modules import load, warnings
    from delta_outbox.railway.providers import check_providers, has_provider, uncalled

    del invocation
    settings = cache(partial(_settings, args))
    modules = _modules(args, settings)
    workflows = load(modules, _folder())
    unset = check_providers(modules, lambda: settings().of_third_parties)
    warned = [*map(str, warnings(workflows)), *unset]
    if not args.module:
        warned += uncalled(workflows, settings().of_third_parties)
        if settings().of_third_parties and not has_provider(modules):
            warned.append(
                "The settings have tables of third parties, and no module a function `provide` "
                "that takes them."
            )
    files = _files(args, workflows)
    warned += same_versions(files)
    built = any(map(is_ours, files))
    behind = _Behind(files, _folder()) if built else None
    document = {
        "workflows": [_summary(one) for one in workflows],
        "warnings": warned,
        "stale": behind.names if behind else [],
    }

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import sentence

        for one in workflows:
            yield sentence(f"{one.name}: {len(one.tasks)} tasks, nothing wrong.")
        for words in warned:
            yield sentence(f"Warning: {words}")
        for words in behind.words("Stale") if behind else ():
            yield sentence(words)
        if behind and behind.names:
            yield sentence("`outbox workflow build` brings them up to date.")

    code = TO_LOOK_AT if document["stale"] else 0
    return Outcome(document=document, text=text, exit_code=code)


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
                from delta_outbox.railway.graphviz_files import save

                save(one, file)
    texts = {name: drawing.mermaid(one) for name, one in drawn.items()}

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import sentence

        if args.to is None:
            yield from (sentence(one) for one in texts.values())
        else:
            yield from (sentence(f"Drawn: {file}") for file in files)

    return Outcome(document={"files": files, "mermaid": texts}, text=text)


def build(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Write what follows from the workflows; with --check only say what is stale."""
    from delta_outbox.railway.generated_files import removed_rows, same_versions, write

    del invocation
    files = _files(args, _workflows(args))
    behind = _Behind(files, _folder())
    removed, warned = removed_rows(files), same_versions(files)
    if not args.check:
        write(files)

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import sentence

        yield from map(sentence, behind.words("Stale" if args.check else "Written"))
        for name, rows in removed.items() if not args.check else ():
            yield sentence(f"Removed: {rows} rows of {name}, which has no class any more.")
        yield from (sentence(f"Warning: {words}") for words in warned)
        if not behind.names:
            yield sentence("Everything is as the workflows say.")

    if args.check:
        code = TO_LOOK_AT if behind.names else 0
        return Outcome(document={"stale": behind.names}, text=text, exit_code=code)
    document = {"written": behind.names, "removed_rows": removed, "warnings": warned}
    return Outcome(document=document, text=text)


class _Behind:
    """The generated files that are not as the workflows say, by name and in words."""

    def __init__(self, files: Mapping[Path, str | None], folder: Path) -> None:
        from delta_outbox.railway.generated_files import stale, stale_rows

        found = stale(files)
        self.names = [str(file.relative_to(folder)) for file in found]
        self._rows = [", ".join(stale_rows(file, files[file])) for file in found]
        self._gone = [files[file] is None for file in found]

    def words(self, verb: str) -> Iterator[str]:
        """Yield a sentence per file, for a stale seed with whose rows they are.

        Args:
            verb: what is said of a file.
        """
        for name, rows, gone in zip(self.names, self._rows, self._gone, strict=True):
            of = " (no workflow has this name)" if gone else f" ({rows})" if rows else ""
            if verb == "Stale":
                yield f"{verb}: {name}{of}"
            else:
                yield f"{'Removed' if gone else verb}: {name}"


def new(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Ask what the third party can promise, and write a workflow and its test."""
    from delta_outbox.railway import scaffold

    third_party = args.third_party or _ask(
        invocation, "Who is it that acts, or answers? A name such as bank:", [], "--third-party"
    )
    category = args.category or _ask_category(invocation)
    concerns: dict[str, str] = {}
    compromise = args.compromise
    if category == "BlackBox":
        compromise = compromise or _ask(
            invocation,
            "What follows when it may have happened?",
            list(scaffold.COMPROMISES),
            "--compromise",
        )
        concerns = _ask_concerns(args, invocation)
    answers = scaffold.Answers(
        name=args.name,
        category=category,
        third_party=third_party,
        compromise=compromise or "human",
        concerns=concerns,
    )
    folder = _folder()
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


def explain(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Say why there is a rule, and what to do."""
    from difflib import get_close_matches

    from delta_outbox.railway.explanations import EXPLANATIONS

    del invocation
    if args.rule not in EXPLANATIONS:
        near = get_close_matches(args.rule, EXPLANATIONS, n=3)
        raise WrongUsage(
            f"workflow explain: there is no rule '{args.rule}'.",
            remedy=f"Did you mean {' or '.join(near)}?"
            if near
            else "The rules stand in brackets in what `outbox workflow check` says.",
        )
    why, remedy = EXPLANATIONS[args.rule]

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import sentence

        yield sentence(f"{why} {remedy}")

    return Outcome(document={"rule": args.rule, "why": why, "remedy": remedy}, text=text)


_COMMANDS: Final[Mapping[str, Callable[[argparse.Namespace, Invocation], Outcome]]] = {
    "new": new,
    "check": check,
    "list": list_,
    "draw": draw,
    "build": build,
    "explain": explain,
    "instances": instances.instances,
    "show": instances.show,
    "cancel": instances.cancel,
    "extend": instances.extend,
    "accept-late": instances.accept_late,
    "migrate": instances.migrate,
}


def _workflows(args: argparse.Namespace) -> list[Workflow[Any]]:
    from delta_outbox.railway.modules import load

    return load(_modules(args, partial(_settings, args)), _folder())


def _modules(args: argparse.Namespace, settings: Callable[[], Settings]) -> Sequence[str]:
    names: Sequence[str] = args.module or settings().workflows.modules
    if not names:
        source = settings().source
        read = f"{source} has none" if source else f"there is no outbox.toml in {Path.cwd()}"
        raise BadSettings(
            f"No module of workflows is named: {read}.",
            remedy='Add `[workflows] modules = ["..."]` to outbox.toml, or name modules here.',
        )
    return names


def _settings(args: argparse.Namespace) -> Settings:
    from delta_outbox.runtime.settings_file import load_settings

    return load_settings(home=_home(), path=args.config)


def _files(args: argparse.Namespace, workflows: Sequence[Workflow[Any]]) -> dict[Path, str | None]:
    from delta_outbox.railway.generated_files import files_of

    return files_of(workflows, _folder(), whole=not args.module)


def _folder() -> Path:
    from delta_outbox.railway.modules import project_folder

    return project_folder(Path.cwd())


def _home() -> Path | None:
    from delta_outbox.core.errors import OutboxError
    from delta_outbox.runtime.home import find_home

    try:
        return find_home(create=False).root
    except OutboxError:
        return None  # none is needed


def _summary(one: Workflow[Any]) -> dict[str, Any]:
    return {
        "name": one.name,
        "version": one.version,
        "starts_on": one.starts_on,
        "ends_with": one.ends,
        "tasks": [task.task_name() for task in one.tasks],
    }


# --- questions --------------------------------------------------------------------------------


YES_OR_NO: Final = ["yes", "no"]


def _ask(invocation: Invocation, question: str, choices: list[str], option: str) -> str:
    """Ask on standard error, so that standard output stays a document.

    The beginning of a choice is enough where it fits one of them, such as `y`.
    """
    words = f" ({', '.join(choices)})" if choices else ""
    if choices == YES_OR_NO:
        words = " (y/n)"
    while True:
        print(f"{question}{words} ", end="", file=invocation.errors, flush=True)
        try:
            answer = input().strip()
        except EOFError:
            raise WrongUsage(
                f"workflow new: nobody answers '{question}'.",
                remedy=f"Answer it, or give {option}.",
            ) from None
        if answer and not choices:
            return answer
        fits = [one for one in choices if answer and one.startswith(answer.lower())]
        if answer.lower() in fits or len(fits) == 1:
            return answer.lower() if answer.lower() in fits else fits[0]
        if answer:
            asked = ", ".join(fits or choices)
            print(f"'{answer}' is not clear: write {asked}.", file=invocation.errors)


def _ask_category(invocation: Invocation) -> str:
    from delta_outbox.railway.scaffold import CATEGORIES, QUESTIONS

    for key, question in QUESTIONS:
        if _ask(invocation, question, YES_OR_NO, "--category") == "yes":
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

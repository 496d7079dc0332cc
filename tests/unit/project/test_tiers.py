"""Which tests a run holds, and what its end says."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from scripts import landing
from scripts.run_tests import REASON_HEAD, REASON_TAIL, reason
from scripts.tiers.process import LEAVE_LIMIT, Process
from scripts.tiers.suites import FOLDERS, PARTS, TESTS, Tier, may_hold, part_of, suites

REPOSITORY = Path(__file__).resolve().parents[3]
REST = "pytest.mark." + "rest"  # in one word it would count for this file
FILES = sorted(
    file
    for file in TESTS.rglob("test_*.py")
    if not file.is_relative_to(TESTS / "integration" / "long")
)


def files_of(tier: Tier, part: int | None = None) -> Counter[Path]:
    """Return how often each file is in the suites of a tier."""
    return Counter(
        file for folder in FOLDERS for suite in suites(folder, tier, part) for file in suite.files
    )


def test_all_is_all() -> None:
    """`make test-all` runs each file of tests once, but for those of `make soak`."""
    assert Counter(FILES) == files_of(Tier.ALL)


def test_each_part_of_the_rest_is_some_of_it() -> None:
    """As many landings in a row as there are parts try each file of the rest once."""
    parts = [files_of(Tier.REST, part) for part in range(1, len(PARTS) + 1)]
    assert all(parts)
    assert files_of(Tier.REST) == sum(parts, Counter())
    assert set(range(1, len(PARTS) + 1)) == {landing.part_of(n) for n in range(len(PARTS))}


def test_what_is_not_in_make_test_is_in_the_rest() -> None:
    """A file that `make test` leaves out as a whole is one of the rest."""
    assert {*FILES} - {*files_of(Tier.FIRST)} <= {*files_of(Tier.REST)}


@pytest.mark.parametrize(
    ("text", "first", "rest"),
    [
        ("def test_a(): ...", True, False),
        (f"pytestmark = {REST}", False, True),
        (f"pytestmark = [pytest.mark.local, {REST}]", False, True),
        (f"@{REST}\ndef test_a(): ...", True, True),
    ],
)
def test_a_file_tells_what_it_holds(text: str, first: bool, rest: bool, tmp_path: Path) -> None:
    """No process is started for files that can hold no test of a tier."""
    file = tmp_path / "test_a.py"
    file.write_text(text)
    assert (first, rest, True) == tuple(
        may_hold(file, tier) for tier in (Tier.FIRST, Tier.REST, Tier.ALL)
    )


def test_what_a_mutant_of_units_names_is_in_make_test() -> None:
    """A seeded fault that a unit test notices is noticed by `make test`: the tests that must notice
    it carry no mark.
    """
    for patch in sorted((TESTS / "mutants").glob("*.patch")):
        _, check, *_ = patch.read_text(encoding="utf-8").splitlines()
        for named in check.removeprefix("check: ").split():
            file, _, test = named.partition("::")
            path = REPOSITORY / file
            is_of_units = not path.is_relative_to(TESTS / "integration")
            assert not is_of_units or may_hold(path, Tier.FIRST), named
            marks = {
                function.name: [ast.unparse(one) for one in function.decorator_list]
                for function in ast.parse(path.read_text(encoding="utf-8")).body
                if isinstance(function, ast.FunctionDef)
            }
            its = marks[test.partition("[")[0]] if test else []
            assert not is_of_units or REST not in its, named


def test_no_file_is_in_two_parts_by_chance() -> None:
    """The last part takes what fits no other, so a new file is in one."""
    assert len(PARTS) == part_of(TESTS / "new_folder" / "test_new.py")


def given_process(
    folder: Path,
    file: Path,
    *options: str,
    tier: Tier = Tier.ALL,
    leave_seconds: float = LEAVE_LIMIT,
) -> Process:
    """Return a process that runs a file which is not of this repository, with its settings."""
    return Process(
        name="given",
        files=[file],
        tier=tier,
        options=[f"-c{REPOSITORY / 'pyproject.toml'}", "-ptests.conftest", *options],
        log=folder / "given.log",
        leave_seconds=leave_seconds,
    )


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., Process]:
    """Return a function that runs pytest on a file with a given text."""

    def run(text: str, *options: str, tier: Tier = Tier.ALL) -> Process:
        file = tmp_path / "test_given.py"
        file.write_text(text)
        made = given_process(tmp_path, file, *options, tier=tier)
        made.forget()
        made.run()
        return made

    return run


SEVERAL = f"""
import pytest

def test_right(): assert True

def test_wrong(): assert 1 == 2, "what is wrong"

def test_left_out(): pytest.skip("no")

@{REST}
def test_of_the_rest(): assert True
"""


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "shared"])
def test_a_process_records_each_test(process: Callable[..., Process], options: list[str]) -> None:
    """How many there are, how each ended and why, also where two workers share them."""
    expected, ended = process(SEVERAL, *options).recorded()
    assert 4 == expected
    assert {
        "test_right": "passed",
        "test_wrong": "failed",
        "test_left_out": "skipped",
        "test_of_the_rest": "passed",
    } == {test.name.partition("::")[2]: test.outcome for test in ended}
    (said,) = (test.said for test in ended if test.outcome == "failed")
    assert "what is wrong" in said
    assert all(test.seconds >= 0 for test in ended)


def test_a_tier_is_a_part_of_a_file(process: Callable[..., Process]) -> None:
    """Of one file, `make test` runs what is not marked, and the rest what is."""
    for tier, count in ((Tier.FIRST, 3), (Tier.REST, 1)):
        assert count == len(process(SEVERAL, tier=tier).recorded()[1])


def test_why_a_test_failed_stands_at_the_end(process: Callable[..., Process]) -> None:
    """CI keeps the last lines: they say what was wrong, and of a long text its begin and end."""
    text = "def test_a():\n    assert False, 'seed 7:' + ''.join(f'\\nline {n}' for n in range(99))"
    (test,) = process(text).recorded()[1]
    told = reason(test.said)
    assert "AssertionError: seed 7:" in told[0]
    assert "line 98" in " ".join(told[-3:])
    assert len(told) == REASON_HEAD + 1 + REASON_TAIL


@pytest.mark.parametrize(
    ("text", "tier", "complaint"),
    [
        ("def test_a(): assert True", Tier.ALL, None),
        ("def test_a(): assert False", Tier.ALL, None),  # the test itself says so
        ("def test_a(): assert True", Tier.REST, None),  # none of the rest is here
        ("import nothing_of_this_name", Tier.ALL, "pytest ended with 2"),
        ("import os\ndef test_a(): os._exit(0)", Tier.ALL, "1 tests did not run"),
        ("import os\ndef test_a(): os._exit(3)", Tier.ALL, "pytest ended with 3"),
    ],
)
def test_a_process_that_did_not_run_complains(
    process: Callable[..., Process], text: str, tier: Tier, complaint: str | None
) -> None:
    """Nothing passes that did not run: a file that is broken, a process that ends by itself."""
    said = process(text, tier=tier).complaint()
    assert (said is None) == (complaint is None)
    assert complaint is None or complaint in str(said)


STUBBORN = """
import os, pathlib, signal, sys
said = pathlib.Path(sys.argv[1])
said.write_text(f"{os.getpid()}\\n")
# A handler may wait until the end of a sleep that begins just as the signal comes.
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
said.open("a").write("there\\n")
while True:
    signal.sigwait([signal.SIGTERM])
    said.open("a").write("told\\n")
"""
STARTS_IT = """
import subprocess, sys
def test_stubborn():
    subprocess.run([sys.executable, "-c", {code!r}, {said!r}], start_new_session={own})
"""


@pytest.mark.parametrize("own", [False, True], ids=["of its session", "of a session of its own"])
def test_what_a_stopped_process_has_started_is_gone(own: bool, tmp_path: Path) -> None:
    """When a run of the tests is stopped, all that they have started is told once to end, and is
    gone when the run returns, also what does not heed it.
    """
    said, file = tmp_path / "said", tmp_path / "test_given.py"
    file.write_text(STARTS_IT.format(code=STUBBORN, said=str(said), own=own))
    made = given_process(tmp_path, file, leave_seconds=2.0)
    running = threading.Thread(target=made.run)
    running.start()
    try:
        while not (said.exists() and "there" in said.read_text()):
            assert running.is_alive(), made.log.read_text()
            time.sleep(0.01)
        number, _ = said.read_text().split()
        stubborn = psutil.Process(int(number))
    finally:
        made.stop()
        running.join()
    assert not stubborn.is_running() or psutil.STATUS_ZOMBIE == stubborn.status()
    assert [number, "there", "told"] == said.read_text().split()
    assert made.exit_code not in (None, 0)


@pytest.fixture
def landed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], str]:
    """Return a function that commits the number of a landing, in a repository of its own."""
    (tmp_path / ".ci").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(landing.BASE, raising=False)

    def git(*words: str, **environment: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", *words],
            cwd=tmp_path,
            env={"PATH": str(Path("/usr/bin")), **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    git("init", "--quiet")

    def commit(at: str, number: int) -> str:
        (tmp_path / ".ci" / "landing").write_text(f"{number}\n")
        git("add", ".")
        date = f"2026-01-01T{at}:00Z"
        words = ("commit", "--quiet", "--allow-empty", "--message", "x")
        git(*words, GIT_COMMITTER_DATE=date, GIT_AUTHOR_DATE=date)
        return git("rev-parse", "HEAD")

    return commit


def test_each_landing_raises_the_number(
    landed: Callable[[str, int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A landing that leaves the number as it was is told what to write."""
    first = landed("01:00", 7)
    assert landing.check() is None  # nothing was before
    landed("09:00", 7)
    assert "write 8" in str(landing.check())
    landed("09:30", 8)
    assert landing.check() is None
    second = landed("20:00", 8)
    assert "write 9" in str(landing.check())
    monkeypatch.setenv(landing.BASE, first)
    assert landing.check() is None
    monkeypatch.setenv(landing.BASE, second)
    assert "write 9" in str(landing.check())


def test_a_part_is_said_on_the_command_line() -> None:
    """A part that does not exist is refused with those that do."""
    done = subprocess.run(
        [sys.executable, "scripts/run_tests.py", "--part", "99"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 2 == done.returncode
    assert f"choose from {', '.join(map(str, range(1, len(PARTS) + 1)))}" in done.stderr

"""The commands for workflows, from a project's folder, without an outbox and without Spark."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from delta_outbox.cli.main import main

ORDERS = Path(__file__).resolve().parents[2] / "examples" / "orders"
MODULES = ("order_creation", "order_compensation")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a project with the workflows of the example, and work below it."""
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text((ORDERS / f"{name}.py").read_text())
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path / "models")
    monkeypatch.delenv("OUTBOX_CONFIG", raising=False)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != str(ORDERS)])
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setenv("OUTBOX_CONFIG", str(tmp_path / "outbox.toml"))
    (tmp_path / "outbox.toml").write_text(
        '[workflows]\nmodules = ["order_creation", "order_compensation"]\n'
    )
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict]:
    """Run a command, and return its exit code and its document."""
    code = main(["workflow", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_check_finds_the_modules_of_the_settings(project: Path, capsys) -> None:
    """Modules are found from the folder of dbt_project.yml, wherever the command is called."""
    code, document = run(capsys, "check")
    assert 0 == code
    assert ["order_compensation", "order_creation"] == [
        one["name"] for one in document["workflows"]
    ]
    assert [] == document["warnings"]
    assert sys.modules["order_creation"].__file__ == str(project / "order_creation.py")


def test_check_says_what_is_wrong(project: Path, capsys) -> None:
    """A workflow that breaks a rule ends with exit code 2, the task, the rule and the remedy."""
    file = project / "order_creation.py"
    file.write_text(file.read_text().replace("    expires = timedelta(hours=2)\n", ""))
    code, document = run(capsys, "check", "order_creation")
    assert (2, "BAD_WORKFLOW") == (code, document["error"]["code"])
    assert document["error"]["message"] == (
        "order_creation.reserve_stock: [expires_missing] it does not say when it expires. "
        "Write `expires = timedelta(...)`, or `Never(why=...)`."
    )


@pytest.mark.parametrize(
    ("module", "code", "says"),
    [
        ("nowhere", "BAD_WORKFLOW_MODULE", "ModuleNotFoundError: No module named 'nowhere'"),
        ("json", "BAD_WORKFLOW_MODULE", "The module json holds no workflow."),
        ("broken", "BAD_WORKFLOW_MODULE", "broken cannot be imported: ZeroDivisionError"),
    ],
)
def test_a_bad_module_is_named(project: Path, capsys, module: str, code: str, says: str) -> None:
    """A module that is missing, holds no workflow or fails is named with what went wrong."""
    (project / "broken.py").write_text("1 / 0\n")
    exit_code, document = run(capsys, "check", module)
    assert (2, code) == (exit_code, document["error"]["code"])
    assert says in document["error"]["message"]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("\n1 / 0\n", 2),
        ("import nowhere_at_all\n", 1),
        ("\n\ndef f(:\n", 3),
        ("import json\n\njson.loads('{')\n", 3),
        ("from delta_outbox.railway import Wrkflow\n", 1),
    ],
)
def test_a_module_that_fails_is_told_with_file_and_line(
    project: Path, capsys, code: str, line: int
) -> None:
    """A module that was found and fails inside is to be mended where it fails."""
    (project / "fails.py").write_text(code)
    exit_code, document = run(capsys, "check", "fails")
    where = f"{project / 'fails.py'}, line {line}"
    assert (2, "BAD_WORKFLOW_MODULE") == (exit_code, document["error"]["code"])
    assert where in document["error"]["message"]
    assert f"The module was found and fails: mend {where}." == document["error"]["remedy"]


def test_without_modules_the_remedy_is_said(project: Path, capsys) -> None:
    """Whoever has named no module is told where to name one."""
    (project / "outbox.toml").write_text("")
    code, document = run(capsys, "list")
    assert (2, "BAD_SETTINGS") == (code, document["error"]["code"])
    assert "[workflows] modules" in document["error"]["remedy"]


def test_list_shows_what_starts_and_ends_a_workflow(project: Path, capsys) -> None:
    """Each workflow is listed with its events and its tasks."""
    code, document = run(capsys, "list")
    assert 0 == code
    creation = document["workflows"][1]
    assert ("order.requested", ["order.cancelled", "order.confirmed"]) == (
        creation["starts_on"],
        creation["ends_with"],
    )
    assert 10 == len(creation["tasks"])


def test_build_writes_pages_and_names_stale_ones(project: Path, capsys) -> None:
    """A page per workflow is written; it is the same each time; a stale one is named, exit 1."""
    pages = ["docs/workflows/order_compensation.md", "docs/workflows/order_creation.md"]
    assert (1, {"stale": pages}) == run(capsys, "build", "--check")
    assert not (project / "docs").exists()
    assert (0, {"written": pages}) == run(capsys, "build")
    assert (0, {"stale": []}) == run(capsys, "build", "--check")
    assert (0, {"written": []}) == run(capsys, "build")
    page = project / pages[1]
    page.write_text(page.read_text() + "by hand\n")
    assert (1, {"stale": pages[1:]}) == run(capsys, "build", "--check")


def test_draw_prints_mermaid(project: Path, capsys) -> None:
    """Without a folder the pictures go to standard output as Mermaid, one after the other."""
    assert 0 == main(["workflow", "draw", "order_creation"])
    printed = capsys.readouterr().out
    assert printed.startswith("flowchart TD\n")
    assert '    reserve_stock -->|"not enough"| continue_without_missing_product\n' in printed


@pytest.mark.parametrize("kind", ["mermaid", "svg", "png"])
def test_draw_writes_a_file_for_each(project: Path, capsys, kind: str) -> None:
    """Each workflow has a file of its own in the folder that is named."""
    code, document = run(capsys, "draw", "--format", kind, "--to", str(project / "pictures"))
    suffix = "mmd" if kind == "mermaid" else kind
    files = [str(project / "pictures" / f"{name}.{suffix}") for name in sorted(MODULES)]
    assert (0, files) == (code, document["files"])
    starts = {"mmd": b"flowchart TD", "svg": b"<?xml", "png": b"\x89PNG"}
    assert all(Path(file).read_bytes().startswith(starts[suffix]) for file in files)


def test_a_picture_needs_a_folder(project: Path, capsys) -> None:
    """SVG and PNG are not printed."""
    code, document = run(capsys, "draw", "--format", "svg")
    assert (2, "WRONG_USAGE") == (code, document["error"]["code"])


def test_new_overwrites_nothing(project: Path, capsys) -> None:
    """A name that is taken is refused, and the file stays as it is."""
    (project / "test_pay.py").write_text("mine")
    words = ("new", "pay", "--category", "Idempotent", "--third-party", "bank")
    code, document = run(capsys, *words)
    assert (2, "WRONG_USAGE") == (code, document["error"]["code"])
    assert "test_pay.py is there already" in document["error"]["message"]
    assert "mine" == (project / "test_pay.py").read_text()
    assert not (project / "pay.py").exists()


def test_new_asks_what_the_third_party_promises(project: Path, capsys, monkeypatch) -> None:
    """Three questions decide the category; an opaque task asks for the whole checklist."""
    answers = ["no", "no", "no", "human", "traceable", "must_happen", "customer", "legal"]
    answers += ["head of support", "a letter sent twice is a lawsuit", "post_office"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(answers) + "\n"))
    assert 0 == main(["workflow", "new", "send_letter"])
    told = capsys.readouterr()
    assert "Does the third party take a key" in told.err
    assert "Written: send_letter.py" in told.out
    module = (project / "send_letter.py").read_text()
    assert "class SendLetter(BlackBox[Start, SendLetterOutcome]):" in module
    assert "decided_by='head of support'" in module
    assert "Risk.LEGAL" in module


def test_new_without_answers_says_which_option(project: Path, capsys, monkeypatch) -> None:
    """Where nobody can answer, the option is named."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    code, document = run(capsys, "new", "send_letter")
    assert (2, "WRONG_USAGE") == (code, document["error"]["code"])
    assert "--category" in document["error"]["remedy"]


def test_a_bad_name_is_refused(project: Path, capsys) -> None:
    """A name that no row could carry is refused before anything is written."""
    words = ("new", "Send-Letter", "--category", "Idempotent", "--third-party", "bank")
    code, document = run(capsys, *words)
    assert (2, "BAD_WORKFLOW") == (code, document["error"]["code"])

"""The commands for workflows, from a project's folder, without an outbox and without Spark."""

from __future__ import annotations

import importlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.railway.workflow import graph

from delta_outbox.cli.main import main
from delta_outbox.railway.rows import from_csv, rows_of, to_csv

ORDERS = Path(__file__).resolve().parents[3] / "examples" / "orders"
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


yaml: Any = importlib.import_module("yaml")  # dbt's; it has no types


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
        ("from order_creation import *\n\nStock.ENOGH\n", 3),
        ("from order_creation import *\n\n\n{route(MakeOrder, {})}\n", 4),
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


def test_what_is_looked_for_is_named(project: Path, capsys) -> None:
    """Who misspells an outcome reads its members; who misspells a module, where it was sought."""
    (project / "fails.py").write_text("from order_creation import Stock\n\nStock.ENOGH\n")
    _, document = run(capsys, "check", "fails")
    assert "Stock has ENOUGH, NOT_ENOUGH" in document["error"]["message"]
    _, document = run(capsys, "check", "nowhere")
    assert document["error"]["message"].endswith(
        f"Looked for in {project}, and among what is installed."
    )


def test_without_modules_the_remedy_is_said(project: Path, capsys) -> None:
    """Whoever has named no module is told where to name one."""
    (project / "outbox.toml").write_text("")
    code, document = run(capsys, "list")
    assert (2, "BAD_SETTINGS") == (code, document["error"]["code"])
    assert f"{project / 'outbox.toml'} has none" in document["error"]["message"]
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


def test_build_writes_pages_and_names_stale_ones(project: Path, capsys, monkeypatch) -> None:
    """A page per workflow is written; it is the same each time; a stale one is named, exit 1."""
    pages = ["docs/workflows/order_compensation.md", "docs/workflows/order_creation.md"]
    (project / "dbt_project.yml").unlink()
    monkeypatch.chdir(project)
    assert (1, {"stale": pages}) == run(capsys, "build", "--check")
    assert not (project / "docs").exists()
    assert (0, {"written": pages, "removed_rows": {}, "warnings": []}) == run(capsys, "build")
    assert (0, {"stale": []}) == run(capsys, "build", "--check")
    assert (0, {"written": [], "removed_rows": {}, "warnings": []}) == run(capsys, "build")
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
    """Three questions decide the category; a black box asks for the whole checklist."""
    answers = ["post_office", "no", "N", "n", "perhaps", "human", "trace", "must_happen", "c"]
    answers += ["legal", "head of support", "a letter sent twice is a lawsuit"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(answers) + "\n"))
    assert 0 == main(["workflow", "new", "send_letter"])
    told = capsys.readouterr()
    asked = re.findall(r"Do we wait|Does the third party|Can it be asked", told.err)
    assert ["Do we wait", "Does the third party", "Can it be asked"] == asked
    assert "'perhaps' is not clear: write at_most_once, at_least_once, up_to, human." in told.err
    assert "Written: send_letter.py" in told.out
    module = (project / "send_letter.py").read_text()
    assert "class SendLetter(BlackBox[Start, SendLetterOutcome]):" in module
    assert 'decided_by="head of support"' in module
    assert "visibility=Visibility.TRACEABLE" in module
    assert "Risk.LEGAL" in module


def test_new_without_answers_says_which_option(project: Path, capsys, monkeypatch) -> None:
    """Where nobody can answer, the option is named."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    code, document = run(capsys, "new", "send_letter")
    assert (2, "WRONG_USAGE") == (code, document["error"]["code"])
    assert "--third-party" in document["error"]["remedy"]


def test_a_bad_name_is_refused(project: Path, capsys) -> None:
    """A name that no row could carry is refused before anything is written."""
    words = ("new", "Send-Letter", "--category", "Idempotent", "--third-party", "bank")
    code, document = run(capsys, *words)
    assert (2, "BAD_WORKFLOW") == (code, document["error"]["code"])


ROWS = [f"seeds/railway_{name}.csv" for name in ("workflows", "tasks", "routes", "contracts")]
INSTANCES = "models/instances_of_order_compensation.sql"
BESIDE = [
    *ROWS,
    "seeds/railway.yml",
    "models/railway_in_force.sql",
    INSTANCES,
    "models/instances_of_order_creation.sql",
    "models/railway_in_force.yml",
]


def test_build_writes_the_rows_of_a_dbt_project(project: Path, capsys) -> None:
    """In a dbt project the rows of all workflows are written, their model and their exposures."""
    assert 0 == run(capsys, "build")[0]
    lines = (project / ROWS[0]).read_text(encoding="utf-8").splitlines()
    assert ["workflow", "order_compensation", "order_creation"] == [
        line.split(",")[0] for line in lines
    ]
    exposures = yaml.safe_load((project / BESIDE[-1]).read_text(encoding="utf-8"))["exposures"]
    assert ["workflow_order_compensation", "workflow_order_creation"] == [
        one["name"] for one in exposures
    ]
    seeds = yaml.safe_load((project / "seeds/railway.yml").read_text(encoding="utf-8"))["seeds"]
    assert [Path(name).stem for name in ROWS] == [one["name"] for one in seeds]
    written = {name: (project / name).read_bytes() for name in BESIDE}
    for name in BESIDE:
        (project / name).unlink()
    assert 0 == run(capsys, "build")[0]
    assert written == {name: (project / name).read_bytes() for name in BESIDE}


def test_a_model_shows_the_instances_of_each_workflow(project: Path, capsys) -> None:
    """It has a column for each task, also of rows by hand, none of them called like another one;
    a model of somebody else that is called so is not overwritten.
    """
    by_hand = written_by_hand(project)
    tasks = project / ROWS[1]
    first = by_hand["railway_tasks"][0]["task"]
    tasks.write_text(re.sub(rf"\b{first}\b", "state", tasks.read_text("utf-8")), "utf-8")
    assert 0 == run(capsys, "build")[0]
    text = (project / "models/instances_of_shipping.sql").read_text(encoding="utf-8")
    assert '    "state": "state_outcome"' in text
    models = yaml.safe_load((project / BESIDE[-1]).read_text(encoding="utf-8"))["models"]
    columns = {one["name"]: [each["name"] for each in one.get("columns", ())] for one in models}
    described = columns["instances_of_shipping"]
    assert {"instance", "state", "exit", "state_outcome"} <= set(described)
    assert len(set(described)) == len(described)
    orders = columns["instances_of_order_creation"]
    assert ["make_order", "reserve_stock"] == orders[9:11]
    (project / INSTANCES).write_text("select 1\n")
    code, document = run(capsys, "build")
    assert (2, True) == (code, INSTANCES in document["error"]["message"])
    assert "select 1\n" == (project / INSTANCES).read_text()


def test_check_names_stale_rows(project: Path, capsys) -> None:
    """What no longer follows from the classes is named, with whose row it is; exit 1."""
    assert (0, []) == stale(capsys)  # nothing was built
    run(capsys, "build")
    assert (0, []) == stale(capsys)
    tasks = project / ROWS[1]
    tasks.write_text(tasks.read_text(encoding="utf-8").replace(",7200,", ",3600,", 1))
    (project / BESIDE[-1]).unlink()
    assert (1, [ROWS[1], BESIDE[-1]]) == stale(capsys)
    assert 1 == main(["workflow", "check"])
    told = " ".join(capsys.readouterr().out.split())
    assert f"Stale: {ROWS[1]} (order_creation.reserve_stock)" in told
    assert 0 == run(capsys, "build")[0]
    assert (0, []) == stale(capsys)


def test_routes_that_change_without_their_version_are_warned_of(project: Path, capsys) -> None:
    """A route that has changed while its version has not is warned of until it is built."""
    run(capsys, "build")
    routes = project / ROWS[2]
    text = routes.read_text(encoding="utf-8")
    routes.write_text(text.replace(",order.cancelled", ",order.confirmed", 1), encoding="utf-8")
    for command, expected in (("check", 1), ("build", 1), ("check", 0)):
        warnings = run(capsys, command)[1]["warnings"]
        assert expected == len(warnings)
        assert all(
            "its routes have changed, and its version is 1 as before" in one for one in warnings
        )


def stale(capsys) -> tuple[int, list[str]]:
    """Return the exit code of `check`, and what it says is stale."""
    code, document = run(capsys, "check")
    return code, document["stale"]


def test_a_workflow_that_is_gone_takes_its_page_and_its_rows_along(project: Path, capsys) -> None:
    """What was written of a workflow that is no longer there is stale, and removed by `build`."""
    run(capsys, "build")
    (project / "outbox.toml").write_text('[workflows]\nmodules = ["order_creation"]\n')
    (project / "docs" / "workflows" / "notes.md").write_text("mine\n")
    page = "docs/workflows/order_compensation.md"
    code, names = stale(capsys)
    assert 1 == code
    same = {"seeds/railway.yml", "models/railway_in_force.sql", BESIDE[7], ROWS[3]}
    assert {page, *BESIDE} - same == set(names)
    assert 0 == main(["workflow", "build"])
    told = " ".join(capsys.readouterr().out.split())
    assert f"Removed: {page}" in told
    assert "rows of order_compensation, which has no class any more." in told
    assert not (project / page).exists()
    assert not (project / INSTANCES).exists()
    assert "order_compensation" not in (project / ROWS[1]).read_text(encoding="utf-8")
    assert (project / "docs" / "workflows" / "notes.md").exists()


def test_rows_that_were_written_by_hand_stay(project: Path, capsys) -> None:
    """A workflow without a hash has no classes: `build` leaves its rows as they are."""
    by_hand = written_by_hand(project)
    assert 0 == run(capsys, "build")[0]
    for seed, rows in by_hand.items():
        found = from_csv((project / "seeds" / f"{seed}.csv").read_text(encoding="utf-8"))
        assert rows == [row for row in found if row["workflow"] == "shipping"]
        assert seed == "railway_contracts" or len(found) > len(rows)
    assert (0, []) == stale(capsys)


def written_by_hand(project: Path) -> dict[str, list[dict[str, str]]]:
    """Write rows of a workflow without a hash, and return them."""
    by_hand = rows_of(graph())
    by_hand["railway_workflows"][0]["hash"] = ""
    (project / "seeds").mkdir()
    for seed, rows in by_hand.items():
        (project / "seeds" / f"{seed}.csv").write_text(to_csv(seed, rows), encoding="utf-8")
    return by_hand


def test_rows_by_hand_stay_whose_workflow_is_misspelt(project: Path, capsys) -> None:
    """Rows that `build` has not written are dbt's to complain of, and never removed."""
    by_hand = written_by_hand(project)
    workflows = project / ROWS[0]
    workflows.write_text(workflows.read_text(encoding="utf-8").replace("shipping,", "shippng,"))
    code, document = run(capsys, "build")
    assert (0, {}) == (code, document["removed_rows"])
    for name in ROWS[1:]:
        found = from_csv((project / name).read_text(encoding="utf-8"))
        kept = [row for row in found if row["workflow"] == "shipping"]
        assert by_hand[Path(name).stem] == kept


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        (ROWS[0], ("shipping,", "order_creation,"), "order_creation has no hash, so its rows"),
        (ROWS[1], ("expires_seconds", "expires_second"), "a cell in the column 'expires_second'"),
        (ROWS[2], (",label,", ",label,x,x,x,x,"), "in the column 'no name, behind the last one'"),
        (ROWS[1], ("Label", "\xc9tiquette"), "the file must be UTF-8"),
    ],
)
def test_nothing_that_was_written_by_hand_is_lost(
    project: Path, capsys, name: str, change: tuple[str, str], says: str
) -> None:
    """What `build` could not write again as it was read stops it, before anything is written."""
    written_by_hand(project)
    text = (project / name).read_text(encoding="utf-8").replace(*change)
    (project / name).write_text(text, encoding="latin-1")
    for command in ("build", "check"):
        code, document = run(capsys, command)
        assert (2, "BAD_SETTINGS") == (code, document["error"]["code"])
        assert says in document["error"]["message"]
    assert text == (project / name).read_text(encoding="latin-1")
    assert not (project / "docs").exists()


def test_where_seeds_and_models_are_is_what_the_project_says(project: Path, capsys) -> None:
    """Rows go to the first folder of seeds, their model to the first folder of models."""
    (project / "dbt_project.yml").write_text(
        "name: shop\nseed-paths: [data]\nmodel-paths: [sql, more]\n"
    )
    assert 0 == run(capsys, "build")[0]
    assert (project / "data" / "railway_tasks.csv").exists()
    assert (project / "sql" / "railway_in_force.sql").exists()
    assert not (project / "seeds").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("seeds/railway.yml", "version: 2\n"),
        ("seeds/railway_tasks.csv", "train,task\n1,2\n"),
        ("docs/workflows/order_creation.md", "# My notes\n"),
    ],
)
def test_a_file_of_somebody_else_is_not_written_over(
    project: Path, capsys, name: str, text: str
) -> None:
    """A file of a name that `build` would write, and did not, stops it before anything changes."""
    (project / name).parent.mkdir(parents=True)
    (project / name).write_text(text)
    assert (0, []) == stale(capsys)
    code, document = run(capsys, "build")
    assert (2, "BAD_SETTINGS") == (code, document["error"]["code"])
    assert f"{project / name} was not written by" in document["error"]["message"]
    assert text == (project / name).read_text()
    assert [project / name] == [
        file
        for file in project.rglob("*.*")
        if file.suffix in {".csv", ".md", ".sql", ".yml"} and file.name != "dbt_project.yml"
    ]


def test_a_project_file_that_is_no_yaml_is_named(project: Path, capsys) -> None:
    """Where seeds are cannot be read: the file is named, and nothing is written."""
    (project / "dbt_project.yml").write_text("name: [shop\n")
    code, document = run(capsys, "build")
    assert (2, "BAD_SETTINGS") == (code, document["error"]["code"])
    assert str(project / "dbt_project.yml") in document["error"]["message"]
    assert not (project / "docs").exists()


def test_named_modules_have_pages_alone(project: Path, capsys) -> None:
    """Rows are of all workflows together, so a part of them writes none."""
    code, document = run(capsys, "build", "order_creation")
    assert (0, ["docs/workflows/order_creation.md"]) == (code, document["written"])


PROVIDE = """
def provide(settings):
    return [cls(None) for cls in (ReleaseStock, VoidInvoice)]
"""


@pytest.mark.parametrize(
    ("provide", "says"),
    [
        (PROVIDE, None),
        (PROVIDE.replace("VoidInvoice", ""), "provide returned no VoidInvoice;"),
        (PROVIDE.replace("VoidInvoice)", "VoidInvoice, VoidInvoice)"), "returned 2 VoidInvoice;"),
        (PROVIDE.replace("cls(None)", "cls"), "an object of ABCMeta, which is no task"),
        (PROVIDE.replace("(None)", "(settings['invoicing'])"), "no third party 'invoicing'"),
        (PROVIDE.replace("(None)", "(1 / 0)"), "failed with ZeroDivisionError"),
        (PROVIDE.replace("def", "async def"), "failed with TypeError"),
        (PROVIDE.replace("return", "made ="), "provide returned None."),
        (
            "def provide(settings):\n    raise ValueError(settings['warehouse']['token'])\n",
            "ValueErr",
        ),
    ],
)
def test_check_calls_provide(
    project: Path, capsys, monkeypatch, provide: str, says: str | None
) -> None:
    """What makes the clients is called with the tables of the settings, and gives every task."""
    monkeypatch.setenv("WAREHOUSE_TOKEN", "s3cr3t")
    file = project / "order_compensation.py"
    file.write_text(file.read_text(encoding="utf-8") + provide)
    with (project / "outbox.toml").open("a") as settings:
        settings.write('[third_parties.warehouse]\ntoken = "${WAREHOUSE_TOKEN}"\n')
    code, document = run(capsys, "check", "order_compensation")
    if says is None:
        assert 0 == code
    else:
        assert (2, "BAD_WORKFLOW_MODULE") == (code, document["error"]["code"])
        assert says in document["error"]["message"]
        assert "s3cr3t" not in json.dumps(document)


def test_the_example_makes_its_clients_of_its_settings(tmp_path: Path, capsys, monkeypatch) -> None:
    """The example's module gives every task of both workflows its client; a check needs no token,
    and names those that are not set.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OUTBOX_CONFIG", str(ORDERS / "outbox.toml"))
    names = re.findall(r"\$\{(\w+)\}", (ORDERS / "outbox.toml").read_text(encoding="utf-8"))
    for name in names[2:]:
        monkeypatch.setenv(name, f"s3cr3t of {name}")
    code, document = run(capsys, "check")
    (warning,) = document["warnings"]
    assert 0 == code
    assert warning.startswith(f"{names[0]}, {names[1]}: not set in the environment.")
    for name in names:
        monkeypatch.setenv(name, "s3cr3t")
    code, document = run(capsys, "check")
    assert (0, []) == (code, document["warnings"])
    assert 2 == len(document["workflows"])


@pytest.mark.parametrize("command", ["list", "draw", "build"])
def test_commands_that_call_nobody_need_no_secret(project: Path, capsys, command: str) -> None:
    """A variable of a third party that is not set stops no command that calls nobody."""
    with (project / "outbox.toml").open("a") as settings:
        settings.write('[third_parties.warehouse]\ntoken = "${NOT_SET_ANYWHERE}"\n')
    assert 0 == run(capsys, command)[0]


def test_a_provide_that_needs_a_value_says_what_is_not_set(project: Path, capsys) -> None:
    """Where `provide` fails over a text that stands for a variable, the variable is named."""
    file = project / "order_compensation.py"
    call = "(int(settings['warehouse']['port']))"
    file.write_text(file.read_text(encoding="utf-8") + PROVIDE.replace("(None)", call))
    with (project / "outbox.toml").open("a") as settings:
        settings.write('[third_parties.warehouse]\nport = "${WAREHOUSE_PORT}"\n')
    code, document = run(capsys, "check", "order_compensation")
    assert (2, "BAD_WORKFLOW_MODULE") == (code, document["error"]["code"])
    assert document["error"]["remedy"].endswith("Not set: WAREHOUSE_PORT.")


def test_a_third_party_that_nobody_calls_is_warned_of(project: Path, capsys) -> None:
    """A table of the settings whose name no task has may be misspelt."""
    with (project / "outbox.toml").open("a") as settings:
        settings.write("[third_parties.warehous]\n[third_parties.warehouse]\n")
    _, document = run(capsys, "check")
    misspelt, nobody = document["warnings"]
    assert misspelt.startswith("[third_parties.warehous] of the settings: no task calls it.")
    assert "no module a function `provide`" in nobody


@pytest.mark.parametrize(
    ("rule", "code", "says"),
    [
        ("loop_without_visit", 0, "the second visit would be taken for the first"),
        ("loop_without_visits", 2, "Did you mean loop_without_visit"),
        ("xyz", 2, "what `outbox workflow check` says"),
    ],
)
def test_explain_says_why_there_is_a_rule(
    project: Path, capsys, rule: str, code: int, says: str
) -> None:
    """The name of a rule leads to its reason; a misspelt one to those like it."""
    found, document = run(capsys, "explain", rule)
    assert code == found
    assert says in json.dumps(document)

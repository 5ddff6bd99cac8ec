"""`docflow status`."""

import json
import re
from pathlib import Path

import pytest

from tests.support.cli_fakes import FakeInstallation, FakeRuns, a_row, an_execution
from workers.shared.register import PipelineView
from workers.shared.services.errors import ServiceError
from workflows.imports.runs import ImportState

README = Path(__file__).parents[3] / "README.md"


def an_installation() -> FakeInstallation:
    runs = FakeRuns()
    runs.executions = [an_execution("import/P1/T1", "parked")]
    runs.counts = {ImportState.PARKED: 1, ImportState.COMPLETED: 41_000}
    installation = FakeInstallation(runs=runs)
    installation.tasks.rows.append(
        a_row("P1", "T1", state=ImportState.PARKED, reason="the disk is full")
    )
    installation.tasks.rows.append(a_row("P1", "T2"))
    return installation


def test_everything_is_up() -> None:
    done = an_installation().docflow("status")
    assert done.exit_code == 0
    assert "down" not in done.stdout
    assert "100 or more waiting, 1 in the dead letter queue" in done.stdout
    assert "the disk is full" in done.stdout and "P1/T2" not in done.stdout
    assert done.stdout.index("parked ") < done.stdout.index("completed ")
    assert "41,000" in done.stdout
    assert "1 polled in the last minutes; 12 open, 3 wait for a person" in done.stdout
    assert "2 polled in the last minutes; 45 open, 1 wait for a person" in done.stdout


def test_what_is_down_does_not_hide_the_rest() -> None:
    installation = an_installation()
    installation.runs = None
    del installation.environment["DATABASE_URL"]
    installation.queue.error = ServiceError("cannot use the Service Bus queue")
    done = installation.docflow("status", "--json")
    status = json.loads(done.stdout)
    assert done.exit_code == 1
    assert [(check["part"], check["up"]) for check in status["checks"]] == [
        ("Temporal", False),
        ("database", False),
        ("queue", False),
    ]
    said = " ".join(check["says"] for check in status["checks"])
    assert "cannot reach Temporal" in said and "missing setting: DATABASE_URL" in said
    assert "cannot use the Service Bus queue" in said


def test_no_worker_is_down_with_what_to_do() -> None:
    installation = an_installation()
    assert installation.runs is not None
    installation.runs.polling = 0
    done = installation.docflow("status")
    assert done.exit_code == 1
    assert "no worker polls: start `docflow worker imports`" in done.stdout


def test_what_waits_is_what_temporal_counts_with_what_rows_know_of_it() -> None:
    installation = an_installation()
    # Its run has been answered, and its row is not written yet.
    installation.tasks.rows.append(a_row("P1", "T3", state=ImportState.PARKED, reason="no blob"))
    assert installation.runs is not None
    installation.runs.executions += [
        an_execution("import/P1/T4", "parked"),
        an_execution("spreadsheet/1", "COLUMN_MAPPING", pipeline="spreadsheets"),
    ]
    shown = installation.docflow("status").stdout
    assert "P1/T3" not in shown and "no blob" not in shown
    assert "the disk is full" in shown and "import/P1/T4" in shown
    assert re.search(r"spreadsheet/1 +spreadsheets +equipment +COLUMN_MAPPING", shown)
    assert "`docflow list --needs-attention` shows all" in shown
    status = json.loads(installation.docflow("status", "--json").stdout)
    ids = {row["id"] for row in status["needs_attention"]}
    assert ids == {"import/P1/T1", "import/P1/T4", "spreadsheet/1"}


def test_why_a_batch_is_parked_is_asked_of_its_worker() -> None:
    installation = an_installation()
    assert installation.runs is not None
    ids = ("batch/7/1", "batch/7/2", "batch/7/3")
    installation.runs.executions += [an_execution(id, "parked", pipeline="batches") for id in ids]
    installation.runs.reasons = {
        "batch/7/1": "provision: no rights",
        "batch/7/2": ServiceError("no worker answers"),
    }
    shown = installation.docflow("status").stdout
    assert re.search(r"batch/7/1 .*provision: no rights", shown)
    status = json.loads(installation.docflow("status", "--json").stdout)
    reasons = {row["id"]: row["reason"] for row in status["needs_attention"]}
    assert [reasons[id] for id in ids] == ["provision: no rights", None, None]


def test_a_run_is_not_asked_where_no_worker_polls() -> None:
    installation = an_installation()
    assert installation.runs is not None
    installation.runs.polling = 0
    installation.runs.executions.append(an_execution("batch/7/1", "parked", pipeline="batches"))
    installation.runs.reasons["batch/7/1"] = "provision: no rights"
    shown = installation.docflow("status").stdout
    assert "batch/7/1" in shown and "no rights" not in shown


def test_rows_alone_say_what_waits_while_temporal_is_down() -> None:
    installation = an_installation()
    installation.runs = None
    assert "the disk is full" in installation.docflow("status").stdout


def test_parked_imports_are_in_the_json_with_all_their_fields() -> None:
    status = json.loads(an_installation().docflow("status", "--json").stdout)
    assert [row["short"] for row in status["needs_attention"]] == ["T1"]
    assert next(iter(status["counts"].items())) == ("parked", 1)


@pytest.mark.parametrize(
    ("seen", "exit_code", "says"),
    [
        (PipelineView(0, 0, 0), 0, "no worker polls; 0 open, 0 wait for a person"),
        (PipelineView(0, 5, 5), 1, "5 open and no worker polls: start `docflow worker "),
    ],
)
@pytest.mark.parametrize("name", ["spreadsheets", "batches", "jobs"])
def test_a_pipeline_without_a_worker(
    name: str, seen: PipelineView, exit_code: int, says: str
) -> None:
    installation = an_installation()
    assert installation.runs is not None
    installation.runs.pipelines[name] = seen
    done = installation.docflow("status")
    assert (done.exit_code, says in done.stdout) == (exit_code, True)
    assert (f"docflow worker {name}" in done.stdout) == bool(exit_code)


@pytest.mark.parametrize(
    ("open", "light", "exit_code", "says"),
    [
        (0, 1, 0, "1 polled in the last minutes, none the lane heavy; 0 open, 0 wait for a person"),
        (7, 1, 1, "7 open and no worker polls the lane heavy: start `docflow worker jobs`"),
        (7, 0, 1, "7 open and no worker polls the lanes light and heavy: start `docflow worker "),
    ],
)
def test_a_lane_without_a_worker_is_named(open: int, light: int, exit_code: int, says: str) -> None:
    installation = an_installation()
    assert installation.runs is not None
    lanes = {"light": light, "heavy": 0}
    installation.runs.pipelines["jobs"] = PipelineView(1, open, 0, lanes=lanes)
    done = installation.docflow("status", "--json")
    status = json.loads(done.stdout)
    [check] = [each for each in status["checks"] if each["part"] == "jobs"]
    assert (done.exit_code, check["up"]) == (exit_code, not exit_code)
    assert says in check["says"]
    assert status["pipelines"]["jobs"]["lanes"] == lanes


def test_the_readme_shows_what_status_prints() -> None:
    example = re.findall(
        r"^\$ docflow status\n(.+?)\n\n", README.read_text(), re.MULTILINE | re.DOTALL
    )
    printed = an_installation().docflow("status").stdout.strip("\n ").splitlines()
    heading, _, *rows = example[0].splitlines()
    assert heading.split() == printed[0].split()
    assert [row.split()[0] for row in rows] == [
        row.split()[0] for row in printed[2 : 2 + len(rows)]
    ]

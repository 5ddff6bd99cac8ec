"""`docflow list | show | report | retry | skip | fail | cancel`."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from temporalio.client import WorkflowExecutionStatus

from activities.imports.views import ImportTaskRow
from tests.support.cli_fakes import FakeInstallation, FakeRuns, a_row, a_view, an_execution
from workers.shared.services import known_runs
from workers.shared.services.errors import ServiceError
from workers.shared.services.known_runs import prefixes
from workflows.imports.messages import DocumentType, EstimationMasterMessage, workflow_id
from workflows.imports.runs import Counts, ImportState, ImportStatus, Retry
from workflows.shared.contracts import Answer, BlobRef, Problem

REPORT = BlobRef(name="reports/P1/T1.xlsx", size=5)
KEYS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:@+-]{0,20}", fullmatch=True)


@given(KEYS, KEYS)
async def test_every_full_name_is_understood(project: str, task: str) -> None:
    assume(project not in prefixes())
    id = workflow_id(project, task)
    for text in (f"{project}/{task}", f" {project}/{task} ", id):
        named, run = await known_runs.find(text, {})
        assert (run.workflow_id, named.name(run)) == (id, f"{project}/{task}")


@pytest.mark.parametrize(
    "text", ["", "export/P1/T1", "import/P1/T1/x", "batch/7", "case/x", "P1/\x1b"]
)
def test_what_can_name_no_run_is_a_usage_error(text: str) -> None:
    done = FakeInstallation().docflow("show", text)
    assert done.exit_code == 2 and "names no run; write a task id, project/task" in done.stderr


@pytest.mark.parametrize("text", ["/", "P1/", "/T1", "a b", "../T1"])
def test_what_names_none_is_not_found(text: str) -> None:
    done = FakeInstallation().docflow("show", text)
    assert done.exit_code == 1 and f"there is no run {text}: `docflow list`" in done.stderr


def an_installation(*rows: ImportTaskRow, runs: FakeRuns | None = None) -> FakeInstallation:
    installation = FakeInstallation(runs=runs or FakeRuns())
    installation.tasks.rows.extend(rows)
    return installation


def test_a_bare_task_id_has_to_be_of_one_project() -> None:
    installation = an_installation(a_row("P1", "T1"), a_row("P2", "T1"))
    both = installation.docflow("show", "T1")
    assert (both.exit_code, both.stderr) == (
        2,
        "docflow: T1 names several runs: write one of import/P1/T1, import/P2/T1\n",
    )
    none = installation.docflow("show", "T2")
    assert none.exit_code == 1
    assert "there is no run T2: `docflow list`" in none.stderr and "workflow id" in none.stderr


def test_list_shows_the_imports_that_were_asked_for() -> None:
    installation = an_installation(
        a_row("P1", "T1", state=ImportState.PARKED, reason="there is no blob \x1b]0;x\x07 [red]y"),
        a_row("P1", "T2", document_type=DocumentType.MTO, counts=Counts(created=1234567)),
        a_row("P2", "T3"),
    )
    done = installation.docflow("list", "--project", "P1")
    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    assert [line.split()[:3] for line in lines[3:5]] == [
        ["needs_attention", "P1/T1", "equipment"],
        ["completed", "P1/T2", "mto"],
    ]
    assert r"there is no blob \x1b]0;x\x07 [red]y" in lines[3]
    assert "imports" in lines[4] and "2026-02-03 10:15:00" in lines[3]
    assert "P2" not in done.stdout


def test_list_filters_and_limits() -> None:
    parked = a_row("P1", "X", state=ImportState.PARKED)
    installation = an_installation(*(a_row("P1", f"T{number}") for number in range(5)), parked)
    assert installation.runs is not None
    installation.runs.executions = [an_execution("import/P1/X", "parked")]
    only = installation.docflow("list", "--state", "parked", "--json")
    assert [row["short"] for row in json.loads(only.stdout)] == ["X"]
    few = installation.docflow("list", "--limit", "2", "--json")
    assert [row["short"] for row in json.loads(few.stdout)] == ["T0", "T1"]
    assert "--limit shows more" in installation.docflow("list", "--limit", "2").stderr


def test_what_needs_attention_is_listed_as_temporal_knows_it() -> None:
    parked = a_row("P1", "T1", state=ImportState.PARKED, reason="the disk is full")
    # Its run has been answered, and its row is not written yet.
    installation = an_installation(parked, a_row("P1", "T2", state=ImportState.PARKED))
    runs = installation.runs = FakeRuns()
    runs.executions = [an_execution("import/P1/T1", "parked")]
    done = installation.docflow("list", "--needs-attention", "--pipeline", "imports")
    assert "the disk is full" in done.stdout and "P1/T2" not in done.stdout
    assert "NeedsAttention = true AND Pipeline = 'imports'" in runs.queries[-1]
    runs.executions = []
    none = installation.docflow("list", "--needs-attention", "--project", "P1")
    assert none.stdout == "no runs with --project P1 wait for a person\n"


def test_an_empty_list_explains_how_to_begin() -> None:
    assert "docflow submit --help" in FakeInstallation().docflow("list").stdout
    none = FakeInstallation().docflow("list", "--type", "equipment", "--state", "Parked").stdout
    assert none == "no runs with --state Parked --type equipment\n"
    assert json.loads(FakeInstallation().docflow("list", "--json").stdout) == []


def test_show_reports_what_row_and_run_hold() -> None:
    row = a_row(
        "P1",
        "T1",
        state=ImportState.PARKED,
        problem_count=240,
        problems=tuple(Problem(line=number, reason="x") for number in range(2, 102)),
        report=REPORT,
    )
    runs = FakeRuns(a_view(parked=True))
    runs.current = ImportStatus(
        state=ImportState.PARKED,
        step="imports.load_rows",
        reason="the disk is full",
        waiting_since="2026-02-03T10:15:00.5+00:00",
    )
    done = an_installation(row, runs=runs).docflow("show", "T1")
    assert done.exit_code == 0
    for expected in (
        "240 problems, the first 20",
        "imports.load_rows",
        "the disk is full",
        "2026-02-03 10:15:00",
        "docflow retry | skip | fail | cancel P1/T1",
        "reports/P1/T1.xlsx",
        "http://ui/r-1",
    ):
        assert expected in done.stdout


@pytest.mark.parametrize("rows", [(a_row("P1", "T1", state=ImportState.RUNNING),), ()])
def test_show_begins_with_what_a_run_waits_for(rows: Sequence[ImportTaskRow]) -> None:
    runs = FakeRuns(a_view(waits_for="outage/blob-store"))
    said = an_installation(*rows, runs=runs).docflow("show", "P1/T1").stdout
    states = [line.split() for line in said.splitlines() if line.startswith("state")]
    assert states == [["state", "waiting"]]
    assert "running" not in said.partition("waits for")[0]
    assert "the blob store, by itself; `docflow show outage/blob-store` says why" in said


def test_show_as_json_has_row_run_and_status() -> None:
    row = a_row("P1", "T1", problems=(Problem(line=2, reason="x"),), problem_count=1)
    shown = json.loads(
        an_installation(row, runs=FakeRuns(a_view())).docflow("show", "T1", "--json").stdout
    )
    assert shown["import"]["problems"][0]["line"] == 2
    assert shown["import"]["updated_at"] == "2026-02-03T10:15:00Z"
    assert shown["run"]["workflow_id"] == "import/P1/T1"
    assert shown["status"] is None


def test_show_works_for_a_run_that_has_no_row_yet_and_for_a_row_whose_run_is_gone() -> None:
    young = FakeInstallation(runs=FakeRuns(a_view())).docflow("show", "P1/T1")
    assert young.exit_code == 0 and "import/P1/T1" in young.stdout
    old = an_installation(a_row("P1", "T1")).docflow("show", "P1/T1")
    assert old.exit_code == 0 and "completed" in old.stdout
    nothing = FakeInstallation().docflow("show", "P1/T1")
    assert (nothing.exit_code, nothing.stdout) == (1, "")
    assert "docflow message list" in nothing.stderr


def test_show_without_temporal_reports_what_the_row_holds() -> None:
    installation = an_installation(a_row("P1", "T1", reason="the disk is full"))
    installation.runs = None
    done = installation.docflow("show", "T1")
    assert done.exit_code == 0 and "the disk is full" in done.stdout
    assert done.stderr.startswith("docflow: cannot reach Temporal")
    unknown = installation.docflow("show", "P1/T2")
    assert unknown.exit_code == 1 and "cannot reach Temporal" in unknown.stderr


def test_answers_reach_the_run_with_who_gave_them() -> None:
    installation = FakeInstallation()
    for name in ("skip", "fail", "cancel"):
        done = installation.docflow(name, "P1/T1", "--reason", "sent twice")
        assert done.exit_code == 0 and done.stdout.startswith(
            f"{name} accepted; see `docflow show P1/T1`"
        )
    assert installation.docflow("retry", "import/P1/T1", "--json").exit_code == 0
    assert installation.runs is not None
    answer = Answer(reason="sent twice", by="ada")
    assert installation.runs.answers == [
        *(("import/P1/T1", name, answer) for name in ("skip", "fail", "cancel")),
        ("import/P1/T1", "retry", Retry(by="ada")),
    ]


def test_answers_to_a_full_name_do_not_need_the_database() -> None:
    installation = FakeInstallation()
    del installation.environment["DATABASE_URL"]
    assert installation.docflow("skip", "P1/T1").exit_code == 0
    assert installation.docflow("skip", "T1").exit_code == 1


def test_a_refused_answer_explains_why() -> None:
    runs = FakeRuns()
    runs.refusal = ServiceError("skip was refused: this run is not parked")
    done = FakeInstallation(runs=runs).docflow("skip", "P1/T1")
    assert done.exit_code == 1
    assert done.stderr == "docflow: skip was refused: this run is not parked\n"


def test_retry_takes_a_corrected_message(tmp_path: Path) -> None:
    file = tmp_path / "corrected.json"
    message = {
        "document_type": "estimation_master",
        "project_id": "P1",
        "task_id": "T1",
        "service_id": "S1",
        "blob_name": "uploads/P1/T1/x.xlsx",
    }
    file.write_text(json.dumps(message))
    installation = FakeInstallation()
    assert installation.docflow("retry", "P1/T1", "--message", str(file)).exit_code == 0
    assert installation.runs is not None
    sent = Retry(message=EstimationMasterMessage.model_validate(message), by="ada")
    assert installation.runs.answers == [("import/P1/T1", "retry", sent)]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "the body is not JSON"),
        (b'{"document_type": "mto", "task_id": "T1"}', "blob_name: Field required; service_id: F"),
        (b" " * 300_000, "over 256 KiB"),
    ],
)
def test_a_wrong_message_file_is_not_sent(content: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "corrected.json"
    file.write_bytes(content)
    installation = FakeInstallation()
    done = installation.docflow("retry", "P1/T1", "--message", str(file))
    assert done.exit_code == 2 and says in done.stderr and done.stderr.count("\n") == 1
    assert installation.runs is not None and installation.runs.answers == []


def test_a_reason_that_is_too_long_is_refused() -> None:
    done = FakeInstallation().docflow("fail", "P1/T1", "--reason", "x" * 501)
    assert done.exit_code == 2
    assert done.stderr == "docflow: --reason has 501 characters; at most 500\n"


@pytest.fixture
def reported(tmp_path: Path) -> FakeInstallation:
    source = tmp_path / "source"
    source.write_bytes(b"sheet")
    installation = an_installation(a_row("P1", "T1", report=REPORT, problem_count=3))
    asyncio.run(installation.blobs.upload(source, REPORT.name))
    return installation


def test_the_report_is_saved_whole_or_not_at_all(
    reported: FakeInstallation, tmp_path: Path
) -> None:
    target = tmp_path / "out" / "report.xlsx"
    missing_folder = reported.docflow("report", "T1", "--out", str(target))
    assert missing_folder.exit_code == 5 and f"cannot write {target}" in missing_folder.stderr
    target.parent.mkdir()
    assert reported.docflow("report", "T1", "--out", str(target)).exit_code == 0
    assert [(file.name, file.read_bytes()) for file in target.parent.iterdir()] == [
        ("report.xlsx", b"sheet")
    ]


def test_a_file_that_exists_is_replaced_only_when_asked(
    reported: FakeInstallation, tmp_path: Path
) -> None:
    target = tmp_path / "mine.xlsx"
    target.write_bytes(b"mine")
    refused = reported.docflow("report", "T1", "--out", str(target))
    assert (refused.exit_code, target.read_bytes()) == (2, b"mine")
    assert reported.docflow("report", "T1", "--out", str(target), "--force").exit_code == 0
    assert target.read_bytes() == b"sheet"


def test_why_there_is_no_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    installation = an_installation(
        a_row("P1", "clean"),
        a_row("P1", "going", state=ImportState.RUNNING, problem_count=1),
        a_row("P1", "lost", report=REPORT),
    )
    for name, says in (
        ("clean", "P1/clean has no report: no row was rejected"),
        ("going", "P1/going has no report: it is running"),
        ("lost", "there is no blob 'reports/P1/T1.xlsx'"),
        ("P1/other", "there is no import P1/other"),
    ):
        done = installation.docflow("report", name)
        assert done.exit_code == 1 and done.stderr.startswith(f"docflow: {says}")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_waits_is_listed_as_waiting_although_its_row_says_running() -> None:
    installation = FakeInstallation()
    running, done = (a_row("P1", "T1", state=ImportState.RUNNING), a_row("P1", "T2"))
    installation.tasks.rows = [running, done]
    assert installation.runs is not None
    installation.runs.executions = [an_execution("import/P1/T1", "waiting")]

    def states(*options: str) -> dict[str, str]:
        rows = json.loads(installation.docflow("list", "--json", *options).stdout)
        return {row["short"]: row["state"] for row in rows}

    assert states() == {"T1": "waiting", "T2": "completed"}
    assert "waits for the archive" in installation.docflow("list").stdout
    assert states("--state", "running") == {}
    assert states("--state", "completed") == {"T2": "completed"}


def test_a_run_that_is_parked_is_listed_as_parked_although_its_row_says_running() -> None:
    installation = FakeInstallation()
    installation.tasks.rows = [a_row("P1", "T1", state=ImportState.RUNNING)]
    assert installation.runs is not None
    installation.runs.executions = [an_execution("import/P1/T1", "parked")]
    rows = json.loads(installation.docflow("list", "--json").stdout)
    assert [(row["state"], row["own_state"]) for row in rows] == [("needs_attention", "running")]


@pytest.mark.parametrize("was", [ImportState.RUNNING, ImportState.PARKED])
def test_a_terminated_run_is_distinguished_from_an_open_one_before_the_sweep(
    was: ImportState,
) -> None:
    ended = a_view(status="terminated", closed=True)
    installation = FakeInstallation(runs=FakeRuns(ended))
    installation.tasks.rows = [a_row("P1", "T1", state=was), a_row("P1", "T2", state=was)]
    assert installation.runs is not None
    over = WorkflowExecutionStatus.TERMINATED
    installation.runs.executions = [an_execution("import/P1/T1", was, over)]

    def states(*options: str) -> dict[str, str]:
        rows = json.loads(installation.docflow("list", "--json", *options).stdout)
        return {row["id"]: row["own_state"] for row in rows}

    assert states() == {"import/P1/T1": "terminated", "import/P1/T2": was}
    assert states("--state", "terminated") == {"import/P1/T1": "terminated"}
    shown = json.loads(installation.docflow("show", "import/P1/T1", "--json").stdout)
    assert shown["import"]["state"] == "terminated"


def test_a_task_that_runs_again_is_no_longer_terminated() -> None:
    installation = FakeInstallation(runs=FakeRuns(a_view(status="running")))
    installation.tasks.rows = [a_row("P1", "T1", state=ImportState.RUNNING)]
    assert installation.runs is not None
    over = WorkflowExecutionStatus.TERMINATED
    again = an_execution("import/P1/T1", "running")
    installation.runs.executions = [an_execution("import/P1/T1", "running", over), again]
    rows = json.loads(installation.docflow("list", "--json").stdout)
    assert [row["state"] for row in rows] == ["running"]


def test_without_temporal_the_rows_are_listed_with_a_warning() -> None:
    installation = FakeInstallation(runs=None)
    installation.tasks.rows = [a_row("P1", "T1", state=ImportState.RUNNING)]
    listed = installation.docflow("list")
    assert listed.exit_code == 0 and "P1/T1" in listed.stdout and "running" in listed.stdout
    assert "open runs are shown by their rows alone: cannot reach Temporal" in listed.stderr
    installation.tasks.rows = [a_row("P1", "T2")]
    assert installation.docflow("list").stderr == ""

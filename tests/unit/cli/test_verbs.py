"""`docflow list | show | retry | skip | fail | cancel | report` for runs of every pipeline."""

import json
from collections.abc import Sequence
from datetime import timedelta

import pytest

from tests.support.cli_fakes import NOW, FakeInstallation, a_row, a_run
from workers.shared.services import known_runs
from workers.shared.services.errors import InvalidRequest
from workflows.imports.runs import ImportState
from workflows.shared.runs import RunState

UUID = "0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1"
SWEEP = "schedule/batch-sweeper-2026-11-22T02:00:00Z"
RETENTION = "schedule/spreadsheet-retention-2026-11-22T02:00:00Z"


@pytest.mark.parametrize(
    ("text", "pipeline", "workflow_id"),
    [
        ("import/P1/T1", "imports", "import/P1/T1"),
        ("P1/T1", "imports", "import/P1/T1"),
        (" P1/T1 ", "imports", "import/P1/T1"),
        ("import/case/7", "imports", "import/case/7"),
        ("case/7", "batches", "case/7"),
        ("batch/7/1", "batches", "batch/7/1"),
        ("load/7/1/contract 4", "batches", "load/7/1/contract 4"),
        ("load/7/1/contract/relations", "batches", "load/7/1/contract/relations"),
        (f"spreadsheet/{UUID}", "spreadsheets", f"spreadsheet/{UUID}"),
        (f"spreadsheet-undo/{UUID}", "spreadsheets", f"spreadsheet-undo/{UUID}"),
        (SWEEP, "batches", SWEEP),
        (RETENTION, "spreadsheets", RETENTION),
    ],
)
async def test_ids_of_every_pipeline_are_recognised(
    text: str, pipeline: str, workflow_id: str
) -> None:
    # Without a database.
    found, run = await known_runs.find(text, {})
    assert (found.pipeline, run.pipeline.name, run.workflow_id) == (pipeline, pipeline, workflow_id)


@pytest.mark.parametrize("text", ["batch/0/1", "case/x/y", "batch/7/1/2", "load/7/1/"])
async def test_an_id_of_no_pipeline_is_refused_with_every_form(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"names no run; write a task id, .*CASE/BATCH"):
        await known_runs.find(text, {})


def test_a_bare_uuid_is_a_spreadsheet_unless_an_import_has_it_as_well() -> None:
    installation = FakeInstallation()
    refused = installation.docflow("skip", UUID)
    assert (refused.exit_code, refused.stderr) == (
        2,
        f"docflow: {UUID} has no skip; offered: retry, cancel, report\n",
    )
    installation.tasks.rows.append(a_row("P1", UUID))
    id = f"spreadsheet/{UUID}"
    installation.listed.append(a_run(id, "spreadsheets", RunState.RUNNING, key=UUID))
    ambiguous = installation.docflow("skip", UUID)
    assert (ambiguous.exit_code, ambiguous.stderr) == (
        2,
        f"docflow: {UUID} names several runs: write one of import/P1/{UUID}, spreadsheet/{UUID}\n",
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("report", "batch/7/1"), "batch/7/1 has no report; offered: retry, skip, fail, cancel"),
        (("cancel", "case/7"), "case/7 has no cancel; offered: nothing but show"),
        (("retry", SWEEP), "has no retry; offered: nothing but show"),
        (("retry", f"spreadsheet-undo/{UUID}", "--message", __file__), "takes no corrected mess"),
        (("retry", "P1/T1", "--reason", "x"), "retry of P1/T1 keeps no reason; leave it out"),
        (("fail", f"spreadsheet-undo/{UUID}"), f"spreadsheet-undo/{UUID} has no fail; offered: re"),
    ],
)
def test_a_verb_that_a_run_does_not_have_is_refused_with_what_is_offered(
    arguments: Sequence[str], says: str
) -> None:
    done = FakeInstallation().docflow(*arguments)
    assert done.exit_code == 2 and says in done.stderr


@pytest.fixture
def installation() -> FakeInstallation:
    later = NOW + timedelta(minutes=1)
    batch = a_run("batch/7/1", "batches", RunState.FAILED, kind="batch", changed_at=later)
    batch = batch.model_copy(update={"own_state": "in-complete", "counts": {"dead_letters": 3}})
    made = FakeInstallation(listed=[batch])
    made.tasks.rows.append(a_row("P1", "T1", state=ImportState.FAILED))
    made.tasks.rows.append(a_row("P1", "T2"))
    return made


def test_list_shows_runs_of_all_pipelines(installation: FakeInstallation) -> None:
    done = installation.docflow("list")
    assert done.exit_code == 0
    assert [line.split()[:4] for line in done.stdout.splitlines()[3:6]] == [
        ["failed", "batch/7/1", "batch", "batches"],
        ["failed", "P1/T1", "equipment", "imports"],
        ["completed", "P1/T2", "equipment", "imports"],
    ]
    rows = json.loads(installation.docflow("list", "--json", "--limit", "2").stdout)
    assert [(row["pipeline"], row["id"]) for row in rows] == [
        ("batches", "batch/7/1"),
        ("imports", "import/P1/T1"),
    ]


def test_list_takes_one_pipeline_with_its_own_counts(installation: FakeInstallation) -> None:
    installation.listed.append(a_run("batch/7/2", "batches", RunState.RUNNING))
    done = installation.docflow("list", "--pipeline", "batches")
    header, _, first, second = done.stdout.splitlines()[1:5]
    assert "dead letters" in header and "state of the pipeline" in header
    assert first.split()[:5] == ["failed", "batch/7/1", "batch", "in-complete", "3"]
    assert second.split()[:3] == ["running", "batch/7/2", "any"]
    wrong = installation.docflow("list", "--pipeline", "bathces")
    assert (wrong.exit_code, "there are imports, " in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (("--project", "P1"), ["import/P1/T1", "import/P1/T2"]),
        (("--type", "mto"), []),
        (("--state", "Failed"), ["batch/7/1", "import/P1/T1"]),
        (("--state", "IN-COMPLETE"), ["batch/7/1"]),
        (("--state", "skipped"), []),
    ],
)
def test_filters_are_those_of_every_pipeline(
    installation: FakeInstallation, options: Sequence[str], ids: Sequence[str]
) -> None:
    rows = json.loads(installation.docflow("list", "--json", *options).stdout)
    assert [row["id"] for row in rows] == ids


def test_a_state_in_which_no_run_can_be_is_refused_with_those_that_there_are() -> None:
    refused = FakeInstallation().docflow("list", "--state", "lost")
    assert (refused.exit_code, refused.stdout) == (2, "")
    for state in ("parked", "completed", "blocked", "column_mapping", "needs_attention"):
        assert state in refused.stderr
    other = FakeInstallation().docflow("list", "--state", "blocked", "--pipeline", "imports")
    assert other.exit_code == 2 and "no run can be blocked; there are cancelled, " in other.stderr

"""`docflow list | show | retry | skip | fail | cancel | report` for runs of every pipeline."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.cli_fakes import NOW, FakeInstallation, a_row
from workers.batches import verbs
from workers.shared.services import known_runs
from workers.shared.services.errors import InvalidRequest
from workers.shared.services.verbs import Filters, RunEntry
from workflows.imports.runs import ImportState

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
    found, run = await known_runs.find(text, {})
    assert (found.pipeline, run.pipeline.name, run.workflow_id) == (pipeline, pipeline, workflow_id)


@pytest.mark.parametrize("text", ["batch/0/1", "case/x/y", "batch/7/1/2", "load/7/1/"])
async def test_an_id_of_no_pipeline_is_refused_with_every_form(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"names no run; write a task id, .*CASE/BATCH"):
        await known_runs.find(text, {})


@pytest.mark.parametrize(
    "text",
    [
        "batch/7",
        "case/x",
        "load/7",
        "outage/nowhere",
        "schedule/nightly",
        f"spreadsheet/{UUID[:-1]}",
    ],
)
def test_what_begins_as_the_id_of_another_run_is_no_short_form(text: str) -> None:
    installation = FakeInstallation()
    refused = installation.docflow("fail", text)
    assert refused.exit_code == 2 and f"has the full id import/{text}\n" in refused.stderr
    assert installation.docflow("fail", f"import/{text}").stdout == (
        f"fail accepted; see `docflow show import/{text}`\n"
    )
    assert installation.runs is not None
    assert [id for id, *_ in installation.runs.answers] == [f"import/{text}"]


def test_a_bare_uuid_is_a_spreadsheet_unless_an_import_has_it_as_well() -> None:
    installation = FakeInstallation()
    refused = installation.docflow("skip", UUID)
    assert (refused.exit_code, refused.stderr) == (
        2,
        f"docflow: {UUID} has no skip; offered: retry, cancel, report\n",
    )
    installation.tasks.rows.append(a_row("P1", UUID))
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
def installation(monkeypatch: pytest.MonkeyPatch) -> FakeInstallation:
    async def batches(environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        entry = RunEntry(
            workflow_id="batch/7/1",
            name="batch/7/1",
            pipeline="batches",
            type="batch",
            state="failed",
            since=NOW + timedelta(minutes=1),
            columns={"dead letters": "3"},
            row={"case_id": 7},
        )
        return [entry]

    made = FakeInstallation(listed={verbs.VERBS.pipeline: batches})
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
    assert [(row["pipeline"], row["workflow_id"]) for row in rows] == [
        ("batches", "batch/7/1"),
        ("imports", "import/P1/T1"),
    ]
    assert (rows[0]["case_id"], rows[1]["task_id"]) == (7, "T1")


def test_list_takes_one_pipeline_with_its_own_columns(installation: FakeInstallation) -> None:
    done = installation.docflow("list", "--pipeline", "batches")
    assert "dead letters" in done.stdout and "imports" not in done.stdout
    wrong = installation.docflow("list", "--pipeline", "bathces")
    assert (wrong.exit_code, "there are imports, " in wrong.stderr) == (2, True)
    neither = installation.docflow("list", "--pipeline", "batches", "--project", "P1")
    assert (neither.exit_code, "cannot be combined with --project" in neither.stderr) == (2, True)


def test_list_shows_runs_that_lack_the_columns_of_others() -> None:
    async def batches(environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        run = RunEntry(
            "watch/1", "watch/1", "batches", "watch", "parked", NOW + timedelta(minutes=1)
        )
        row = RunEntry("batch/7/1", "batch/7/1", "batches", "batch", "failed", NOW)
        return [run, replace(row, columns={"dead letters": "3"})]

    made = FakeInstallation(listed={verbs.VERBS.pipeline: batches})
    done = made.docflow("list", "--pipeline", "batches")
    assert done.exit_code == 0, done.output
    header, _, first, second = done.stdout.splitlines()[1:5]
    assert "dead letters" in header
    assert first.split()[:3] == ["parked", "watch/1", "watch"]
    assert second.split()[:4] == ["failed", "batch/7/1", "batch", "3"]


def test_a_filter_leaves_out_pipelines_that_do_not_have_it(installation: FakeInstallation) -> None:
    rows = json.loads(installation.docflow("list", "--project", "P1", "--json").stdout)
    assert {row["pipeline"] for row in rows} == {"imports"}
    rows = json.loads(installation.docflow("list", "--type", "mto", "--json").stdout)
    assert rows == []


@pytest.mark.parametrize(
    ("state", "asked", "queries"),
    [
        ("Completed", {"spreadsheets": "COMPLETED"}, []),
        ("failed", {"spreadsheets": "FAILED", "batches": "failed"}, []),
        ("column_mapping", {"spreadsheets": "COLUMN_MAPPING"}, []),
        ("IN-COMPLETE", {"batches": "in-complete"}, []),
        ("blocked", {}, [("batches", "blocked")]),
        ("Tearing Down", {}, [("batches", "tearing down")]),
        (
            "PARKED",
            {},
            [
                ("imports", "parked"),
                ("spreadsheets", "parked"),
                ("batches", "parked"),
                ("jobs", "parked"),
                ("transfers", "parked"),
            ],
        ),
        (
            "waiting",
            {"batches": "waiting"},
            [
                ("imports", "waiting"),
                ("spreadsheets", "waiting"),
                ("batches", "waiting"),
                ("jobs", "waiting"),
                ("transfers", "waiting"),
            ],
        ),
    ],
)
def test_a_state_is_matched_by_each_pipeline_as_it_spells_it(
    state: str, asked: Mapping[str, str], queries: Sequence[tuple[str, str]]
) -> None:
    found: dict[str, str | None] = {}

    def lists(pipeline: str) -> Any:
        async def read(environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
            found[pipeline] = filters.state
            return []

        return read

    made = FakeInstallation(listed={name: lists(name) for name in ("spreadsheets", "batches")})
    assert made.docflow("list", "--state", state).exit_code == 0
    assert found == asked
    assert made.runs is not None
    assert made.runs.queries == [
        f"Pipeline = '{pipeline}' AND State = '{spelled}' AND ExecutionStatus = 'Running'"
        for pipeline, spelled in queries
    ]


def test_a_state_of_no_pipeline_is_refused_with_those_that_there_are() -> None:
    refused = FakeInstallation().docflow("list", "--state", "lost")
    assert (refused.exit_code, refused.stdout) == (2, "")
    for state in ("parked", "completed", "blocked", "column_mapping", "in-complete"):
        assert state in refused.stderr
    other = FakeInstallation().docflow("list", "--state", "blocked", "--pipeline", "imports")
    assert other.exit_code == 2 and "--state blocked: there are cancelled, " in other.stderr

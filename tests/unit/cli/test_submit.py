"""`docflow submit imports`, from options to exit code."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from adapters.ports.errors import Unavailable
from tests.support.cli_fakes import FakeInstallation, FakeRuns, FakeStore, a_result, a_row, a_view
from workers.imports.commands import Follower, Parked
from workers.shared.cli.errors import CommandError
from workers.shared.services.errors import ServiceError
from workflows.imports.runs import Counts, ImportState, ImportStatus, LoadMark, TaskKey
from workflows.shared.contracts import BlobRef, Problem

CLOSED = a_view(status="completed", closed=True)
PARKED = a_view(parked=True)


@pytest.fixture
def document(tmp_path: Path) -> Path:
    file = tmp_path / "Bäume & Kräne.csv"
    file.write_text("code;description\nC1;Crane\n")
    return file


def submit(installation: FakeInstallation, *arguments: str) -> tuple[int, str, str]:
    done = installation.docflow("submit", "imports", *arguments)
    return done.exit_code, done.stdout, done.stderr


def test_the_file_is_uploaded_before_the_message_that_names_it_is_sent(
    document: Path,
) -> None:
    installation = FakeInstallation()
    base = ("--type", "equipment", "--project", "P1", "--task", "T1")
    code, out, _ = submit(installation, str(document), *base, "--no-follow")
    assert (code, len(installation.queue.sent)) == (0, 1)
    ((body, message_id),) = installation.queue.sent
    message = json.loads(body)
    assert message_id == "import/P1/T1"
    assert message["filename"] == document.name
    assert message["blob_name"] == "uploads/P1/T1/Baume_Krane.csv"
    stored = asyncio.run(installation.blobs.stat(message["blob_name"]))
    assert stored.size == document.stat().st_size
    assert "docflow show P1/T1" in out


def test_sending_needs_no_temporal_without_follow(document: Path) -> None:
    installation = FakeInstallation(runs=None)
    base = (str(document), "--type", "crew", "--project", "P1")
    assert submit(installation, *base, "--no-follow", "--json")[0] == 0
    code, out, error = submit(installation, *base)
    assert (code, out, len(installation.queue.sent)) == (1, "", 1)
    assert error == "docflow: cannot reach Temporal at localhost:7233: refused\n"


@pytest.mark.parametrize(
    "missing", ["AZURE_SERVICE_BUS_CONNECTION_STRING", "DATABASE_URL", "DOCFLOW_BLOB_FOLDER"]
)
def test_a_missing_setting_is_named_before_anything_is_sent(document: Path, missing: str) -> None:
    installation = FakeInstallation()
    del installation.environment[missing]
    code, _, error = submit(installation, str(document), "--type", "crew", "--project", "P1")
    named = "AZURE_STORAGE_CONNECTION_STRING" if "BLOB" in missing else missing
    assert (code, installation.queue.sent) == (1, [])
    assert error.startswith(f"docflow: missing setting: {named}; ")
    assert error.count("\n") == 1


def test_wrong_options_are_one_line_and_exit_code_2(document: Path) -> None:
    installation = FakeInstallation()
    code, out, error = submit(installation, str(document), "--type", "mto", "--project", "P1")
    assert (code, out, error) == (2, "", "docflow: mto: needs --service\n")
    assert installation.queue.sent == []


def test_a_task_is_never_submitted_over_an_earlier_one(document: Path) -> None:
    installation = FakeInstallation()
    base = ("--type", "crew", "--project", "P1", "--task", "T1", "--no-follow")
    assert submit(installation, str(document), *base)[0] == 0
    code, _, error = submit(installation, str(document), *base)
    assert (code, len(installation.queue.sent)) == (1, 1)
    assert "task P1/T1 has a file already" in error
    installation.tasks.rows.append(a_row("P1", "D1", state=ImportState.PARKED))
    code, _, error = submit(
        installation, "--type", "mto_delete", "--project", "P1", "--service", "S1", "--task", "D1"
    )
    assert (code, len(installation.queue.sent)) == (1, 1)
    assert "task P1/D1 is parked already" in error and "another --task" in error


def test_a_task_whose_run_was_terminated_is_done_again(document: Path) -> None:
    base = (str(document), "--type", "crew", "--project", "P1", "--task", "T1")
    for state in (ImportState.RUNNING, ImportState.PARKED, ImportState.TERMINATED):
        terminated = a_view(status="terminated", closed=True, run_id="r-0")
        runs = FakeRuns(terminated, terminated, None, a_view(), CLOSED)
        installation = FakeInstallation(runs=runs)
        assert submit(installation, *base, "--no-follow")[0] == 0
        installation.tasks.rows.append(a_row("P1", "T1", state=state))
        code, out, _ = submit(installation, *base)
        assert (code, len(installation.queue.sent)) == (0, 2)
        assert "completed" in out


def test_a_row_that_says_terminated_needs_no_temporal(document: Path) -> None:
    installation = FakeInstallation(runs=None)
    installation.tasks.rows.append(a_row("P1", "T1", state=ImportState.TERMINATED))
    base = (str(document), "--type", "crew", "--project", "P1", "--task", "T1", "--no-follow")
    assert submit(installation, *base)[0] == 0
    installation.tasks.rows[:] = [a_row("P1", "T1", state=ImportState.RUNNING)]
    code, _, error = submit(installation, *base)
    assert (code, "task P1/T1 is running already" in error) == (1, True)


@pytest.mark.parametrize(
    ("earlier", "code"),
    [(None, 0), ("completed", 0), ("running", 1), ("failed", 1)],
)
def test_an_import_left_out_for_another_one_is_done_only_if_that_one_is(
    earlier: str | None, code: int, document: Path
) -> None:
    runs = FakeRuns(CLOSED)
    reason = f"task T0 with the same idempotency key 'K1' is {earlier} already"
    runs.ending = a_result(
        state=ImportState.SKIPPED, reason=reason, earlier=earlier and ImportState(earlier)
    )
    base = (str(document), "--type", "crew", "--project", "P1")
    done, out, _ = submit(FakeInstallation(runs=runs), *base)
    assert (done, reason in out) == (code, True)
    assert ("as a new task" in out) == (code == 1)


def test_a_task_whose_message_was_rejected_is_not_mistaken_for_the_new_one() -> None:
    installation = FakeInstallation()
    asyncio.run(installation.rejected.record("queue", "import/P1/D1", "InvalidMessage", "x", b"{}"))
    code, _, error = submit(
        installation, "--type", "mto_delete", "--project", "P1", "--service", "S1", "--task", "D1"
    )
    assert (code, installation.queue.sent) == (1, [])
    assert "message retry 1" in error


def test_a_completed_import_with_rejected_rows_is_shown_and_exits_0(document: Path) -> None:
    runs = FakeRuns(None, a_view(), CLOSED)
    runs.ending = a_result(
        counts=Counts(created=1200, rejected=7),
        problem_count=7,
        problems=(Problem(line=3, column="rate", value="\x1b[31mx", reason="is not a number"),),
        report=BlobRef(name="reports/P1/T1.xlsx", size=9),
    )
    installation = FakeInstallation(runs=runs, store=FakeStore(LoadMark(cursor=1207)))
    code, out, _ = submit(
        installation, str(document), "--type", "equipment", "--project", "P1", "--task", "T1"
    )
    assert code == 0
    assert "1,200 created, 0 updated, 0 unchanged, 7 rejected" in out
    assert re.search(r"3 +rate +\\x1b\[31mx +is not a number", out)
    assert "7 problems, the first 1" in out
    assert "reports/P1/T1.xlsx (`docflow report P1/T1`)" in out
    assert "http://ui/import/P1/T1" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("state", "code"),
    [("completed", 0), ("skipped", 0), ("failed", 1), ("cancelled", 1)],
)
def test_the_exit_code_reports_the_final_state(state: str, code: int, document: Path) -> None:
    runs = FakeRuns(CLOSED)
    runs.ending = a_result(state=ImportState(state), reason="because")
    done, out, _ = submit(
        FakeInstallation(runs=runs), str(document), "--type", "crew", "--project", "P1", "--json"
    )
    assert done == code
    assert (json.loads(out)["state"], json.loads(out)["reason"]) == (state, "because")


@pytest.mark.parametrize("worker_answers", [True, False])
def test_a_parked_import_is_left_with_its_next_steps_and_exit_code_4(
    worker_answers: bool, document: Path
) -> None:
    runs = FakeRuns(PARKED)
    if worker_answers:
        runs.current = ImportStatus(
            state=ImportState.PARKED, step="prepare", reason="there is no blob x"
        )
    code, out, _ = submit(
        FakeInstallation(runs=runs),
        str(document),
        "--type",
        "crew",
        "--project",
        "P1",
        "--task",
        "T1",
    )
    assert code == 4
    assert ("there is no blob x" in out) == worker_answers
    assert "docflow retry P1/T1" in out and "docflow skip P1/T1" in out


def test_a_run_without_a_result_is_one_line(document: Path) -> None:
    runs = FakeRuns(CLOSED)
    runs.ending = ServiceError("the run was\nterminated \x1b[2J")
    code, _, error = submit(
        FakeInstallation(runs=runs), str(document), "--type", "crew", "--project", "P1"
    )
    assert code == 1
    assert error.splitlines()[-1] == r"docflow: the run was terminated \x1b[2J"


class FakeScreen:
    """Remembers what was shown."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.cursors: list[int] = []
        self.hints: list[str] = []

    def state(self, description: str) -> None:
        self.states.append(description)

    def rows(self, mark: LoadMark) -> None:
        self.cursors.append(mark.cursor)

    def hint(self, sentence: str) -> None:
        self.hints.append(sentence)


def a_follower(
    installation: FakeInstallation, screen: FakeScreen, quiet_seconds: float = 60
) -> Follower:
    assert installation.runs is not None
    return Follower(
        TaskKey("P1", "T1"),
        installation.runs,
        installation,
        screen,
        quiet_seconds=quiet_seconds,
        pauses=(0, 0),
    )


async def test_following_shows_each_new_mark_once() -> None:
    runs = FakeRuns(None, *[a_view()] * 4, CLOSED)
    marks = [LoadMark(cursor=number) for number in (0, 10, 10, 20)]
    screen = FakeScreen()
    result = await a_follower(FakeInstallation(runs=runs, store=FakeStore(*marks)), screen).follow()
    assert result == a_result()
    assert screen.states == ["in the queue", *["running"] * 4]
    assert (screen.cursors, screen.hints) == ([10, 20], [])


async def test_a_message_that_no_bridge_takes_gets_one_hint() -> None:
    screen = FakeScreen()
    runs = FakeRuns(None, None, None, CLOSED)
    await a_follower(FakeInstallation(runs=runs), screen, quiet_seconds=0).follow()
    (hint,) = screen.hints
    assert "docflow bridge service-bus" in hint and "import/P1/T1" in hint


@pytest.mark.parametrize("polling", [0, 2])
async def test_a_run_without_workers_gets_one_hint(polling: int) -> None:
    screen = FakeScreen()
    runs = FakeRuns(a_view(), a_view(), a_view(), CLOSED)
    runs.polling = polling
    await a_follower(FakeInstallation(runs=runs), screen, quiet_seconds=0).follow()
    assert ["docflow worker imports" in hint for hint in screen.hints] == [True] * (polling == 0)


async def test_a_rejected_message_ends_the_wait() -> None:
    installation = FakeInstallation(runs=FakeRuns(None))
    await installation.rejected.record("q", "import/P1/other", "InvalidMessage", "other", b"")
    await installation.rejected.record(
        "q", "import/P1/T1", "InvalidMessage", "sheet: too long", b""
    )
    with pytest.raises(CommandError, match=r"rejected: InvalidMessage: sheet: too long.*show 2"):
        await a_follower(installation, FakeScreen()).follow()


async def test_an_unavailable_database_does_not_end_the_following() -> None:
    class Away(FakeStore):
        async def mark(self, key: TaskKey) -> LoadMark:
            raise Unavailable("the database is unavailable")

    runs = FakeRuns(None, a_view(), PARKED)
    installation = FakeInstallation(runs=runs, store=Away())
    installation.rejected.away = True
    assert await a_follower(installation, FakeScreen()).follow() == Parked(None)

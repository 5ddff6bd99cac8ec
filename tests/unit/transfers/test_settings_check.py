"""Everything that is wrong with a file of job settings is named before it is deployed."""

import json
from pathlib import Path
from typing import Any

from tests.support.cli import run_docflow
from tests.support.transfers.events import READ, WRITE
from workers.shared.cli.context import CliContext
from workflows.transfers.settings_check import SettingsCheck, check_settings


def a_job(*actions: dict[str, Any], name: str = "orders", **fields: Any) -> dict[str, Any]:
    listed = list(actions) or [READ, WRITE]
    return {"Job": name, "Queue": "jobs", **fields, "Actions": {"List": listed}}


def checked(*jobs: dict[str, Any], **fields: Any) -> SettingsCheck:
    text = json.dumps({"Jobs": jobs, **fields})
    return check_settings(text, ["jobs"], keeps_copies=False)


def test_every_problem_of_every_job_is_named_with_its_place() -> None:
    found = checked(
        a_job(Queue="nowhere", KeepCopyDays=3),
        a_job(WRITE, name="late", EventSource="A", Zone="Mars/Olympus"),
        a_job(WRITE, name="early", EventSource="B", SequenceKey="{when}"),
        a_job(
            {**READ, "Path": "in/{name}"},
            {**WRITE, "Path": "{time:%Q}"},
            {"Action": "FireEvent", "Queue": "gone", "Source": "s", "Subject": "t"},
            name="names",
            EventSource="C",
        ),
        a_job(name="one", EventSource="D"),
        a_job(name="one", EventSource="E"),
        a_job(name="other", EventSource="D"),
    )
    assert [each.partition(";")[0] for each in found.problems] == [
        "queue jobs has 2 jobs 'one'",
        "the jobs 'one' and 'other' of queue jobs take the same events",
        "Jobs.0 (orders): there is no queue nowhere",
        "Jobs.0 (orders): KeepCopyDays needs DOCFLOW_TRANSFERS_STAGING_KEY, which is not set",
        "Jobs.1 (late): there is no time zone 'Mars/Olympus'",
        "Jobs.1 (late): WriteFile comes first, and no ReadFile before it",
        "Jobs.2 (early): WriteFile comes first, and no ReadFile before it",
        "Jobs.2 (early): SequenceKey: {when} is not known",
        "Jobs.3 (names): action 1: ReadFile, path: {name} is not known before a file is read",
        "Jobs.3 (names): action 2: WriteFile, path: %Q is not a directive of dates",
        "Jobs.3 (names): action 3 (FireEvent): there is no queue gone",
    ]


def test_fields_of_a_file_are_all_named_however_many_are_wrong() -> None:
    found = checked(*(a_job(name=f"job-{n}", Priority="high", Colour=n) for n in range(12)))
    assert len(found.problems) == len(found.unused) == 12
    assert found.problems[11].startswith("Jobs.11.Priority: ")
    assert found.unused[11] == "Jobs[11].Colour"
    assert "is not JSON" in check_settings("{", [], keeps_copies=False).problems[0]


def test_every_bad_name_of_an_action_is_named() -> None:
    paths = {"Path": "{nme}/{tme:%Y}", "After": "move", "MoveTo": "done/../{day}"}
    found = checked(
        a_job(
            {**READ, **paths, "OnFailureMoveTo": "a//b", "AtLeast": 3, "AtMost": 2},
            {**WRITE, "Path": "{data.path}/{time:%Q}"},
            {"Action": "CallHttp", "Partner": "acme", "Headers": {"X-A": "{one}", "X-B": "{two}"}},
            Zone="Mars/Olympus",
            SequenceKey="{three}{four}",
        )
    )
    assert [each.partition(";")[0] for each in found.problems] == [
        f"Jobs.0 (orders): {problem}"
        for problem in (
            "there is no time zone 'Mars/Olympus'",
            "action 1 (ReadFile): AtLeast is 3, and AtMost 2",
            "action 1: ReadFile, path: {nme} is not known",
            "action 1: ReadFile, path: {tme:...}: only time, yesterday and tomorrow have a format",
            "action 1: ReadFile, move_to: {day} is not known",
            "action 1: ReadFile, move_to: the path 'done/../x' holds an empty, '.' or '..' segment",
            "action 1: ReadFile, on_failure_move_to: the path 'a//b' holds an empty, '.' or '..' "
            "segment",
            "action 2: WriteFile, path: %Q is not a directive of dates",
            "action 3: CallHttp, headers.X-A: {one} is not known",
            "action 3: CallHttp, headers.X-B: {two} is not known",
            "SequenceKey: {three} is not known",
            "SequenceKey: {four} is not known",
        )
    ]


def test_jobs_beside_one_with_wrong_fields_are_checked_as_well() -> None:
    found = checked(
        a_job(Priority="high"),
        a_job(name="late", EventSource="A", Queue="nowhere"),
        a_job(name="late", EventSource="B", Queue="nowhere"),
    )
    assert [each.partition(";")[0].partition(": ")[0] for each in found.problems] == [
        "Jobs.0.Priority",
        "queue nowhere has 2 jobs 'late'",
        "Jobs.1 (late)",
        "Jobs.2 (late)",
    ]


def test_a_file_that_is_right_asks_for_no_event() -> None:
    paths = {**READ, "Path": "{data.order.path}/{data.order.number}-{accountId}"}
    assert checked(a_job(paths, WRITE), SequenceKey=1).problems == ()


def test_the_command_refuses_with_exit_code_2_and_names_what_nothing_reads(tmp_path: Path) -> None:
    def check(text: str) -> tuple[int, str]:
        file = tmp_path / "jobsettings.json"
        file.write_text(text)
        ended = run_docflow("transfer", "check", str(file), context=CliContext({}))
        return ended.exit_code, ended.output

    code, output = check(json.dumps({"Jobs": [a_job(Colour=1)]}))
    assert code == 0, output
    assert "nothing reads the key Jobs[0].Colour" in output and "partners acme" in output
    code, output = check(json.dumps({"Jobs": [a_job(Queue="nowhere")]}))
    assert code == 2 and "refused: Jobs.0 (orders): there is no queue nowhere" in output
    code, output = check('{"Jobs": [], "Jobs": []}')
    assert code == 2 and "'Jobs' stands twice" in output

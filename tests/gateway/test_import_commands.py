"""`docflow import submit` at a gateway with a worker, from options to exit code."""

import json
import re
import uuid
from pathlib import Path

import pytest

from activities.imports.store import SqlImportStore
from tests.gateway.test_client import address as address
from tests.gateway.test_commands import OPERATOR, Terminal
from tests.gateway.test_documents import ROWS
from tests.support.gateway import Stack, token
from workflows.imports.messages import workflow_id

pytestmark = pytest.mark.asyncio(loop_scope="session")
UNREADABLE = b"Nothing,known\n1,2\n"
GIVEN = ("--type", "equipment", "--map", "Tagessatz=rate")


@pytest.fixture
def olga(address: str) -> Terminal:
    return Terminal(address, OPERATOR)


@pytest.fixture
def project() -> str:
    return f"P{uuid.uuid4().hex[:8]}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "Bäume & Kräne.csv"
    made.write_bytes(ROWS)
    return made


async def test_a_document_is_sent_and_followed_to_its_end(
    olga: Terminal, project: str, file: Path
) -> None:
    file.write_bytes(ROWS + b"E-3,Lift,\x1b[31mmany\n")
    one = ("import", "submit", str(file), *GIVEN, "--project", project)
    said = await olga.says(*one, "--task", "T1")
    id = workflow_id(project, "T1")
    assert "created 2, problems 1, rejected 1" in said
    assert re.search(r"4 +Tagessatz +\S*many +is not a number", said) and "\x1b" not in said
    assert f"docflow report {id}" in said
    shown = await olga.json("show", id)
    assert shown["title"] == file.name and shown["details"]["filename"] == file.name
    made_up = await olga.json(*one)
    assert re.fullmatch(rf"import/{project}/equipment-\d+-\d+-[0-9a-f]+", made_up["id"])
    assert made_up["counts"] == {"unchanged": 2, "rejected": 1, "problems": 1}


async def test_a_task_is_done_once(olga: Terminal, project: str, file: Path) -> None:
    one = ("import", "submit", str(file), *GIVEN, "--project", project, "--task", "T1")
    await olga.says(*one)
    assert f"{project}/T1" in await olga.says(*one, code=1)
    delete = ("import", "submit", "--type", "mto_delete", "--service", "S1", "--project", project)
    assert "completed" in await olga.says(*delete, "--task", "D1")
    assert "completed" in await olga.says(*delete)


async def test_a_task_whose_run_was_terminated_is_done_again(
    stack: Stack, olga: Terminal, project: str, file: Path
) -> None:
    one = ("import", "submit", str(file), *GIVEN, "--project", project, "--task", "T1")
    file.write_bytes(UNREADABLE)
    id = workflow_id(project, "T1")
    rows = SqlImportStore(stack.resources.database)
    for swept in (False, True):
        await olga.says(*one, code=4)
        await stack.client.get_workflow_handle(id).terminate("by hand")
        if swept:
            await rows.terminate(id, "terminated by hand")
            assert (await olga.json("show", id))["state"] == "cancelled"
    file.write_bytes(ROWS)
    assert "created 2" in await olga.says(*one)


async def test_many_files_are_tasks_of_their_own_and_the_worst_end_counts(
    olga: Terminal, project: str, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "b.csv").write_bytes(UNREADABLE)
    (tmp_path / ".hidden").write_bytes(b"")
    one = ("import", "submit", str(tmp_path), *GIVEN, "--project", project)
    done = await olga.run(*one)
    assert done.exit_code == 4
    assert len(re.findall(rf"^sent (import/{project}/\S+); see", done.stdout, re.MULTILINE)) == 2
    assert "created 2" in done.stdout and "docflow retry | skip" in done.stdout
    sent = await olga.json(*one, "--no-follow")
    assert [each["is_new"] for each in sent] == [True, True]
    ended = json.loads((await olga.run(*one, "-o", "json")).stdout)
    assert {each["state"] for each in ended} == {"completed", "needs_attention"}


async def test_an_import_that_was_left_to_a_failed_one_is_not_done(
    olga: Terminal, project: str, file: Path, tmp_path: Path
) -> None:
    unreadable = tmp_path / "b.csv"
    unreadable.write_bytes(UNREADABLE)
    work = ("--project", project, "--idempotency-key", "K1")
    await olga.says("import", "submit", str(unreadable), *GIVEN, *work, "--task", "T1", code=4)
    await olga.says("fail", workflow_id(project, "T1"))
    await olga.says("run", "wait", workflow_id(project, "T1"), code=1)
    again = ("import", "submit", str(file), *GIVEN, *work)
    done = await olga.run(*again, "--task", "T2")
    assert (done.exit_code, "is failed already" in done.stdout) == (1, True)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--type", "mto"), "mto: needs --service"),
        (("--type", "equipment", "--service", "S1"), "equipment does not take --service"),
        (("--type", "unknown_type"), "unknown_type"),
        (("--type", "mto_delete", "--service", "S1"), "takes no FILE"),
    ],
)
async def test_wrong_options_are_one_line_and_exit_code_2(
    olga: Terminal, project: str, file: Path, options: tuple[str, ...], says: str
) -> None:
    said = await olga.says("import", "submit", str(file), "--project", project, *options, code=2)
    assert says in said and len(said.splitlines()) == 1
    assert await olga.says("list", "--project", project) == "no such runs\n"


async def test_an_import_is_for_operators(address: str, project: str, file: Path) -> None:
    ida = Terminal(address, token("ida"))
    given = ("import", "submit", str(file), *GIVEN, "--project", project)
    assert "operator" in await ida.says(*given, code=1)

"""`docflow list | show | report | retry | skip | fail | cancel` at a gateway with a worker."""

import asyncio
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.database.runs import SqlRuns
from docflow.client import Client
from tests.gateway.test_client import address as address
from tests.gateway.test_commands import ADMIN, OPERATOR, Terminal
from tests.gateway.test_documents import ROWS, parked
from tests.support.cli import run_docflow
from tests.support.gateway import Stack, token
from tests.support.waiting import eventually
from workers.shared.cli import answers
from workers.shared.cli.context import CliContext
from workflows.shared.runs import RunRecord, RunState

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def olga(address: str) -> Terminal:
    return Terminal(address, OPERATOR)


def a_run(id: str, **fields: object) -> RunRecord:
    now = datetime.now(UTC)
    key = id.partition("/")[2]
    known = {"pipeline": "batches", "kind": "batch", "state": RunState.COMPLETED, "counts": {}}
    facts = {"key": key, "short": key, "own_state": "complete", "answers_at": id, "links": {}}
    moments = {"created_at": now, "changed_at": now}
    return RunRecord.model_validate({"id": id, **known, **facts, **moments, **fields})


async def test_a_parked_run_is_found_shown_corrected_and_reported(
    stack: Stack, olga: Terminal, tmp_path: Path
) -> None:
    project = f"P{uuid.uuid4().hex[:8]}"
    id = await parked(stack, project_id=project)
    name, task = id.removeprefix("import/"), id.rpartition("/")[2]
    mine = ("list", "--project", project)
    listed = await olga.says(*mine, "--state", "parked")
    assert "needs_attention" in listed and id in listed and "missing.csv is not" in listed
    assert (await olga.says(*mine, "--needs-attention", "-o", "name")).split() == [id]
    assert await olga.says(*mine, "--state", "completed") == "no such runs\n"
    assert await olga.says(*mine, "--until", "2026-01-01", "--oldest-first") == "no such runs\n"
    assert "--limit shows more" in await olga.says(*mine, "--limit", "1")
    for short in (id, name, f" {name} ", task):
        assert (await olga.json("show", short))["id"] == id
    shown = await olga.says("show", name)
    assert f"docflow retry | skip | fail | cancel {id}" in shown
    assert "step " in shown and "missing.csv" in shown
    bad = tmp_path / "Kräne (neu).csv"
    bad.write_bytes(ROWS + b"E-3,Lift,many\nE-4,Winch,few\n")
    given = ("--map", "Tagessatz=rate", "--set", "max_rejected_share=0.9", "--file", str(bad))
    assert f"see `docflow show {id}`" in await olga.says("retry", name, *given)
    assert (await olga.json("run", "wait", id))["counts"]["rejected"] == 2
    shown = await olga.says("run", "show", id)
    assert "2 problems" in shown and "many" in shown and f"docflow report {id}" in shown
    details = (await olga.json("show", id))["details"]
    assert details["corrections"][0]["by"] == "olga" and "Kräne" in str(details["corrections"])
    target = tmp_path / "out" / "report.xlsx"
    save = ("report", name, "--out", str(target))
    assert f"cannot write {target}" in await olga.says(*save, code=5)
    target.parent.mkdir()
    assert f"saved {target}" in await olga.says(*save)
    assert target.read_bytes().startswith(b"PK")
    target.write_text("mine")
    assert "add --force" in await olga.says(*save, code=2)
    await olga.says(*save, "--force")
    assert [each.name for each in target.parent.iterdir()] == ["report.xlsx"]
    assert "has ended" in await olga.says("retry", id, code=1)


async def test_answers_are_noted_with_who_gave_them_and_why(
    stack: Stack, address: str, olga: Terminal
) -> None:
    skipped, failed, retried = [await parked(stack) for _ in range(3)]
    await olga.says("skip", skipped, "--reason", "sent again")
    assert (await olga.json("fail", failed))["id"] == failed
    message = {"blob_name": "uploads/other.csv", "document_type": "equipment", "project_id": "P1"}
    changes = ("--set", f"blob_name={message['blob_name']}", "--sheet", "Rev B")
    await olga.says("run", "retry", retried, *changes, "--keep-line", "7")

    async def parked_again() -> bool:
        return "uploads/other.csv" in await olga.says("show", retried)

    await eventually(parked_again)
    await olga.says("cancel", retried)
    alma = Terminal(address, ADMIN)
    noted = [(await alma.json("audit", "--object", id))[0] for id in (skipped, failed, retried)]
    assert {each["who"] for each in noted} == {"olga"}
    assert [each["after"]["answer"] for each in noted] == ["skip", "fail", "cancel"]
    assert noted[0]["reason"] == "sent again"


async def test_many_are_counted_asked_about_and_retried(
    stack: Stack, olga: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = f"P{uuid.uuid4().hex[:8]}"
    ids = {await parked(stack, project_id=project) for _ in range(3)}
    mine = ("retry", "--all", "--project", project)
    assert "there is no terminal to ask at" in await olga.says(*mine, code=2)
    assert "asks no questions" in await olga.says(*mine, "-o", "json", code=2)
    first, *found = (await olga.says(*mine, "--dry-run")).splitlines()
    assert (first, set(found)) == ("3 parked runs", ids)
    monkeypatch.setattr(answers, "is_interactive", lambda: True)
    context = CliContext(olga.environment)
    refused = await asyncio.to_thread(run_docflow, *mine, context=context)
    assert refused.exit_code == 1 and "Retry 3 parked runs? [y/N]" in refused.stdout
    one = sorted(ids)[0]
    done = await olga.json(*mine, "--yes", "--reason", one.rpartition("/")[2].upper())
    assert (done["found"], done["failed"]) == ([one], {})
    assert "3 retried, 0 failed" in await olga.says(*mine, "--yes", "--type", "equipment")
    one, *others = sorted(ids)
    with Client(olga.environment["DOCFLOW_ADDRESS"], OPERATOR) as client:
        chosen = {"project": project, "ids": [one, "import/P1/nobody"]}
        given = {"answer": "retry", "runs": chosen, "dry_run": True}
        found = await asyncio.to_thread(lambda: client.answer_runs(**given).found)
    assert found == [one] and others
    nothing = await olga.says(*mine, "--yes", "--pipeline", "batches")
    assert nothing.splitlines()[0] == "0 parked runs"
    for id in ids:
        await olga.says("fail", id)


async def test_a_short_form_of_several_runs_is_refused_with_their_ids(
    stack: Stack, address: str, olga: Terminal
) -> None:
    rows, same = SqlRuns(stack.resources.database), uuid.uuid4().hex[:7]
    ids = [f"import/{project}/{same}" for project in ("PA", "PB")]
    for id in ids:
        facts = {"pipeline": "imports", "kind": "equipment", "short": same}
        await rows.accept(a_run(id, **facts))
    await rows.accept(a_run(f"batch/7/{same}", needs_attention=False))
    refused = await olga.says("show", same, code=2)
    assert all(id in refused for id in ids) and "write one of" in refused
    assert (await olga.json("show", f"PA/{same}"))["id"] == ids[0]
    mapper = Terminal(address, token("ida"))
    assert "there is no run" in await mapper.says("show", f"PA/{same}", code=1)
    listed = await olga.says("list", "--pipeline", "imports", "--text", same)
    assert ids[0] in listed and "batch/7" not in listed


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("show", "export/P1/T1"), 2, "names no run; write "),
        (("show", "P1/\x1b"), 2, "names no run; write "),
        (("show", "batch/999999/1"), 1, "there is no run batch/999999/1"),
        (("show", "nobody"), 1, "there is no run nobody: write "),
        (("list", "--state", "lost"), 2, "no run can be lost; there are "),
        (("list", "--pipeline", "bathces"), 2, "there is no pipeline bathces; there are batches"),
        (("report", "batch/999999/1"), 1, "there is no run"),
    ],
)
async def test_what_names_nothing_is_refused_with_what_there_is(
    olga: Terminal, arguments: tuple[str, ...], code: int, says: str
) -> None:
    refused = await olga.says(*arguments, code=code)
    assert says in refused and len(refused.splitlines()) == 1


async def test_what_a_run_does_not_take_is_refused_with_what_it_offers(
    stack: Stack, olga: Terminal, tmp_path: Path
) -> None:
    id = await parked(stack)
    garbled = tmp_path / "message.json"
    for body, says in ((b"[]", "is not a JSON object"), (b" " * 300_000, "over 256 KiB")):
        garbled.write_bytes(body)
        assert says in await olga.says("retry", id, "--message", str(garbled), code=2)
    garbled.write_text('{"document_type": "mto", "task_id": "T1"}')
    assert "Field required" in await olga.says("retry", id, "--message", str(garbled), code=2)
    assert "500" in await olga.says("fail", id, "--reason", "x" * 501, code=2)
    rows = SqlRuns(stack.resources.database)
    batch = f"batch/8/{uuid.uuid4().int % 10**6 + 1}"
    await rows.accept(a_run(batch))
    assert "has no report; offered: retry" in await olga.says("report", batch, code=2)
    assert "takes no changes" in await olga.says("retry", batch, "--sheet", "x", code=2)
    await olga.says("fail", id)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "name the ID of a run, or --all"),
        (("P1/T1", "--all"), "--all and an ID do not go together"),
        (("P1/T1", "--yes"), "yes needs --all"),
        (("P1/T1", "--type", "mto"), "type needs --all"),
        (("--all", "--sheet", "x"), "--all and changes do not go together"),
        (("P1/T1", "--map", "Qty"), "--map 'Qty': write NAME=VALUE"),
        (("P1/T1", "--set", "=x"), "--set '=x': write NAME=VALUE"),
        (("P1/T1", "--file", __file__, "--message", __file__), "--file and --message do not go"),
    ],
)
async def test_options_that_do_not_go_together_are_refused(
    options: tuple[str, ...], said: str
) -> None:
    assert said in await Terminal("", "").says("retry", *options, code=2)

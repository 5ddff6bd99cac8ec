"""One pipeline more, and not a line changed for it: all there is of it stands in this folder."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import create_model
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer
from typer.testing import CliRunner

from adapters.database.engine import open_database
from adapters.database.runs import SqlRuns
from adapters.database.schema import upgrade
from stack.temporal import temporal_server
from tests.replay.record import cases, record
from tests.replay.test_contracts import changes, every_contract, schemas
from tests.sixth.contracts import ParcelAnswer, ParcelInput
from tests.sixth.register import NAME, PARCELS
from tests.support.fresh_database import fresh_url
from tests.support.notifications import an_order
from tests.support.processes import ROOT, says
from tests.support.waiting import eventually
from tests.unit.test_contract_bounds import largest, results
from workers import catalogue
from workers.shared.cli.app import build_app
from workers.shared.connect import connect
from workers.shared.plugin import docflow_plugin, passthrough
from workers.shared.register import recognise
from workers.shared.services.errors import InvalidRequest
from workers.shared.services.identity import OPERATOR, VIEWER, Identity
from workers.shared.services.inbox import Inbox
from workers.shared.services.run_actions import AnswerRequest
from workers.shared.services.run_notifications import NotificationComposer
from workers.shared.services.run_service import RunService
from workflows.shared.notifications import NotificationPolicies
from workflows.shared.runs import RunFilter

OLGA = Identity("olga", (), frozenset({OPERATOR}))
ANNA = Identity("anna", (1,), frozenset({VIEWER}))


@pytest.fixture(autouse=True)
def one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "PIPELINES", (*catalogue.PIPELINES, PARCELS))


async def docflow(settings: Mapping[str, str], *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.sixth", *arguments),
        cwd=ROOT,
        env=dict(settings),
        stdout=PIPE,
        stderr=PIPE,
    )


async def printed(settings: Mapping[str, str], *arguments: str) -> Any:
    """The JSON that a command prints, whatever it says of parts that this test does not run."""
    process = await docflow(settings, *arguments, "--json")
    out, error = await process.communicate()
    return json.loads(out) if out else pytest.fail(error.decode())


async def test_from_its_bridge_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "box").touch()
    async with temporal_server(tmp_path / "temporal", ui=False, in_memory=True) as temporal:
        settings = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "TEMPORAL_ADDRESS": temporal.address,
            "DATABASE_URL": fresh_url(),
            "DOCFLOW_BLOB_FOLDER": str(tmp_path / "blobs"),
            "DOCFLOW_SCRATCH": str(tmp_path / "scratch"),
            "PARCELS_GRAMS": "10",
            "PARCELS_FOLDER": str(tmp_path / "in"),
        }
        await upgrade(settings["DATABASE_URL"])
        worker = await docflow(settings, "worker", NAME, "--with-bridge")
        try:
            await says(worker, b"working on parcels")
            await _answered(settings, await connect(temporal.address))
        finally:
            worker.terminate()
            await worker.communicate()
        assert worker.returncode == 0


async def _answered(settings: Mapping[str, str], client: Client) -> None:
    async with open_database(settings["DATABASE_URL"]) as database:
        inbox = Inbox(client, SqlRuns(database))

        async def shown() -> bool:
            return bool(await inbox.read(OLGA))

        await eventually(shown)
        [entry] = await inbox.read(OLGA)
        assert await inbox.read(ANNA) == []
    assert (entry.kind, entry.title, entry.state) == ("Parcel", "Parcel box", "parked")
    status = await printed(settings, "status")
    seen = status["pipelines"][NAME]
    assert (seen["workers"], seen["open"], seen["counts"]) == (1, 1, {"parked": 1, "completed": 0})
    assert [row["id"] for row in status["needs_attention"]] == ["parcel/box"]
    reconciled = await docflow(settings, "setup", "--schedules", "--json")
    out, error = await reconciled.communicate()
    assert json.loads(out)["parcel-count"] == "as declared", error

    run = recognise(catalogue.PIPELINES, entry.workflow_id)
    assert run is not None and run.key == "box"
    handle = client.get_workflow_handle(run.workflow_id)
    before = await handle.query("status", result_type=run.kind.status)
    assert before.state == "parked"

    async with open_database(settings["DATABASE_URL"]) as database:
        service = RunService(SqlRuns(database), client, {}, settings)
        [listed] = await service.list(OLGA, RunFilter(10, needs_attention=True))
        assert (listed.id, listed.own_state) == ("parcel/box", "parked")
        assert await service.list(OLGA, RunFilter(10, pipelines=[NAME], state="completed")) == []
        shown = await service.get(OLGA, "parcel/box")
        assert (shown.run.own_state, shown.run.needs_attention) == ("parked", True)
        assert (shown.details, shown.answers) == ({"state": "parked"}, ("retry",))
        with pytest.raises(InvalidRequest, match="parcel/box has no skip; offered: retry"):
            await service.answer(OLGA, "parcel/box", AnswerRequest("skip"))
        await service.answer(OLGA, "parcel/box", AnswerRequest("retry"))
    assert await asyncio.wait_for(handle.result(), 60) == {"grams": 30}


def test_its_commands_are_there() -> None:
    app, runner = build_app(), CliRunner()
    for arguments, text in (
        (("parcels", "weigh", "box"), "3"),
        (("worker",), "Work on parcels."),
        (("worker",), "on parcels when PARCELS_GRAMS is set"),
        (("bridge",), "parcel-post"),
    ):
        assert text in " ".join(runner.invoke(app, arguments).output.split())


async def test_its_histories_are_recorded_and_replayed(tmp_path: Path) -> None:
    assert "plain" in cases()["ParcelDelivery"]
    await record("ParcelDelivery", "plain", tmp_path)
    text = (tmp_path / "ParcelDelivery" / "plain.json").read_text()
    replayer = Replayer(workflows=PARCELS.workflows(), plugins=[docflow_plugin()])
    result = await replayer.replay_workflow(WorkflowHistory.from_json("parcel/plain", text))
    assert result.replay_failure is None
    assert "tests.sixth.contracts" in passthrough()


def test_its_contracts_are_locked() -> None:
    locked = every_contract()
    assert {name for name in locked if name.startswith("parcels.")} == {
        f"parcels.{name}"
        for name in ("ParcelAnswer", "ParcelCount", "ParcelInput", "ParcelStatus", "ParcelWeight")
    }
    planted = create_model(
        "ParcelInput", __base__=ParcelInput, __module__=ParcelInput.__module__, planted=(int, ...)
    )
    found = {**locked, **schemas(NAME, [planted])}
    assert changes(locked, found) == ["parcels.ParcelInput.planted needs a default"]


def test_its_results_are_bounded() -> None:
    assert {found.__name__ for found in results(PARCELS)} == {"ParcelStatus", "ParcelWeight"}
    for found in results(PARCELS):
        found.model_validate(largest(found.model_json_schema(), {}, found.__name__))


def test_its_answers_are_what_its_workflow_takes() -> None:
    assert PARCELS.runs[0].answers == {"retry": ParcelAnswer}


def test_a_notice_names_its_run_and_the_answers_that_it_takes() -> None:
    compose = NotificationComposer(
        NotificationPolicies(("ops@example.org",)), None, "http://ui", "n"
    ).compose
    notice = compose(an_order("parcel/p1", answers=("retry",)))
    assert (notice.pipeline, notice.recipients) == (NAME, ("ops@example.org",))
    assert notice.link == "http://ui/namespaces/n/workflows/parcel%2Fp1/0190"
    assert notice.steps[0].command.startswith("docflow retry parcel/p1")

"""`docflow routes` over a database."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from activities.transfers.store import SqlTransferStore
from adapters.database.access import SqlAudit
from adapters.database.engine import open_database
from adapters.ports.access import AuditFilter
from tests.support.cli import run_docflow_in_thread
from tests.support.transfers.events import a_transfer, an_event
from workers.shared.cli.context import CliContext
from workflows.transfers.events import TransferStatus

Docflow = Callable[..., Any]


@pytest.fixture
def docflow(database_url: str) -> Docflow:
    context = CliContext({"DATABASE_URL": database_url, "USER": "ida"})

    async def call(*arguments: str, code: int = 0) -> Result:
        done = await run_docflow_in_thread("routes", *arguments, context=context)
        assert done.exit_code == code, done.output
        return done

    return call


async def test_of_many_events_that_no_rule_matched_the_number_is_reported(
    docflow: Docflow, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.transfers.routes._UNMATCHED", 1)
    async with open_database(database_url) as database:
        for id in ("5eed" * 16, "f00d" * 16):
            row = a_transfer(id, TransferStatus.NO_ASSIGNED, source="TMS", event_id=id)
            await SqlTransferStore(database).record(row)
    said = "the newest 1 of 2 events"
    assert said in (await docflow("list", "--unmatched")).stderr
    shown = await docflow("list", "--unmatched", "--json")
    assert said in shown.stderr and len(json.loads(shown.stdout)) == 1


async def test_a_rule_is_added_tested_disabled_and_removed(
    docflow: Docflow, tmp_path: Path, database_url: str
) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps(an_event()))
    assert "there are no rules" in (await docflow("list")).output
    assert "none of 0 rules" in (await docflow("test", str(event), code=1)).output
    await docflow("add", "jobstmsroute", "--source", "TMS.*", "--account", "TMS001")
    await docflow("add", "jobs", "--priority", "-1")
    assert "did you mean jobs" in (await docflow("add", "jobz", code=1)).output
    tie = await docflow("add", "jobscalgary", "--source", "TMS.*", "--account", "TMS001", code=1)
    assert "jobstmsroute/1" in tie.output
    assert "jobstmsroute/1 takes it" in (await docflow("test", str(event))).output
    await docflow("disable", "jobstmsroute", "1")
    verdict = json.loads((await docflow("test", str(event), "--json")).output)
    assert verdict["winner"]["queue"] == "jobs"
    await docflow("enable", "jobstmsroute", "1")
    await docflow("remove", "jobs", "1")
    rules = json.loads((await docflow("list", "--json")).output)["rules"]
    assert [each["queue"] for each in rules] == ["jobstmsroute"]
    assert "removed" in (await docflow("history")).output
    async with open_database(database_url) as database:
        noted = await SqlAudit(database).list(AuditFilter(who="ida", others=True), 50)
    assert [(each.action, each.object, each.status) for each in noted[2::-1]] == [
        ("routes disable", "jobstmsroute/1", 0),
        ("routes enable", "jobstmsroute/1", 0),
        ("routes remove", "jobs/1", 0),
    ]
    assert {each.status for each in noted if each.action == "routes add"} == {0, 1}
    (tmp_path / "none.json").write_text("[]")
    await docflow("test", str(tmp_path / "none.json"), code=2)

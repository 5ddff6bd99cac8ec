"""`docflow route` at a gateway."""

import json
from pathlib import Path

import pytest

from adapters.database.access import SqlAudit
from adapters.ports.access import AuditFilter
from tests.gateway.test_commands import Terminal
from tests.gateway.transfers.conftest import TransferGateway
from tests.support.transfers.events import an_event
from workflows.transfers.routes import RouteRule

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_rule_is_added_tested_disabled_and_removed(
    transfers: TransferGateway, olga: Terminal, tmp_path: Path
) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps(an_event()))
    assert "there are no rules" in await olga.says("route", "list")
    assert await olga.says("route", "test", str(event), code=1) == ""
    for_tms = ("--source", "TMS.*", "--account", "TMS001")
    await olga.says("route", "add", "jobstmsroute", *for_tms)
    await olga.says("route", "add", "jobs", "--priority", "-1")
    assert "did you mean jobs" in await olga.says("route", "add", "jobz", code=2)
    assert "jobstmsroute/1" in await olga.says("route", "add", "jobs", *for_tms, code=2)
    assert "jobstmsroute/1 takes it" in await olga.says("route", "test", str(event))
    assert "is disabled" in await olga.says("route", "change", "jobstmsroute", "1", "--disable")
    assert (await olga.json("route", "test", str(event)))["winner"]["queue"] == "jobs"
    await olga.says("route", "change", "jobstmsroute", "1", "--enable")
    changes = ("--rule", "1", "--priority", "-2")
    assert "needs --rule" in await olga.says("route", "add", "jobs", "--replace", code=2)
    assert "already" in await olga.says("route", "add", "jobs", *changes, code=2)
    changed = await olga.json("route", "add", "jobs", *changes, "--replace")
    assert (changed["priority"], changed["by"]) == (-2, "olga")
    await olga.says("route", "remove", "jobs", "1")
    assert (await olga.says("route", "list", "-o", "name")).split() == ["jobstmsroute/1"]
    assert (await olga.json("route", "list", "--history"))[0]["change"] == "removed"
    assert "removed" in await olga.says("route", "list", "--history", "--limit", "1")
    noted = await SqlAudit(transfers.resources.database).list(
        AuditFilter(who="olga", organisations=[1], others=True), 50
    )
    verbs = [each for each in noted if each.action in ("disableRoute", "enableRoute")]
    assert {(each.object, each.status) for each in verbs[:2]} == {("jobstmsroute/1", 200)}
    (tmp_path / "none.json").write_text("[]")
    await olga.says("route", "test", str(tmp_path / "none.json"), code=2)


async def test_rules_that_are_wrong_are_named_beside_the_list(
    transfers: TransferGateway, olga: Terminal
) -> None:
    for number in ("1", "2"):
        await transfers.routes.put(RouteRule(queue="jobs", rule=number, source="TMS.*"))
    listed = await olga.says("route", "list", "--queue", "jobs")
    assert "jobs/1 and jobs/2 could take the same event; jobs/1 gets it" in listed

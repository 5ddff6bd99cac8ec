"""An action of a package: found, checked when a job is planned, and carried out."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.transfers.api import OwnActions, installed_actions
from activities.transfers.custom import CustomActions, CustomPorts
from activities.transfers.reception import Planning, PlanningPorts
from tests.support.imports.activities import environment
from tests.support.memory.partners import MemoryPartners
from tests.support.transfers.actions import Endpoints
from tests.support.transfers.events import ARRIVED, READ, WRITE, a_job_order
from tests.unit.transfers.test_plans import OneJob
from workflows.transfers.job_settings import verb_of
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.runs import PlanInput
from workflows.transfers.settings import Custom


@pytest.fixture
def actions(site: Path, monkeypatch: pytest.MonkeyPatch) -> OwnActions:
    monkeypatch.syspath_prepend(str(site))
    return installed_actions.__wrapped__()


async def test_an_action_adds_a_file(actions: OwnActions, tmp_path: Path) -> None:
    ends = Endpoints.at(tmp_path)
    action = Custom(name="list_files", settings={"at_most": 2})
    order = ends.order(action, {})
    assert verb_of(action) == "transfers.custom"
    files = await ends.staged(order, **{"a.csv": b"1", "b.csv": b"22"})
    ports = CustomPorts(actions, ends.ports.staging, tmp_path / "scratch")
    carried = CustomActions(ports).custom
    result = await environment().run(carried, order.model_copy(update={"files": files}))
    assert result.remarks == ("2 files are listed",)
    assert await ends.contents(result.files) == {
        "a.csv": b"1",
        "b.csv": b"22",
        "files.txt": b"a.csv 1\nb.csv 2\n",
    }
    assert list((tmp_path / "scratch").iterdir()) == []
    three = await ends.staged(order, a=b"1", b=b"2", c=b"3")
    with pytest.raises(ApplicationError, match="3 files came; 2 may"):
        await environment().run(carried, order.model_copy(update={"files": three}))


@pytest.mark.parametrize(
    ("custom", "said"),
    [
        ({"Name": "list_files", "Settings": {"at_most": 5}}, None),
        (
            {"Name": "list_files", "Settings": {"at_most": "many", "at_least": 1}},
            "the settings of 'list_files' are wrong: at_most: .*; at_least: ",
        ),
        ({"Name": "sort_files"}, "no action 'sort_files'; installed are: list_files. Install"),
    ],
)
async def test_a_job_with_wrong_own_actions_is_not_begun(
    actions: OwnActions, custom: dict[str, Any], said: str | None
) -> None:
    listed = [READ, {"Action": "Custom", **custom}, WRITE]
    job: Any = OneJob({"Actions": {"List": listed}})
    partners = MemoryPartners(*(Partner(name=n, kind=PlaceKind.FOLDER) for n in ("acme", "store")))
    ports = PlanningPorts(job, partners, ["jobs"], job, job)
    planning = Planning(dataclasses.replace(ports, own=actions))
    order = PlanInput(job=a_job_order(), at=ARRIVED)
    if said is not None:
        with pytest.raises(ApplicationError, match=said):
            await environment().run(planning.load_plan, order)
        return
    plan = await environment().run(planning.load_plan, order)
    assert [each.action for each in plan.job.actions.list] == ["ReadFile", "Custom", "WriteFile"]

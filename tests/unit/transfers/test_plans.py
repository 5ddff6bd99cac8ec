"""What a job does, as it is decided when its run begins."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.transfers.reception import Planning, PlanningPorts
from activities.transfers.records import Transfer
from adapters.ports.transfers import SettingsFile
from tests.support.imports.activities import environment
from tests.support.memory.partners import MemoryPartners
from tests.support.transfers.events import ARRIVED, READ, WRITE, a_job_order
from workflows.shared.contracts import BlobRef
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.runs import PlanInput, TransferPlan
from workflows.transfers.settings import WriteFile

EVENT = a_job_order()
ENCRYPT = {"Action": "Encrypt", "Partner": "acme"}


@dataclass
class OneJob:
    """`jobsettings.json` with one job, and rows that are kept nowhere."""

    fields: dict[str, Any]

    async def read(self) -> SettingsFile:
        job = {"Job": "orders", "Queue": "jobs", **self.fields}
        return SettingsFile(json.dumps({"Jobs": [job]}).encode(), BlobRef(name="file", size=1))

    async def record(self, row: Transfer) -> bool:
        return True


async def planned(
    *actions: dict[str, Any], order: Any = EVENT, keeps_copies: bool = True, **fields: Any
) -> TransferPlan:
    job: Any = OneJob({**fields, "Actions": {"List": [*actions]}})
    names = ("acme", "store", "backup")
    partners = MemoryPartners(*(Partner(name=name, kind=PlaceKind.FOLDER) for name in names))
    ports = PlanningPorts(job, partners, ["jobs"], job, job, keeps_copies)
    return await environment().run(Planning(ports).load_plan, PlanInput(job=order, at=ARRIVED))


async def test_a_kept_copy_goes_only_where_the_same_files_were_written() -> None:
    order = a_job_order(resent_from="5eed" * 16, resend=1)
    elsewhere = {**WRITE, "Partner": "backup"}
    plan = await planned(READ, WRITE, ENCRYPT, elsewhere, order=order)
    assert [each.action for each in plan.job.actions.list] == ["WriteFile"]
    assert [each.partner for each in plan.job.actions.list if isinstance(each, WriteFile)] == [
        "backup"
    ]
    assert plan.remarks == ("not sent to store, which was sent other files",)
    with pytest.raises(ApplicationError, match="there is nothing to send again"):
        await planned(READ, WRITE, ENCRYPT, order=order)


async def test_settings_that_are_read_again_keep_the_turn_of_the_run() -> None:
    before = await planned(READ, WRITE, SequenceKey="{accountId}")
    job: Any = OneJob({"SequenceKey": "{id}", "Actions": {"List": [READ, WRITE], "Retries": 3}})
    partners = MemoryPartners(*(Partner(name=n, kind=PlaceKind.FOLDER) for n in ("acme", "store")))
    planning = Planning(PlanningPorts(job, partners, ["jobs"], job, job))
    again = PlanInput(job=EVENT, at=ARRIVED, plan=before, index=1, settings=True)
    plan = await environment().run(planning.load_plan, again)
    assert plan.sequence == before.sequence == "TMS001"
    assert plan.remarks == (
        "SequenceKey has changed meanwhile: this run continues with 'TMS001'",
        "nothing reads the key Jobs[0].Actions.Retries",
    )


async def test_copies_that_cannot_be_encrypted_are_refused_before_anything_is_read() -> None:
    with pytest.raises(ApplicationError, match="set DOCFLOW_TRANSFERS_STAGING_KEY"):
        await planned(READ, WRITE, KeepCopyDays=3, keeps_copies=False)
    assert (await planned(READ, WRITE, KeepCopyDays=3)).job.keep_copy_days == 3

"""Failed transfers that are carried out anew, over real folders, tables and a real server."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.store import SqlRouteStore
from tests.support.transfers.events import READ, WRITE, a_message
from tests.support.transfers.installation import OLGA
from tests.support.transfers.whole import WholeWorkers, folder_settings, whole_workers
from tests.support.waiting import eventually
from workers.transfers.factory import transfer_service
from workers.transfers.redrive import Redrives
from workers.transfers.starts import TransferIntake
from workflows.shared.contracts import Answer
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.routes import RouteRule
from workflows.transfers.runs import TransferView, file_job_id

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUEUES = "queues:\n- name: jobs\n  handler: x\n  slots: 5\n"
FIRST = {**WRITE, "Path": "{name}"}
SECOND = {**WRITE, "Partner": "strict", "Path": "{name}", "Overwrite": "refuse"}


@dataclass
class Site:
    """A partner with files, one that takes them, and one where none is replaced."""

    folder: Path
    workers: WholeWorkers
    redrives: Redrives

    @property
    def source(self) -> Path:
        return self.folder / "share/in/orders.csv"

    def written(self) -> list[bytes | None]:
        """What stands at both partners."""
        files = (self.folder / "out/orders.csv", self.folder / "strict/orders.csv")
        return [file.read_bytes() if file.exists() else None for file in files]

    async def arrive(self, id: str) -> str:
        """An event of the file; the id of its transfer."""
        raw, transfer = a_message(id=id)
        intake = TransferIntake(self.workers.client, self.workers.resources.rejected, way_in="in")
        await intake.accept(raw, 0, None)
        return transfer

    async def parked(self, transfer: str) -> TransferView:
        """Wait until a person is asked."""
        run = self.workers.client.get_workflow_handle(
            file_job_id(transfer), result_type=TransferView
        )
        views: list[TransferView] = []

        async def is_parked() -> bool:
            try:
                views.append(await run.query("status", result_type=TransferView))
            except RPCError as error:
                # The event is still on its way.
                assert error.status is RPCStatusCode.NOT_FOUND
                return False
            return views[-1].since is not None

        await eventually(is_parked)
        return views[-1]

    async def give_up(self, transfer: str) -> None:
        """Let a parked transfer fail."""
        run = self.workers.client.get_workflow_handle(file_job_id(transfer))
        await run.execute_update("fail", Answer(by="ann"))
        with pytest.raises(WorkflowFailureError):
            await run.result()

    async def done(self, transfer: str) -> TransferView:
        """Wait for the end."""
        run = self.workers.client.get_workflow_handle(
            file_job_id(transfer), result_type=TransferView
        )
        return await run.result()


@pytest_asyncio.fixture(loop_scope="module")
async def site(client: Client, tmp_path: Path) -> AsyncGenerator[Site]:
    for name in ("share/in", "out", "strict"):
        (tmp_path / name).mkdir(parents=True)
    settings = folder_settings(tmp_path, client.service_client.config.target_host, QUEUES)
    once = {"RetryFailureSource": 0, "RetryFailureDestination": 0}
    job = {"Job": "orders", "Queue": "jobs", "Actions": {**once, "List": [READ, FIRST, SECOND]}}
    (tmp_path / "jobsettings.json").write_text(json.dumps({"Jobs": [job]}))
    async with whole_workers(settings) as workers:
        database = workers.resources.database
        for name, folder in (("acme", "share"), ("store", "out"), ("strict", "strict")):
            where = str(tmp_path / folder)
            await SqlPartnerStore(database).put(
                Partner(name=name, kind=PlaceKind.FOLDER, container=where)
            )
        await SqlRouteStore(database).put(RouteRule(queue="jobs", rule="1", source="TMS*"))
        service = transfer_service(settings, workers.client, database)
        redrives = Redrives(service, lambda: workers.resources.blobs)
        yield Site(tmp_path, workers, redrives)


async def failed_at_the_second_partner(site: Site, id: str) -> str:
    """A transfer that has written to the first partner alone."""
    site.source.write_bytes(b"as it was")
    taken = site.folder / "strict/orders.csv"
    taken.write_bytes(b"another")
    transfer = await site.arrive(id)
    assert (await site.parked(transfer)).actions[2].state == "parked"
    await site.give_up(transfer)
    taken.unlink()
    assert site.written() == [b"as it was", None]
    return transfer


async def test_a_redrive_writes_what_is_left(site: Site) -> None:
    transfer = await failed_at_the_second_partner(site, "left")
    (site.folder / "out/orders.csv").unlink()
    done = await site.redrives.redrive(OLGA, transfer)
    assert (done.from_action, done.done_before) == (3, ["2. WriteFile"])
    await site.done(done.started.transfer_id)
    assert site.written() == [None, b"as it was"]


async def test_an_action_that_sends_elsewhere_by_now_is_carried_out(site: Site) -> None:
    """The first place is that of another partner: what was written there is not what is asked."""
    transfer = await failed_at_the_second_partner(site, "elsewhere")
    settings = json.loads((site.folder / "jobsettings.json").read_text())
    settings["Jobs"][0]["Actions"]["List"][1:] = [SECOND, {**FIRST, "Path": "again/{name}"}]
    (site.folder / "jobsettings.json").write_text(json.dumps(settings))
    done = await site.redrives.redrive(OLGA, transfer)
    view = await site.done(done.started.transfer_id)
    assert site.written() == [b"as it was", b"as it was"]
    assert view.reason == (
        f"2. WriteFile went to store in transfer {transfer[:12]}, and is carried out for strict"
    )


async def test_no_partner_gets_other_bytes_than_another(site: Site) -> None:
    """The source has changed since; a redrive of the redrive remembers what was done."""
    transfer = await failed_at_the_second_partner(site, "changed")
    site.source.write_bytes(b"as it is")
    again = (await site.redrives.redrive(OLGA, transfer)).started.transfer_id
    asked = await site.parked(again)
    assert asked.reason is not None
    assert f"no longer what transfer {transfer[:12]} has read" in asked.reason
    assert "2. WriteFile is done" in asked.reason
    await site.give_up(again)
    third = await site.redrives.redrive(OLGA, again)
    assert third.done_before == ["2. WriteFile"]
    await site.parked(third.started.transfer_id)
    site.source.write_bytes(b"as it was")
    run = site.workers.client.get_workflow_handle(file_job_id(third.started.transfer_id))
    await run.execute_update("retry", Answer(by="ann"))
    await site.done(third.started.transfer_id)
    assert site.written() == [b"as it was", b"as it was"]


async def test_everything_is_carried_out_with_what_is_there_now(site: Site) -> None:
    transfer = await failed_at_the_second_partner(site, "all")
    site.source.write_bytes(b"as it is")
    (site.folder / "out/orders.csv").unlink()
    done = await site.redrives.redrive(OLGA, transfer, 1)
    assert not done.done_before
    await site.done(done.started.transfer_id)
    assert site.written() == [b"as it is", b"as it is"]


async def test_a_transfer_that_failed_before_its_first_action_is_redriven(site: Site) -> None:
    settings = site.folder / "jobsettings.json"
    right = settings.read_text()
    settings.write_text("{}")
    site.source.write_bytes(b"as it was")
    transfer = await site.arrive("early")
    await site.parked(transfer)
    await site.give_up(transfer)
    settings.write_text(right)
    done = await site.redrives.redrive(OLGA, transfer)
    assert (done.from_action, done.done_before) == (1, [])
    await site.done(done.started.transfer_id)
    assert site.written() == [b"as it was", b"as it was"]

"""Who may do what with transfers: those of an organisation, and those of none."""

import json
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio

from activities.transfers.cloud_events import head_of
from tests.gateway.transfers.conftest import TransferGateway
from tests.gateway.transfers.test_events_api import event
from tests.support.access import (
    INVALID,
    Operation,
    caller,
    finds_nothing_of_others,
    needs_a_token,
    needs_its_least_role,
    operations_of,
    signed,
)
from tests.support.transfers.events import a_transfer
from workers.shared.services.errors import QuotaExceeded
from workers.shared.services.identity import ROLES, Identity
from workers.transfers.factory import transfer_service
from workflows.transfers.events import TransferStatus
from workflows.transfers.runs import file_job_id

pytestmark = pytest.mark.asyncio(loop_scope="session")
SUBJECT = "invoices of the harbour"
ONE = "/api/v1/transfers/{}"


@pytest_asyncio.fixture(loop_scope="session")
async def theirs(transfers: TransferGateway) -> AsyncIterator[str]:
    """A transfer of organisation 1 that waits for a queue."""
    id = uuid4().hex * 2
    row = a_transfer(id, TransferStatus.NO_ASSIGNED, organisation_id=1, subject=SUBJECT)
    await transfers.store.record(row)
    yield id


@pytest.mark.parametrize("kind", INVALID)
async def test_every_operation_needs_a_token(transfers: TransferGateway, kind: str) -> None:
    await needs_a_token(transfers.app, operations_of(transfers.app, "/api/v1/"), kind)


@pytest.mark.parametrize("role", [None, *ROLES])
async def test_every_operation_needs_its_least_role(
    transfers: TransferGateway, theirs: str, role: str | None
) -> None:
    operations = operations_of(transfers.app, "/api/v1/transfers")
    assert len(operations) == 8
    await needs_its_least_role(transfers.app, operations, role, theirs)


async def test_strangers_find_nothing_of_an_organisation(
    transfers: TransferGateway, theirs: str
) -> None:
    def names(each: Operation) -> bool:
        return "/transfers/{id}" in each.path

    operations = [
        *operations_of(transfers.app, "/api/v1/transfers"),
        *operations_of(transfers.app, "/api/v1/runs"),
    ]
    await finds_nothing_of_others(transfers.app, operations, theirs, [SUBJECT], names)
    for roles in (["admin"], {"2": ["admin"]}):
        async with caller(transfers.app, signed(roles, organisations=[2])) as stranger:
            for path in (ONE.format(theirs), f"/api/v1/runs/transfer/{theirs}"):
                assert (await stranger.get(path)).status_code == 404
            for path in ("/api/v1/transfers?limit=200", "/api/v1/runs?limit=200", "/api/inbox"):
                assert theirs not in (await stranger.get(path)).text


async def test_members_see_their_transfers_and_their_operators_answer_them(
    transfers: TransferGateway, theirs: str
) -> None:
    answers = {"reroute": None, "resend": None, "redrive": None}
    async with caller(transfers.app, signed({"1": ["viewer"]})) as vera:
        shown = (await vera.get(ONE.format(theirs))).json()
        assert (shown["organisation_id"], shown["subject"]) == (1, SUBJECT)
        assert theirs in (await vera.get("/api/v1/transfers?limit=200")).text
        for verb in answers:
            assert (await vera.post(f"{ONE.format(theirs)}/{verb}")).status_code == 403
    async with caller(transfers.app, signed({"1": ["operator"]})) as otto:
        # It waits for a rule, and neither has succeeded nor failed.
        for verb in ("resend", "redrive"):
            assert (await otto.post(f"{ONE.format(theirs)}/{verb}")).status_code == 409
        assert (await otto.post(f"{ONE.format(theirs)}/reroute")).status_code == 200
        # Queues, partners and settings belong to no organisation.
        for verb, body in (("assign", {"queue": "jobs"}), ("resend", {"partner": "acme"})):
            refused = await otto.post(f"{ONE.format(theirs)}/{verb}", json=body)
            assert refused.status_code == 403, refused.text
        run = f"/api/v1/runs/transfer/{theirs}"
        corrected = await otto.post(f"{run}/retry", json={"input": {"Path": "elsewhere"}})
        assert corrected.status_code in (403, 422), corrected.text


async def test_a_transfer_offers_what_its_reader_may_do(transfers: TransferGateway) -> None:
    id = uuid4().hex * 2
    row = a_transfer(id, TransferStatus.FAILED, organisation_id=1, run=file_job_id(id))
    await transfers.store.record(row)
    for roles, offered in (({"1": ["viewer"]}, []), ({"1": ["operator"]}, ["redrive"])):
        async with caller(transfers.app, signed(roles)) as reader:
            assert (await reader.get(ONE.format(id))).json()["offers"] == offered


@pytest.mark.parametrize("by", ["request", "event"])
async def test_an_event_belongs_to_the_organisation_that_is_named(
    transfers: TransferGateway, by: str
) -> None:
    query = {"organisation_id": "1"} if by == "request" else {}
    body = event() if by == "request" else event(docfloworganisation="1")
    async with transfers.api() as olga:
        sent = await olga.post("/api/v1/transfers", json=body, params=query)
        again = await olga.post("/api/v1/transfers", json=body, params=query)
        assert (sent.status_code, again.status_code) == (201, 200), sent.text
        id = sent.json()["transfer_id"]
        foreign = await olga.post("/api/v1/transfers", json=event(docfloworganisation=2))
        asked = {"organisation_id": "2"}
        other = await olga.post("/api/v1/transfers", json=event(), params=asked)
        two = await olga.post("/api/v1/transfers", json=event(docfloworganisation=1), params=asked)
    assert (foreign.status_code, other.status_code, two.status_code) == (403, 403, 422)
    assert "names organisation 1, and the request 2" in two.json()["detail"]
    for roles, organisation, status in (
        ({"1": ["viewer"]}, 1, 200),
        ({"2": ["viewer"]}, 2, 404),
        (["operator"], 2, 404),
    ):
        async with caller(transfers.app, signed(roles, organisations=[organisation])) as reader:
            # No worker has checked it: Temporal alone knows it.
            assert (await reader.get(ONE.format(id))).status_code == status
            assert (await reader.get(f"/api/v1/runs/transfer/{id}")).status_code == status


async def test_an_event_beyond_the_quota_of_its_organisation_is_refused(
    transfers: TransferGateway,
) -> None:
    environment = {"DOCFLOW_QUOTA_RUNS": "1"}
    service = transfer_service(environment, transfers.client, transfers.resources.database)
    seven = Identity("otto", (7, 8), frozenset({"operator"}))
    known = json.dumps(event(docfloworganisation=7))
    id = head_of(known).transfer_id
    row = a_transfer(id, TransferStatus.NO_ASSIGNED, organisation_id=7)
    await transfers.store.record(row)
    with pytest.raises(QuotaExceeded, match="organisation 7 has 1 runs in progress"):
        await service.submit(seven, json.dumps(event()), organisation_id=7)
    for body, organisation in (
        (known, None),
        (json.dumps(event()), 8),
        (json.dumps(event()), None),
    ):
        assert await service.submit(seven, body, organisation_id=organisation)

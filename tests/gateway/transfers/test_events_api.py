"""Events over HTTP, in structured and in binary mode."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from temporalio.testing import WorkflowEnvironment

from tests.gateway.transfers.conftest import TransferGateway
from tests.support.transfers.events import a_transfer
from workflows.transfers.events import EVENT_BYTES, TransferStatus

pytestmark = pytest.mark.asyncio(loop_scope="session")

_FORMAT = "Not an event in a supported format"


def event(**changes: Any) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": uuid4().hex,
        "source": "TMS.Route",
        "type": "Succeeded",
        "subject": "File Upload",
        "data": {"accountId": "TMS001", "path": "out/routes.csv"},
    } | changes


async def test_an_event_is_taken_once(
    transfers: TransferGateway, temporal: WorkflowEnvironment
) -> None:
    body = event()
    async with transfers.api() as api:
        first = await api.post("/api/v1/transfers", json=body)
        again = await api.post("/api/v1/transfers", json=body)
        shown = await api.get(first.headers["location"])
        unknown = await api.get(f"/api/v1/transfers/{'0' * 64}")
    assert unknown.status_code == 404
    assert (first.status_code, again.status_code) == (201, 200)
    id = first.json()["transfer_id"]
    assert first.headers["location"] == f"/api/v1/transfers/{id}"
    assert again.json() == {"id": f"transfer/{id}", "transfer_id": id, "is_new": False}
    assert (shown.status_code, shown.json()["status"]) == (200, "Accepted")
    assert (shown.json()["event_id"], shown.json()["file"]) == (body["id"], "routes.csv")
    run = await temporal.client.get_workflow_handle(f"transfer/{id}").describe()
    assert run.workflow_type == "FileEvent"


async def test_both_modes_are_the_same_event(transfers: TransferGateway) -> None:
    body = event(datacontenttype="application/json", subject="Tour Zürich")
    headers = {
        "ce-specversion": "1.0",
        "ce-id": body["id"],
        "ce-source": body["source"],
        "ce-type": body["type"],
        "ce-subject": "Tour Z%C3%BCrich",
        "content-type": "application/json",
    }
    async with transfers.api() as api:
        binary = await api.post("/api/v1/transfers", json=body["data"], headers=headers)
        structured = await api.post(
            "/api/v1/transfers",
            content=json.dumps(body),
            headers={"content-type": "application/cloudevents+json; charset=utf-8"},
        )
    assert binary.status_code == 201, binary.text
    assert structured.json() == {**binary.json(), "is_new": False}


async def test_another_event_of_the_same_source_and_id_is_refused(
    transfers: TransferGateway,
) -> None:
    body = event()
    async with transfers.api() as api:
        await api.post("/api/v1/transfers", json=body)
        other = await api.post("/api/v1/transfers", json=body | {"subject": "Another"})
    assert other.status_code == 422
    assert "other content" in other.json()["detail"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (json.dumps(event(data={})).encode(), "lacks data.accountId"),
        (json.dumps(event(specversion="9")).encode(), "not a CloudEvent"),
    ],
)
async def test_what_is_no_event_is_refused_and_recorded(
    transfers: TransferGateway, temporal: WorkflowEnvironment, content: bytes, reason: str
) -> None:
    async with transfers.api() as api:
        answer = await api.post("/api/v1/transfers", content=content)
    assert answer.status_code == 422, answer.text
    detail = answer.json()["detail"]
    assert reason in detail
    id = detail.rpartition(" ")[2]
    run = await temporal.client.get_workflow_handle(f"transfer/{id}").describe()
    assert run.workflow_type == "FileEvent"


@pytest.mark.parametrize(
    ("status", "title", "headers", "content"),
    [
        (413, "The event is too large", {}, b" " * (EVENT_BYTES + 1)),
        (415, _FORMAT, {"content-type": "application/cloudevents-batch+json"}, b"[]"),
        (415, _FORMAT, {"content-type": "application/cloudevents+avro"}, b"x"),
    ],
)
async def test_what_cannot_be_read_is_refused(
    transfers: TransferGateway, status: int, title: str, headers: dict[str, str], content: bytes
) -> None:
    async with transfers.api() as api:
        answer = await api.post("/api/v1/transfers", content=content, headers=headers)
    assert answer.status_code == status
    assert answer.json()["title"] == title


async def test_events_of_no_organisation_are_for_operators(transfers: TransferGateway) -> None:
    async with transfers.api() as api:
        sent = (await api.post("/api/v1/transfers", json=event())).json()["transfer_id"]
    id = uuid4().hex * 2
    await transfers.store.record(a_transfer(id, TransferStatus.NO_ASSIGNED))
    async with transfers.api("mapper") as api:
        assert (await api.post("/api/v1/transfers", json=event())).status_code == 403
        assert id not in (await api.get("/api/v1/transfers?limit=200")).text
        for hidden in (id, sent):
            assert (await api.get(f"/api/v1/transfers/{hidden}")).status_code == 404


async def test_an_event_is_shown_with_every_state_that_it_was_in(
    transfers: TransferGateway,
) -> None:
    id = uuid4().hex * 2
    row = a_transfer(id, TransferStatus.NO_ASSIGNED, source="TMS", account_id="TMS001")
    await transfers.store.record(row)
    async with transfers.api() as api:
        found = (await api.get(f"/api/v1/transfers/{id[:12]}")).json()
        listed = (await api.get("/api/v1/transfers", params={"status": "NoAssigned"})).json()
        missing = await api.get("/api/v1/transfers/00000000")
    assert (found["status"], found["account_id"]) == ("NoAssigned", "TMS001")
    assert [each["status"] for each in found["trail"]] == ["NoAssigned"]
    assert id in {each["transfer_id"] for each in listed["items"]}
    assert missing.status_code == 404


async def test_events_that_changed_at_once_are_listed_page_by_page(
    transfers: TransferGateway,
) -> None:
    at, ids = datetime.now(UTC), sorted(uuid4().hex * 2 for _ in range(7))
    for id in ids:
        status = TransferStatus.SUCCEEDED
        await transfers.store.record(
            a_transfer(id, status, at=at, source="TMS", event_id=id, account_id="paged")
        )
    found: list[str] = []
    pages = 0
    params: dict[str, str] | None = {"account_id": "paged", "limit": "3"}
    async with transfers.api() as api:
        while params is not None:
            page = (await api.get("/api/v1/transfers", params=params)).json()
            found += [each["transfer_id"] for each in page["items"]]
            params, pages = page["next"] and {**params, "cursor": page["next"]}, pages + 1
        earlier = await api.get(
            "/api/v1/transfers", params={"account_id": "paged", "cursor": at.isoformat()}
        )
    assert (found, pages) == (ids, 3)
    assert earlier.json()["items"] == []

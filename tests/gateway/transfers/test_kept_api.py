"""What operators keep of transfers, over `/api/v1`."""

from pathlib import Path

import pytest

from activities.transfers.partner_store import SqlPartnerStore
from tests.gateway.transfers.conftest import TransferGateway, errands
from tests.support.transfers.events import a_transfer
from workflows.transfers.events import TransferStatus
from workflows.transfers.partners import Partner, PlaceKind

pytestmark = pytest.mark.asyncio(loop_scope="session")
ROUTES = "/api/v1/routes"
EVENT = {
    "specversion": "1.0",
    "id": "1",
    "source": "TMS.Route",
    "type": "Succeeded",
    "subject": "File Upload",
    "data": {"accountId": "TMS001"},
}


async def test_operators_keep_routes(transfers: TransferGateway) -> None:
    async with transfers.api() as olga:
        for source in ("TMS.*", "FTP.*", "SAP.*"):
            made = await olga.post(ROUTES, json={"queue": "jobs", "source": source})
            assert made.status_code == 201, made.text
        assert made.headers["location"] == f"{ROUTES}/jobs/3"
        page = (await olga.get(ROUTES, params={"limit": 2})).json()
        assert [each["source"] for each in page["items"]] == ["TMS.*", "FTP.*"]
        rest = (await olga.get(ROUTES, params={"cursor": page["next"]})).json()
        assert ([each["rule"] for each in rest["items"]], rest["next"]) == (["3"], None)
        found = (await olga.get(ROUTES, params={"text": "ftp", "queue": "jobs"})).json()
        assert [each["rule"] for each in found["items"]] == ["2"]
        verdict = (await olga.post(f"{ROUTES}/test", json=EVENT)).json()
        assert (verdict["winner"]["rule"], verdict["rules"]) == ("1", 3)
        tied = await olga.post(ROUTES, json={"queue": "jobs", "source": "TMS.*"})
        assert tied.status_code == 422 and "which of them wins" in tied.json()["detail"]
        await transfers.store.record(a_transfer("5f" * 32, TransferStatus.NO_ASSIGNED))
        routed = (await olga.post(f"{ROUTES}/reroute")).json()["items"]
        [said] = [each["problem"] for each in routed if each["transfer_id"] == "5f" * 32]
        assert said.startswith("there is no open run")
        assert (await olga.delete(f"{ROUTES}/jobs/3")).status_code == 204
        assert (await olga.get(f"{ROUTES}/jobs/3")).status_code == 404


async def test_a_route_that_was_changed_meanwhile_is_kept(transfers: TransferGateway) -> None:
    async with transfers.api() as olga:
        made = await olga.post(ROUTES, json={"queue": "jobs", "source": "TMS.*"})
        at, seen = made.headers["location"], {"if-match": made.headers["etag"]}
        changed = await olga.put(at, json={"source": "TMS.*", "enabled": False}, headers=seen)
        assert (changed.status_code, changed.json()["enabled"]) == (200, False), changed.text
        for late in (
            await olga.put(at, json={}, headers=seen),
            await olga.delete(at, headers=seen),
        ):
            assert late.status_code == 412
            assert "changed meanwhile" in late.json()["detail"]
        found = await olga.get(at)
        assert (found.json()["source"], found.json()["by"]) == ("TMS.*", "olga")
        assert found.headers["etag"] == changed.headers["etag"]


async def test_routes_are_for_operators(transfers: TransferGateway) -> None:
    async with transfers.api("mapper") as ida:
        for answer in (await ida.get(ROUTES), await ida.post(f"{ROUTES}/test", json=EVENT)):
            assert answer.status_code == 403


async def test_a_worker_tests_a_partner(transfers: TransferGateway, tmp_path: Path) -> None:
    store = SqlPartnerStore(transfers.resources.database)
    await store.put(Partner(name="share", kind=PlaceKind.FOLDER, container=str(tmp_path)))
    async with (
        transfers.api() as olga,
        errands(transfers, {"DOCFLOW_TRANSFERS_FOLDERS": str(tmp_path)}),
    ):
        listed = (await olga.get("/api/v1/partners", params={"limit": 200})).json()["items"]
        assert "enabled" in [each["state"] for each in listed if each["name"] == "share"]
        tested = await olga.post("/api/v1/partners/share/test")
        assert tested.status_code == 200, tested.text
        assert tested.json()["works"] and "can be reached" in " ".join(tested.json()["sentences"])
        shown = (await olga.get("/api/v1/partners/share")).json()
        assert (shown["record"]["by"], shown["outage"]) == ("olga", None)
        assert (await olga.post("/api/v1/partners/nobody/test")).status_code == 404


async def test_watches_and_expected_files_are_shown(transfers: TransferGateway) -> None:
    async with transfers.api() as olga:
        [watch] = (await olga.get("/api/v1/watches")).json()["items"]
        assert (watch["watch"]["name"], watch["schedule"]) == ("acme-orders", "missing")
        assert (await olga.get("/api/v1/watches/acme-orders")).json()["files"] == []
        assert (await olga.get("/api/v1/watches/x")).status_code == 404
        [expected] = (await olga.get("/api/v1/expected-files")).json()["items"]
        assert (expected["expected"]["queue"], expected["day"]) == ("jobs", None)
        assert (await olga.get("/api/v1/expected-files/orders")).json()["days"] == []


async def test_a_partner_that_was_changed_meanwhile_is_kept(transfers: TransferGateway) -> None:
    async with transfers.api("admin") as alma:
        record = {"name": "share", "kind": "folder", "container": "/mnt/a"}
        made = await alma.post("/api/v1/partners", json={"record": record})
        at, seen = made.headers["location"], {"if-match": made.headers["etag"]}
        assert (made.status_code, at) == (201, "/api/v1/partners/share")
        moved = {"record": {**record, "container": "/mnt/b"}}
        changed = await alma.put(at, json=moved, headers=seen)
        assert (changed.status_code, changed.json()["where"]) == (200, "/mnt/b"), changed.text
        for late in (
            await alma.put(at, json=moved, headers=seen),
            await alma.delete(at, headers=seen),
        ):
            assert late.status_code == 412 and "changed meanwhile" in late.json()["detail"]
        other_record = {"record": {**record, "name": "other"}}
        other = await alma.put(at, json=other_record)
        assert other.status_code == 422 and "the record is of other" in other.json()["detail"]
        assert (await alma.put("/api/v1/partners/other", json=other_record)).status_code == 404
        found = await alma.get(at)
        assert found.headers["etag"] == changed.headers["etag"]


async def test_a_secret_in_the_place_of_a_reference_is_refused(transfers: TransferGateway) -> None:
    async with transfers.api("admin") as alma:
        record = {"name": "share", "kind": "folder", "container": "/mnt/a"}
        await alma.post("/api/v1/partners", json={"record": record})
        # No worker runs: it is refused before one is asked.
        for key in ({"private": "planted"}, {"private": "env:OURS", "passphrase": "planted"}, {}):
            body = {"fingerprint": "AB" * 20, **key}
            refused = await alma.post("/api/v1/partners/share/keys", json=body)
            assert refused.status_code == 422 and "planted" not in refused.text, refused.text
    async with transfers.api("operator") as olga:
        answer = await olga.post("/api/v1/partners", json={"record": record})
        assert answer.status_code == 403

"""What operators keep of transfers, over `/api/v1`."""

import pytest

from tests.gateway.transfers.conftest import TransferGateway
from tests.support.transfers.events import a_transfer
from workflows.transfers.events import TransferStatus

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
    async with transfers.api("importer") as ida:
        for answer in (await ida.get(ROUTES), await ida.post(f"{ROUTES}/test", json=EVENT)):
            assert answer.status_code == 403

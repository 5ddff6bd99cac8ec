"""Batches over HTTP."""

import pytest

from activities.batches.store import SqlBatchStore
from tests.gateway.batches.conftest import BatchGateway
from tests.support.batches.shown import REASON, shown_batch
from tests.support.waiting import eventually
from workflows.batches.names import BatchKey, LoaderStatus
from workflows.batches.runs import Closing

pytestmark = pytest.mark.asyncio(loop_scope="session")

BATCHES = "/api/v1/batches"


async def test_a_parked_batch_is_listed_and_shown(gateway: BatchGateway) -> None:
    async with (
        gateway.program() as olga,
        shown_batch(gateway.client, gateway.database, 821, more=5),
    ):
        run = (await olga.get("/api/v1/runs/batch/821/1")).json()
        assert (run["state"], run["needs_attention"]) == ("needs_attention", True)
        assert run["reason"].startswith("redrive: no rights")
        waiting = {"pipeline": "batches", "state": "needs_attention", "limit": 200}
        listed = (await olga.get("/api/v1/runs", params=waiting)).json()["items"]
        assert run["id"] in [each["id"] for each in listed]
        pages: list[list[str]] = []
        cursor: str | None = None
        while not pages or cursor:
            params = {"case": "821", "limit": "1", **({"cursor": cursor} if cursor else {})}
            page = (await olga.get(BATCHES, params=params)).json()
            pages.append([each["id"] for each in page["items"]])
            cursor = page["next"]
        assert sorted(pages) == [["batch/821/1"], ["batch/821/2"]]
        shown = (await olga.get(f"{BATCHES}/821/1")).json()
        assert (shown["is_parked"], shown["status"], shown["waited_for_by"]) == (
            *(True, "processing"),
            [2],
        )
        assert [each["dead_letters"]["visible"] for each in shown["depths"]] == [0, 1, 2]
        at = f"{BATCHES}/821/1/documents"
        [failed] = (await olga.get(at, params={"state": "failed"})).json()["items"]
        assert (failed["document_id"], failed["reason"]) == ("E-000", REASON)
        first = (await olga.get(at, params={"limit": 3})).json()
        rest = (await olga.get(at, params={"cursor": first["next"]})).json()
        assert len(first["items"] + rest["items"]) == 8 and rest["next"] is None
        assert (await olga.post("/api/v1/runs/batch/821/1/retry", json={})).status_code == 200

        async def continues() -> bool:
            run = (await olga.get("/api/v1/runs/batch/821/1")).json()
            return (run["state"], run["needs_attention"], run["reason"]) == ("running", False, None)

        await eventually(continues)


async def test_what_would_change_nothing_is_refused(gateway: BatchGateway) -> None:
    store = SqlBatchStore(gateway.database)
    ended, failed = (BatchKey(case_id=822, batch_id=number) for number in (1, 2))
    await store.expect([ended, failed])
    await store.close(Closing(key=ended, status=LoaderStatus.COMPLETE))
    await store.close(Closing(key=failed, status=LoaderStatus.FAILED))
    async with gateway.program() as olga:
        for path, body, status, says in (
            ("822/9/cancel", None, 404, "there is no batch 9"),
            ("822/9/redrive", None, 404, "there is no batch 9"),
            ("822/9/documents", None, 404, "there is no batch 9"),
            ("822/9", None, 404, "there is no batch 9"),
            ("822/1/cancel", None, 409, "nothing to cancel"),
            ("822/1/finish", None, 409, "not loaded again"),
            ("822/1/redrive", None, 409, "kept no dead letters"),
            ("822/1/redrive", {"with_failed": True}, 409, "no message of it waits"),
            ("822/2/finish", None, 409, "start it again first"),
            ("822/1/start", {"timings": {"polll": 5}}, 422, "there is no polll"),
            ("822/1/start", {"timings": {"poll": 0}}, 422, "poll: "),
            ("822/1/start", {"poll": 5}, 422, "poll"),
            ("822/0/start", None, 422, "batch"),
        ):
            method = "POST" if path.count("/") == 2 and "documents" not in path else "GET"
            refused = await olga.request(method, f"{BATCHES}/{path}", json=body)
            assert (refused.status_code, says in refused.text) == (status, True), refused.text
        wrong = await olga.get(BATCHES, params={"cursor": "2999-01-01T00:00:00+00:00_x"})
        assert wrong.status_code == 422


async def test_the_concurrency_and_the_order_of_a_case_are_set(gateway: BatchGateway) -> None:
    case = "/api/v1/cases/823"
    async with gateway.program() as olga:
        assert (await olga.get(f"{case}/concurrency")).json() == {"most": None}
        assert (await olga.put(f"{case}/concurrency", json={"most": 20})).json() == {"most": 20}
        assert (await olga.get(f"{case}/concurrency")).json() == {"most": 20}
        assert (await olga.put(f"{case}/concurrency", json={"most": 0})).status_code == 422
        expected = await olga.put(f"{case}/expected-batches", json={"batches": [2, 1, 2]})
        assert expected.json() == {"batches": [1, 2]}
        listed = (await olga.get(BATCHES, params={"case": 823})).json()["items"]
        assert sorted(each["batch_id"] for each in listed) == [1, 2]


async def test_batches_are_for_operators(gateway: BatchGateway) -> None:
    async with gateway.program("mapper") as ida:
        assert (await ida.get(BATCHES)).status_code == 403
        assert (await ida.post(f"{BATCHES}/824/1/start")).status_code == 403

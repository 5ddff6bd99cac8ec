"""Who may do what with jobs and the catalogue: those of an organisation, and those of none."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest
import pytest_asyncio

from activities.jobs.catalogue import ORGANISATION, Catalogue
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
from tests.support.jobs.gateway import JobStack, ended, job_types
from tests.support.jobs.stac import asset, collection, item
from tests.support.waiting import eventually
from workers.jobs.factory import job_service
from workers.shared.services.errors import QuotaExceeded
from workers.shared.services.identity import ROLES, Identity
from workflows.jobs.records import JobStatus
from workflows.jobs.runs import JobRequest

pytestmark = pytest.mark.asyncio(loop_scope="session")
THEIRS = "survey of the harbour"
"""Parameter of the job of organisation 1."""
CONTENT = b"1 2 3"


@pytest.fixture(scope="module")
def operations(jobs: JobStack) -> Sequence[Operation]:
    """Of jobs and of the catalogue."""
    return [
        *operations_of(jobs.app, "/api/jobs"),
        *operations_of(jobs.app, "/api/v1/jobs"),
        *operations_of(jobs.app, "/api/v1/catalogue"),
        *operations_of(jobs.app, "/api/stac"),
    ]


async def started(browser: httpx.AsyncClient, **request: Any) -> httpx.Response:
    """The answer to a request for a job."""
    return await browser.post("/api/v1/jobs", json={"job_type": "hello_world", **request})


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def parked(jobs: JobStack) -> AsyncIterator[str]:
    """A job of organisation 1 that waits for a person."""
    async with caller(jobs.app, signed({"1": ["operator"]})) as olga:
        request = {"job_type": "survey", "parameters": {"ask": True, "bad": 7}, "alias": THEIRS}
        job = (await olga.post("/api/v1/jobs", json=request)).json()["job_id"]
        async with jobs.browser("viewer") as vera:
            document: dict[str, Any] = {}
            while document.get("status") != "PARKED":
                document = (await vera.get(f"/api/v1/jobs/{job}")).json()
        yield job
        assert (await olga.post(f"/api/v1/runs/job/{job}/cancel")).status_code == 200


@pytest.mark.parametrize("kind", INVALID)
async def test_every_operation_needs_a_token(
    jobs: JobStack, operations: Sequence[Operation], kind: str
) -> None:
    assert len(operations) > 20
    await needs_a_token(jobs.app, operations, kind)


@pytest.mark.parametrize("role", [None, *ROLES])
async def test_every_operation_needs_its_least_role(
    jobs: JobStack, operations: Sequence[Operation], parked: str, role: str | None
) -> None:
    await needs_its_least_role(jobs.app, operations, role, parked)


async def test_strangers_find_nothing_of_an_organisation(
    jobs: JobStack, operations: Sequence[Operation], parked: str
) -> None:
    every = [*operations, *operations_of(jobs.app, "/api/v1/runs")]

    def names(each: Operation) -> bool:
        return "{job}" in each.path or ("{id}" in each.path and "/jobs/" in each.path)

    await finds_nothing_of_others(jobs.app, every, parked, [THEIRS], names)
    everywhere = signed(["admin"], organisations=[2])
    for bearer in (everywhere, signed({"2": ["admin"]}, organisations=[2])):
        async with caller(jobs.app, bearer) as stranger:
            # Parts of a job have no row: Temporal says whose they are.
            for run in (f"job/{parked}", f"job/{parked}/1/1", parked, parked[:12]):
                assert (await stranger.get(f"/api/v1/runs/{run}")).status_code == 404, run
            for listed in ("/api/v1/runs", "/api/v1/jobs", "/api/jobs", "/api/inbox"):
                answer = await stranger.get(listed)
                assert answer.status_code == 200 and parked not in answer.text, listed


async def test_members_see_their_job_and_operators_among_them_answer_it(
    jobs: JobStack, parked: str
) -> None:
    async with caller(jobs.app, signed({"1": ["viewer"]})) as vera:
        shown = (await vera.get(f"/api/v1/jobs/{parked}")).json()
        run = (await vera.get(f"/api/v1/runs/job/{parked}")).json()
        assert shown["organisation_id"] == run["organisation_id"] == 1
        assert (await vera.get(f"/api/v1/runs/job/{parked}/1/1")).status_code == 200
        for listed in ("/api/v1/runs", "/api/v1/jobs", "/api/jobs", "/api/inbox"):
            assert parked in (await vera.get(listed)).text, listed
        assert "organisation_id" not in (await vera.get(f"/api/jobs/{parked}")).json()
        assert "organisation_id" not in (await vera.get("/api/jobs")).json()["jobs"][0]
        restart = await vera.post(f"/api/v1/jobs/{parked}/restart")
        assert restart.status_code == 403, restart.text
    async with caller(jobs.app, signed({"1": ["mapper"]})) as mara:
        refused = await mara.post(f"/api/v1/runs/job/{parked}/fail")
        assert refused.status_code == 403
        assert "your roles in organisation 1 do not allow this" in refused.json()["detail"]


async def test_a_job_belongs_to_the_first_organisation_of_who_is_no_operator_of_all(
    jobs: JobStack,
) -> None:
    same = {"parameters": {"n": 1, "message": "whose"}}
    theirs = signed({"2": ["viewer"], "3": ["operator"]}, organisations=[2, 3])
    async with caller(jobs.app, theirs) as ben, jobs.browser() as olga:
        own = (await started(ben, **same)).json()
        refused = await started(ben, **same, organisation_id=2)
        foreign = await started(ben, **same, organisation_id=9)
        none = (await started(olga, **same)).json()
        named = (await started(olga, **same, organisation_id=1)).json()
        again = await ben.post("/api/jobs", json={"job_type": "hello_world", **same})
        owners: list[int | None] = []
        for browser, job in ((ben, own), (olga, none), (olga, named)):
            await ended(browser, job["job_id"])
            shown = await browser.get(f"/api/v1/jobs/{job['job_id']}")
            owners.append(shown.json()["organisation_id"])
    assert (refused.status_code, foreign.status_code) == (403, 403)
    assert owners == [3, None, 1]
    # Two organisations share no job, whatever they ask for.
    assert len({own["job_id"], none["job_id"], named["job_id"]}) == 3
    assert again.json() == {**own, "created": False}


async def test_another_attempt_stays_with_the_organisation(jobs: JobStack) -> None:
    async with caller(jobs.app, signed({"1": ["operator"]})) as olga:
        request = {"job_type": "survey", "parameters": {"broken": True}}
        job = (await olga.post("/api/v1/jobs", json=request)).json()["job_id"]
        assert (await ended(olga, job))["status"] == "FAILED"
        again = await olga.post(f"/api/v1/jobs/{job}/restart")
        assert again.json()["attempt"] == 2, again.text
        await jobs.client.get_workflow_handle(f"job/{job}").result()
        shown = (await olga.get(f"/api/v1/jobs/{job}")).json()
        part = await olga.get(f"/api/v1/runs/job/{job}/2/2")
    assert (shown["status"], shown["attempt"], shown["organisation_id"]) == ("COMPLETED", 2, 1)
    assert (part.status_code, part.json()["organisation_id"]) == (200, 1)


async def test_a_job_of_an_organisation_reads_no_file_of_another(jobs: JobStack) -> None:
    bronze = jobs.resources.scratch.parent / "blobs" / "bronze"
    for name in ("organisations/1/a.txt", "organisations/2/a.txt", "shared.txt", "list-1.txt"):
        (bronze / name).parent.mkdir(parents=True, exist_ok=True)
        (bronze / name).write_text("organisations/2/a.txt\n")
    (bronze / "organisations/1/list.txt").write_text("organisations/2/a.txt\n")
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    async with caller(jobs.app, signed({"1": ["operator"]})) as olga, jobs.browser() as ada:

        async def reads(browser: httpx.AsyncClient, name: str) -> int:
            request = {"job_type": "survey", "parameters": {"files": name}}
            return (await browser.post("/api/v1/jobs", json=request)).status_code

        form = {"job_type": "survey", "sha256": sha256}
        sent = await olga.post("/api/v1/jobs/files", data=form, files={"file": ("b.txt", CONTENT)})
        for name in ("organisations/1/a.txt", "organisations/1/", sent.json()["name"]):
            assert await reads(olga, name) == 201, name
        for name in (
            *("organisations/2/a.txt", "organisations/2/", "organisations/", "shared.txt"),
            *("uploads/", "@list-1.txt", "@organisations/1/list.txt", "bronze://shared.txt"),
        ):
            assert await reads(olga, name) == 422, name
            if name != "bronze://shared.txt":
                assert await reads(ada, name) == 201, name


async def test_items_of_an_organisation_are_for_its_members(jobs: JobStack) -> None:
    every = Catalogue(jobs.resources.database)
    silver = jobs.resources.scratch.parent / "blobs" / "silver" / "harbour.txt"
    silver.write_bytes(CONTENT)
    ours = every.acting_for(1)
    await every.put_collection(collection("seas"))
    await ours.put_collection(collection("harbours"))
    files = {"data": asset(href="silver://harbour.txt", size=len(CONTENT))}
    await every.put_items("seas", [item("open", collection="seas")])
    await ours.put_items("seas", [item("bay", collection="seas", assets=files)])
    await ours.put_items("harbours", [item("pier", collection="harbours", assets=files)])
    viewers = [signed({each: ["viewer"]}, organisations=[int(each)]) for each in ("1", "2")]
    operators = signed(["admin"], organisations=[2])
    for bearer, sees in zip([*viewers, operators], (True, False, False), strict=True):
        async with caller(jobs.app, bearer) as client:
            root = "/api/stac"
            bay = f"{root}/collections/seas/items/bay"
            for path in (
                *(bay, f"{bay}/assets/data", f"{root}/collections/harbours"),
                *(f"{root}/collections/harbours/{each}" for each in ("items", "queryables")),
                f"{root}/collections/harbours/items/pier/assets/data",
            ):
                assert (await client.get(path)).status_code == (200 if sees else 404), path
            assert (await client.head(f"{bay}/assets/data")).status_code == (200 if sees else 404)
            listed = (await client.get(f"{root}/collections/seas/items")).json()
            found = (await client.post(f"{root}/search", json={"limit": 100})).json()
            got = (await client.get(f"{root}/search?collections=seas,harbours")).json()
            assert listed["numberMatched"] == (2 if sees else 1)
            for page in (found, got):
                ids = {each["id"] for each in page["features"]} & {"open", "bay", "pier"}
                assert ids == ({"open", "bay", "pier"} if sees else {"open"})
            for path in (root, f"{root}/collections"):
                assert ("harbours" in (await client.get(path)).text) == sees, path
            filtered = {"filter": f'"{ORGANISATION}" = 1', "limit": 100}
            owned = (await client.get(f"{root}/search", params=filtered)).json()["features"]
            assert {each["id"] for each in owned} == ({"bay", "pier"} if sees else set())
    address = "/api/v1/catalogue/seas/bay"
    for bearer, status in (
        (signed({"2": ["operator"]}, organisations=[2]), 404),
        (operators, 404),
        (signed({"1": ["viewer"], "2": ["operator"]}, organisations=[1, 2]), 403),
        (signed({"1": ["operator"]}), 204),
    ):
        async with caller(jobs.app, bearer) as client:
            assert (await client.delete(address)).status_code == status


async def test_a_job_beyond_the_quota_of_its_organisation_is_refused(jobs: JobStack) -> None:
    environment = {**jobs.environment, "DOCFLOW_QUOTA_RUNS": "1"}
    service = job_service(environment, jobs.client, jobs.resources, job_types())
    five, six = (Identity(f"op{each}", (each,), frozenset({"operator"})) for each in (5, 6))

    def request(bad: int) -> JobRequest:
        return JobRequest(job_type="survey", parameters={"ask": True, "bad": bad})

    first = await service.submit(five, request(21), 5)

    async def is_parked() -> bool:
        return (await service.queries.get(five, first.job_id)).status is JobStatus.PARKED

    await eventually(is_parked)
    with pytest.raises(QuotaExceeded, match="organisation 5 has 1 runs in progress"):
        await service.submit(five, request(22), 5)
    # It is answered from the run that there is.
    assert not (await service.submit(five, request(21), 5)).created
    others = [await service.submit(six, request(22), 6), await service.submit(five, request(23))]
    for who, job in zip((five, six, five), (first, *others), strict=True):
        await service.cancel(who, job.job_id)

"""Two workers and two gateways over one database: both answer for the same import."""

import asyncio
import csv
import io
import itertools
from collections.abc import Sequence
from typing import Any, Final

import httpx
import pytest

from tests.crash.harness import Part
from tests.support.installation import Installation
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROWS: Final = 40_000
HEADER: Final = ("First name", "Last name", "Email", "Pack", "Bib")
PACKS: Final = ("Junior (U18)", "Senior (18+)", "Fast ones", "Old ones")
"""Two categories of the event, and two that there are not."""


async def test_an_import_completes_with_any_gateway_and_any_worker(
    installation: Installation,
) -> None:
    async with installation.person(0) as left, installation.person(1) as right:
        asked = itertools.cycle((right, left))
        created = await upload(left, installation, content())
        assert created.status_code == 201, created.text
        url = created.headers["location"]
        # Rows are put aside now.
        await restarted(installation.workers[0])
        await until(asked, url, "COLUMN_MAPPING")

        columns = await right.get(f"{url}/column-mappings")
        assert columns.headers["etag"] == (await left.get(url)).headers["etag"]
        by_header = {each["sourceHeader"]: each for each in columns.json()}
        packs = [{"id": by_header["Pack"]["id"], "targetField": "EVENT_CATEGORY_NAME"}]
        seen = {"if-match": columns.headers["etag"]}
        answers = await asyncio.gather(
            left.put(f"{url}/column-mappings", json=packs, headers=seen),
            right.put(f"{url}/column-mappings", json=packs, headers=seen),
        )
        assert sorted(answer.status_code for answer in answers) == [202, 412]

        confirming = asyncio.create_task(left.post(f"{url}/column-mappings/confirm"))
        await restarted(installation.workers[1])
        assert (await confirming).status_code == 202
        await until(asked, url, "CELL_MAPPING", open=2)
        await decide(right, left, url)
        confirmed = await right.post(f"{url}/cell-mappings/confirm")
        assert confirmed.status_code == 202
        for worker in installation.workers:
            before = await processed(next(asked), url)
            await eventually(lambda before=before: goes_on(next(asked), url, before), seconds=60)
            await restarted(worker)
        done = await until(asked, url, "COMPLETED")
        assert (done["totalRows"], done["processedRows"], done["successCount"]) == (ROWS,) * 3
        left_, right_ = [
            (await each.get(f"{url}/results/summary")).json() for each in (left, right)
        ]
        assert left_ == right_
        assert (left_["created"], left_["error"], left_["parked"]) == (ROWS, 0, 0)
        decisions = url.replace("/api/imports/", "/api/v1/uploads/") + "/decisions"
        trail = (await right.get(decisions)).json()["items"]
        reported = sorted((each["kind"], each["subject"], each["decision"]) for each in trail)
        assert reported == [
            ("column", "Pack", "EVENT_CATEGORY_NAME"),
            ("confirm", "", "columns"),
            ("confirm", "", "values"),
            ("value", "EVENT_CATEGORY_NAME: Fast ones", "Senior (18+)"),
            ("value", "EVENT_CATEGORY_NAME: Old ones", "ignored"),
        ]


async def test_one_key_at_both_gateways_is_one_import(installation: Installation) -> None:
    async with installation.person(0) as left, installation.person(1) as right:
        text = b"First name,Last name\nAnna,Key\n"
        key = {"idempotency-key": "the same wish"}
        answers = await asyncio.gather(
            *(upload(each, installation, text, key) for each in (left, right) * 3)
        )
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.json()["identifier"] for answer in answers}) == 1


def content() -> bytes:
    """People who are not in the database yet."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(HEADER)
    writer.writerows(
        (f"First {n}", f"Last {n}", f"both{n}@two.example.org", PACKS[n % len(PACKS)], n)
        for n in range(ROWS)
    )
    return text.getvalue().encode()


async def upload(
    person: httpx.AsyncClient,
    installation: Installation,
    content: bytes,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    fields = {
        "importType": "EVENT_PARTICIPANT",
        "contextId": str(installation.club.event_id),
    }
    files = {"file": ("people.csv", content)}
    return await person.post("/api/imports", data=fields, files=files, headers=headers)


async def decide(reader: httpx.AsyncClient, writer: httpx.AsyncClient, url: str) -> None:
    """Read at one gateway what is open, and answer at the other."""
    found = await reader.get(f"{url}/cell-mappings", params={"status": "UNRESOLVED"})
    ids = {each["sourceValue"]: each["id"] for each in found.json()}
    candidates = await reader.get(
        f"{url}/cell-mappings/candidates",
        params={"targetField": "EVENT_CATEGORY_NAME", "query": "Senior"},
    )
    said: Sequence[dict[str, Any]] = [
        {"id": ids["Fast ones"], "targetEntityId": candidates.json()[0]["id"]},
        {"id": ids["Old ones"], "ignore": True},
    ]
    answer = await writer.put(f"{url}/cell-mappings", json=said)
    assert answer.status_code == 202, answer.text


async def restarted(worker: Part) -> None:
    """End a worker in an orderly way, and start it again."""
    await worker.stop()
    await worker.start()


async def processed(person: httpx.AsyncClient, url: str) -> int:
    return (await person.get(url)).json()["processedRows"]


async def goes_on(person: httpx.AsyncClient, url: str, before: int) -> bool:
    """Whether more rows are done, or all of them."""
    now = await processed(person, url)
    return now > before or now == ROWS


async def until(
    asked: "itertools.cycle[httpx.AsyncClient]", url: str, state: str, *, open: int = 0
) -> dict[str, Any]:
    """Wait until one gateway after the other says so; the status."""
    status: dict[str, Any] = {}

    async def there() -> bool:
        nonlocal status
        status = (await next(asked).get(url)).json()
        return status["status"] == state and status["openValues"] == open

    await eventually(there, seconds=90, pause=0.05)
    return status

"""The same story by HTTP, by the Python client, by commands and by the Temporal CLI: one end."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from docflow.client import AsyncClient
from tests.story.by_client import ByClient
from tests.story.by_commands import ByCommands
from tests.story.by_http import ByHttp
from tests.story.by_temporal import ByTemporal, Refused
from tests.story.site import PERSON, Cast, Site, cast_of, story_site
from tests.story.story import CHAPTERS, End
from tests.story.tellers import Teller

pytestmark = pytest.mark.asyncio(loop_scope="module")
DOORS = ("http", "client", "commands", "temporal")


@dataclass(frozen=True)
class Telling:
    """A teller, and what they tell of."""

    cast: Cast
    teller: Teller


@dataclass(frozen=True)
class Evening:
    """All tellers at one place."""

    site: Site
    tellings: Mapping[str, Telling]

    async def tell(self, chapter: str) -> End:
        """Have a chapter told by all of them; the end, which is the same each time."""
        told = (
            CHAPTERS[chapter](self.site, each.cast, each.teller) for each in self.tellings.values()
        )
        found = await asyncio.gather(*told, return_exceptions=True)
        ends: dict[str, End] = {}
        for door, end in zip(self.tellings, found, strict=True):
            if isinstance(end, BaseException):
                end.add_note(f"by {door}")
                raise end
            ends[door] = end
        first = ends[DOORS[0]]
        for door, end in ends.items():
            assert end == first, f"by {door}"
        return first


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def evening(open_folder: Path, package: Path) -> AsyncGenerator[Evening]:
    async with AsyncExitStack() as opened:
        site = await opened.enter_async_context(story_site(open_folder, package))
        address = site.stack.gateway_url
        casts = [
            await cast_of(site, door, number, open_folder / door)
            for number, door in enumerate(DOORS, 101)
        ]
        by_http, by_client, by_commands, by_temporal = casts
        api = httpx.AsyncClient(
            base_url=address,
            headers={"Authorization": f"Bearer {site.token(by_http.club)}"},
            timeout=60,
        )
        client = AsyncClient(address, site.token(by_client.club))
        tellers: list[Teller] = [
            ByHttp(await opened.enter_async_context(api), by_http.folder),
            ByClient(await opened.enter_async_context(client), by_client.folder),
            ByCommands(
                {"DOCFLOW_ADDRESS": address, "DOCFLOW_TOKEN": site.token(by_commands.club)},
                by_commands.folder,
            ),
            ByTemporal(
                {"TEMPORAL_ADDRESS": site.stack.settings["TEMPORAL_ADDRESS"]},
                site.stack.folder / "blobs" / "imports",
                by_temporal.club.organisation_id,
            ),
        ]
        pairs = zip(DOORS, casts, tellers, strict=True)
        yield Evening(site, {door: Telling(cast, teller) for door, cast, teller in pairs})


async def test_an_import_with_problems(evening: Evening) -> None:
    end = await evening.tell("import")
    assert end["told problems"] == [
        (12, "Equipment No", "is missing"),
        (14, "Rate", "is not a number"),
        (16, "Owned/Rented", "is not one of owned, rented"),
        (18, "Equipment No", "same code as line 4"),
        (21, "Rate", "is negative"),
    ]
    assert (len(end["rows"]), len(end["report"])) == (15, 1 + 5)
    assert end["status row"] == [("completed", "equipment", 15, 5)]
    assert end["state"] == ("completed_with_problems", "completed")
    assert end["counts"] == {"created": 15, "problems": 5, "rejected": 5}


async def test_an_upload_with_two_pauses_and_an_undo(evening: Evening) -> None:
    end = await evening.tell("upload")
    assert (end["open columns"], end["open values"]) == (["Race group"], ["Elite", "Golden age"])
    assert Counter(category for _, category in end["rows"]) == {
        "Senior (18+)": 24,
        "Junior (U18)": 11,
        "Masters (40+)": 23,
    }
    assert end["outcomes"] == {"CREATED": 58, "ERROR": 2}
    assert end["decisions"] == [
        ("column", "Race group", "EVENT_CATEGORY_NAME", PERSON),
        ("confirm", "", "columns", PERSON),
        ("confirm", "", "values", PERSON),
        ("undo", "", "import", PERSON),
        ("value", "EVENT_CATEGORY_NAME: Elite", "Senior (18+)", PERSON),
        ("value", "EVENT_CATEGORY_NAME: Golden age", "Masters (40+)", PERSON),
    ]
    assert (end["rows after undo"], end["people after undo"]) == ([], [])
    assert end["status row"] == (58, 2, "UNDONE", 2 * 58, 0)


async def test_a_job_with_a_restart(evening: Evening) -> None:
    end = await evening.tell("job")
    # Bolts keep their price of before.
    assert end["job"] == [("COMPLETED", 2, 2, {"price": 5 * 2 + 4 * 3})]
    assert end["tasks"] == [
        (1, 1, "bolts", "COMPLETED", False),
        (1, 1, "nuts", "COMPLETED", False),
        (1, 2, "bolts", "COMPLETED", False),
        (1, 2, "nuts", "FAILED", False),
        (2, 2, "bolts", "COMPLETED", True),
        (2, 2, "nuts", "COMPLETED", False),
    ]


async def test_a_transfer_that_parks_and_is_answered(evening: Evening) -> None:
    end = await evening.tell("transfer")
    assert end["parked"]["state"] == ("needs_attention", "ReadMessage")
    assert end["row"] == ("Succeeded", None, "equipment.csv")
    assert ("ReadMessage", "jobs", PERSON) in end["trail"]
    assert [action for action, _, _ in end["receipt"]] == ["ReadFile", "Compress", "WriteFile"]
    assert end["target"] == {"equipment.csv.gz": True}


@pytest.mark.parametrize(
    ("pipeline", "kind", "arguments", "says"),
    [
        ("imports", "start", {"document_type": "equipment"}, "project_id: Field required"),
        ("imports", "begin", {}, "workers of imports do no begin"),
        ("spreadsheets", "start", {"import_type": "PERSON"}, "blob_name: Field required"),
        (
            *("spreadsheets", "start"),
            {"import_type": "PERSON", "blob_name": "inbox/none.xlsx"},
            "organisation_id: say whose rows these are",
        ),
        (
            *("spreadsheets", "start"),
            {"import_type": "PERSON", "organisation_id": 101, "blob_name": "inbox/none.xlsx"},
            "blob_name: there is no inbox/none.xlsx; store the file first",
        ),
        ("batches", "start", {"eventType": "JOB_STOPPED"}, "JOB_STOPPED"),
        (
            *("batches", "start"),
            {"eventType": "REDRIVE_REQUESTED", "caseId": 99, "batchId": 1},
            "there is no batch 1 of case 99",
        ),
        ("jobs", "start", {"job_type": "none"}, "job_type: 'none' is not installed"),
        ("jobs", "start", {"type": "none"}, "job_type: Field required"),
        ("jobs", "restart", {"job": "none"}, "there is no job 'none'"),
        ("transfers", "start", {"specversion": "1.0"}, "lacks"),
    ],
    ids=str,
)
async def test_what_a_worker_refuses_says_why(
    evening: Evening, pipeline: str, kind: str, arguments: dict[str, Any], says: str
) -> None:
    teller = evening.tellings["temporal"].teller
    assert isinstance(teller, ByTemporal)
    with pytest.raises(Refused, match=re.escape(says)):
        await teller.errand(pipeline, kind, arguments)


async def test_a_batch_with_a_redrive(evening: Evening) -> None:
    end = await evening.tell("batch")
    first, vain, last = (end[name] for name in ("at first", "in vain", "at last"))
    for each in (first, vain):
        assert dict(each["documents"])["cut-off.pdf"] == "failed"
        assert sorted(each["failed"]) == ["DOC-039", "DOC-040"]
        assert all(reason.startswith("extract: ") for reason in each["failed"].values())
    assert (first["resources"], first["left in the cloud"]) == ("kept", ["dead-letter"])
    assert (vain["resources"], vain["left in the cloud"]) == ("gone", [])
    assert {state for _, state in last["documents"]} == {"loaded"}
    assert (last["failed"], last["resources"], last["left in the cloud"]) == ({}, "gone", [])
    assert last["state"] == ("completed", "complete")

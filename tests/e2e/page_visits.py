"""Visits to the pages: each leads from one page in some state to the next."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
from playwright.async_api import Page, expect
from sqlalchemy import update
from temporalio.worker import Worker

from activities.batches.records import QUEUED, FailedMessage
from activities.jobs.catalogue import Catalogue
from activities.shared.errands import Errands
from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.store import SqlRouteStore, SqlTransferStore
from activities.transfers.watch_store import SqlWatchStore
from adapters.database.engine import open_database
from adapters.database.models.spreadsheets import spreadsheet_imports
from adapters.files.blobs import FolderBlobs
from tests.e2e.test_pages_review import open_grid, to_review
from tests.support.batches.shown import shown_batch
from tests.support.jobs.gateway import PNG
from tests.support.jobs.stac import asset, collection, item
from tests.support.pages import WATCH, PagesSetup, people
from tests.support.transfers.events import a_transfer
from tests.support.transfers.shown import shown_transfer, written_receipt
from tests.support.waiting import eventually
from workflows.batches.names import TASK_QUEUE
from workflows.shared.errand_workflow import Errand
from workflows.shared.errands import ErrandInput, ErrandResult
from workflows.transfers.events import TransferStatus
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.routes import RouteRule
from workflows.transfers.watches import PollWatchResult, WatchState

HEADERS = ("First name", "Last name", "E-Mail", "Squat")
GOOD = [person for _, person in people("access", 4)]

Show = Callable[[PagesSetup, Page], Awaitable[None]]
"""Makes the page what is looked at, from where the one before it left off."""
Scene = Callable[[PagesSetup], AbstractAsyncContextManager[Mapping[str, str]]]
"""What is there while a visit lasts: addresses by names of pages."""
NOWHERE = "nowhere"
"""The route of an address that leads to no page."""


@asynccontextmanager
async def nothing(site: PagesSetup) -> AsyncGenerator[Mapping[str, str]]:
    yield {}


@dataclass(frozen=True)
class Seen:
    """A page in one state.

    Attributes:
        route: Of the gateway that answers with it, as `GET /runs`.
        show: Leads to it; None: it is where the scene of the visit says.
    """

    route: str
    show: Show | None = None


@dataclass(frozen=True)
class Visit:
    """Pages that one person sees one after the other.

    Attributes:
        pages: By name of their state.
        scene: What is there meanwhile.
        roles: Of the person.
    """

    pages: Mapping[str, Seen]
    scene: Scene = nothing
    roles: Sequence[str] = ("mapper", "operator")

    @asynccontextmanager
    async def begun(self, site: PagesSetup) -> AsyncGenerator[tuple[Page, Mapping[str, str]]]:
        """The person's page, and the addresses that the scene knows."""
        async with self.scene(site) as known, site.visit(roles=self.roles) as page:
            yield page, known


async def show(
    site: PagesSetup, page: Page, name: str, seen: Seen, known: Mapping[str, str]
) -> None:
    """Lead to a page of a visit."""
    if seen.show is None:
        await page.goto(known[name])
    else:
        await seen.show(site, page)


async def open_at(site: PagesSetup, page: Page, address: str) -> None:
    await page.goto(address)


def at(address: str, route: str | None = None) -> Seen:
    """A page whose address is known."""
    path = address.partition("?")[0]
    return Seen(f"GET {route or path}", lambda site, page: open_at(site, page, address))


async def columns(site: PagesSetup, page: Page) -> None:
    path = site.file("access.csv", [HEADERS, *((*person, "Ladies") for person in GOOD)])
    await site.upload(page, path)
    await expect(page.get_by_role("heading", name="What do the columns mean?")).to_be_visible()


async def layout_of_columns(site: PagesSetup, page: Page) -> None:
    await columns(site, page)
    await page.get_by_text("Not read as it should be?").click()
    await page.get_by_text("Reassign", exact=True).first.click()
    await page.get_by_text("Cancel the upload").click()


async def conflict(site: PagesSetup, page: Page) -> None:
    await columns(site, page)
    async with site.visit("grace@example.org", start=page.url) as grace:
        await grace.get_by_label("Field for Squat").select_option("TEAM")
        await grace.get_by_role("button", name="Save", exact=True).click()
        await expect(grace.get_by_text("Saved 1 choice.").first).to_be_visible()
    await page.get_by_label("Field for Squat").select_option("CLUB")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("was faster")


async def values(site: PagesSetup, page: Page) -> None:
    await columns(site, page)
    await page.get_by_label("Field for Squat").select_option("EVENT_CATEGORY_NAME")
    await page.get_by_role("button", name="Confirm the columns").click()
    await expect(page.get_by_role("heading", name="What do the values mean?")).to_be_visible()
    await page.get_by_role("searchbox", name="Search for").fill("s")
    await expect(page.get_by_role("radio", name="Senior (18+)")).to_be_visible()
    # The list that values can mean is in sight, and searched by itself.
    there = page.get_by_role("complementary", name="What there is")
    await expect(there).to_contain_text("3 in all.")
    await there.get_by_role("searchbox", name="Search in Category").fill("mast")
    await expect(there.get_by_role("listitem")).to_have_text(["Masters (40+)"])


async def done(site: PagesSetup, page: Page) -> None:
    path = site.file("done.csv", [HEADERS[:3], *GOOD, ("Ada", "Lovelace", "no mail")])
    await site.upload(page, path)
    await page.get_by_role("button", name="Confirm the columns").click()
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    await page.get_by_text("Undo this upload").click()


async def ask_for_undo(page: Page) -> None:
    await page.goto(page.url)
    await page.get_by_text("Undo this upload").click()


async def undone(site: PagesSetup, page: Page) -> None:
    await ask_for_undo(page)
    await page.get_by_role("button", name="Yes, undo it").click()
    await expect(page.get_by_text("Undone", exact=True)).to_be_visible()


async def failed(site: PagesSetup, page: Page) -> None:
    await show_as(site, page, state="FAILED", reason="the file is damaged", waiting_since=None)


async def reading(site: PagesSetup, page: Page) -> None:
    await show_as(site, page, reason=None, waiting_since=None)


async def processing(site: PagesSetup, page: Page) -> None:
    begun = datetime.now(UTC) - timedelta(seconds=25)
    await show_as(
        site, page, state="PROCESSING", reason=None, total=1000, created=250, state_since=begun
    )
    await expect(page.get_by_text("rows a second")).to_contain_text("done in about 2 minutes")


async def stuck(site: PagesSetup, page: Page) -> None:
    await show_as(site, page, step="process rows", reason="the blob store does not answer")
    await expect(page.get_by_text("Process the rows: this did not work")).to_be_visible()
    await page.get_by_text("Cancel the upload").click()


async def purged(site: PagesSetup, page: Page) -> None:
    await done(site, page)
    await show_as(site, page, filename="", by="", purged_at=datetime.now(UTC))


async def undo_previewed(site: PagesSetup, page: Page) -> None:
    """What it would do, on a page of its own."""
    await page.goto(f"{page.url}/undo-preview")
    await expect(page.get_by_text("8 records would be deleted")).to_be_visible()


async def preview(site: PagesSetup, page: Page) -> None:
    """What it would do, where it is asked for."""
    await page.goto(page.url.removesuffix("/undo-preview"))
    await page.get_by_text("Undo this upload").click()
    await expect(page.get_by_text("8 records would be deleted")).to_be_visible()


async def bibs(site: PagesSetup, page: Page) -> None:
    """Two people with one bib: asked about, and answered with the keyboard."""
    rows = [(*person, str(7 + place // 2)) for place, person in people("bibs", 4)]
    await site.upload(page, site.file("bibs.csv", [(*HEADERS[:3], "Startnummer"), *rows]))
    await page.get_by_role("button", name="Confirm the columns").click()
    group = page.get_by_role("group", name="Questions about bibs")
    await expect(group).to_contain_text("2 people: another person has the same bib")


async def answered(site: PagesSetup, page: Page) -> None:
    await page.get_by_role("button", name="Both have this bib").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("group", name="Questions about bibs")).to_have_count(0)
    await page.get_by_role("button", name="Confirm and process the rows").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="All done: 4 rows")).to_be_visible()
    await page.locator("#rows-title ~ *, table.dense").locator("summary").first.click()
    await expect(page.get_by_text("Bib", exact=True).first).to_be_visible()


async def trail(site: PagesSetup, page: Page) -> None:
    await page.goto(f"{page.url}/decisions")


async def show_as(site: PagesSetup, page: Page, **row: object) -> None:
    """Look at an import in a state that does not last, or takes days to come about."""
    table = spreadsheet_imports
    query = update(table).where(table.c.uuid == page.url.rsplit("/", 1)[1]).values(row)
    async with (
        open_database(site.settings["DATABASE_URL"]) as database,
        database.transaction() as connection,
    ):
        await connection.execute(query)
    await page.goto(page.url)


async def history(site: PagesSetup, page: Page) -> None:
    await page.goto("/runs?mine=true")
    await page.get_by_role("link", name="History").first.click()
    await expect(page.get_by_role("heading", name="History")).to_be_visible()


async def parked(site: PagesSetup, page: Page, name: str = "odd") -> None:
    """A document whose columns are asked for, by way of the form for a new one."""
    path = site.file(f"{name}.csv", [("Sachnummer", "Description"), (name, "Crane")])
    await page.goto("/runs/new/document")
    await page.get_by_label("What is in the file?").select_option("equipment")
    await page.get_by_label("Project", exact=True).fill("access")
    await page.get_by_label("File", exact=True).set_input_files(path)
    await page.get_by_role("button", name="Import the document").click()
    # The page follows the run until it asks something.
    await expect(page.get_by_role("heading", name="What do the columns mean?")).to_be_visible()
    await expect(page.get_by_role("heading", name=f"{name}.csv")).to_be_visible()


async def mapped(site: PagesSetup, page: Page) -> None:
    await page.get_by_label("Field for Sachnummer").select_option("code")
    await page.get_by_role("button", name="Try again with these columns").click()
    await expect(page.get_by_role("heading", name="History")).to_be_visible()


async def refused(site: PagesSetup, page: Page) -> None:
    await page.goto("/runs/new/event")
    for name in ("Source", "Type", "Subject", "Account"):
        await page.get_by_label(name, exact=True).fill("x")
    await page.get_by_label("Further data").fill("5")
    await page.get_by_role("button", name="Send the event").click()
    await expect(page.get_by_text("Write a JSON object")).to_be_visible()


async def view(site: PagesSetup, page: Page) -> None:
    await page.goto("/runs?pipeline=imports")
    await page.get_by_text("Save this view").click()
    await page.get_by_label("Name", exact=True).fill("Documents")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("link", name="Documents")).to_be_visible()


async def in_review(site: PagesSetup, page: Page) -> None:
    await to_review(site, page, f"looks-{site.club.organisation_id}")
    await open_grid(page)


async def remembered(site: PagesSetup, page: Page) -> None:
    """What the values of a file mean is said, and confirmed."""
    group = page.get_by_role("group", name="Meaning of Ladies")
    await group.get_by_role("searchbox").fill("sen")
    await group.get_by_text("Senior (18+)").last.click()
    await page.get_by_role("button", name="Confirm and process").click()
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    await page.goto("/uploads/memory")
    await expect(page.get_by_role("rowheader", name="Squat")).to_be_visible()


async def answer_previewed(site: PagesSetup, page: Page) -> None:
    await page.goto("/runs?state=needs_attention&reason=column")
    await page.get_by_role("button", name="See which runs").click()
    await expect(page.get_by_text("Nothing has been answered yet.")).to_be_visible()


async def answer_given(site: PagesSetup, page: Page) -> None:
    await page.locator("main form button.main").click()
    await expect(page.get_by_role("heading", name="Answered")).to_be_visible()


async def frame(site: PagesSetup, page: Page) -> None:
    """The frame of an importer, outside of the site that shows it."""
    asked = {
        "name": "Looks",
        "import_type": "EVENT_PARTICIPANT",
        "context_id": site.club.event_id,
        "organisation_id": site.club.organisation_id,
        "origins": [site.address],
    }
    async with program(site, "mapper") as shop:
        made = (await shop.post("/api/v1/upload-tokens", json=asked)).json()
    await page.goto(f"/embed/{made['session']}")
    await expect(page.get_by_text("This page is a part of another site's page.")).to_be_visible()


async def event_tried(site: PagesSetup, page: Page) -> None:
    await page.goto("/routes")
    tried = page.get_by_role("region", name="Try an event")
    for name in ("Source", "Type", "Subject", "Account"):
        await tried.get_by_label(name, exact=True).fill("TMS.Route")
    await tried.get_by_role("button", name="Which rule takes it?").click()
    await expect(tried.get_by_role("status")).to_contain_text("takes it")


async def one_cause(site: PagesSetup, page: Page) -> None:
    await page.goto("/")
    await page.locator('a[href^="/transfers/waiting/"]').first.click()
    # Rows of an earlier visit are among them.
    await expect(page.get_by_role("heading", name="transfers for one cause")).to_be_visible()
    await page.get_by_text("Give up", exact=True).click()


async def one_answer(site: PagesSetup, page: Page) -> None:
    await page.get_by_role("button", name="Try all of them again").click()
    await expect(page.get_by_role("heading", name="Answered")).to_be_visible()


def program(site: PagesSetup, role: str) -> httpx.AsyncClient:
    """A program with a token of this role."""
    headers = {"authorization": f"Bearer {site.token('olga', [role])}"}
    return httpx.AsyncClient(base_url=site.address, headers=headers, timeout=60)


async def dead_letters(order: ErrandInput) -> ErrandResult:
    """What a worker of batches finds in a queue of dead letters."""
    found = [
        FailedMessage(
            where=QUEUED,
            document_id=id,
            event_type="DOCUMENT_PROCESSED",
            reason="the file is cut off",
            at=datetime.now(UTC),
            body='{"document": "' + "x" * 300 + '"}',
        )
        for id in ("D-1", None)
    ]
    return ErrandResult(answer=json.dumps([each.model_dump(mode="json") for each in found]))


@asynccontextmanager
async def batches(site: PagesSetup) -> AsyncGenerator[Mapping[str, str]]:
    """A case with a batch that is parked and one that waits for it."""
    case = 10_000 + site.club.organisation_id
    async with (
        open_database(site.settings["DATABASE_URL"]) as database,
        shown_batch(site.client, database, case, more=55) as shown,
        Worker(
            site.client,
            task_queue=TASK_QUEUE,
            workflows=[Errand],
            activities=[Errands(dead_letters).carry_out],
        ),
    ):
        yield {
            "batches": "/batches",
            "case": f"/batches/{case}",
            "parked batch": shown.page,
            "waiting batch": f"/batches/{case}/2",
            "failed documents": f"{shown.page}?state=failed",
            "document": f"{shown.page}/document?id=D-1",
            "failed document": f"{shown.page}/document?id=E-000",
            "messages": f"{shown.page}/messages",
        }


@asynccontextmanager
async def transfers(site: PagesSetup) -> AsyncGenerator[Mapping[str, str]]:
    """Three transfers that are parked for one cause, one with a receipt, one without a rule."""
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(site.settings["DATABASE_URL"]))
        for rule in (
            RouteRule(queue="jobs", rule="1", source="TMS.*", by="ada"),
            RouteRule(queue="jobs", rule="2", source="tms.*", enabled=False, by="ada"),
        ):
            await SqlRouteStore(database).put(rule)
        for partner in (
            Partner(name="acme", kind=PlaceKind.FOLDER, container="/acme", contact="Ann"),
            Partner(name="store", kind=PlaceKind.SFTP, host="store.example", user="u"),
        ):
            await SqlPartnerStore(database).put(partner, expected=None)
        looked = PollWatchResult(files=3, sent=2, problems=("a.csv is too large",))
        await SqlWatchStore(database).put_state(
            WatchState(watch=WATCH, looked=datetime.now(UTC), result=looked)
        )
        blobs = FolderBlobs(site.folder / "blobs")
        kept = await written_receipt(SqlTransferStore(database), blobs)
        unmatched = uuid4().hex * 2
        await SqlTransferStore(database).record(
            a_transfer(
                unmatched,
                TransferStatus.NO_ASSIGNED,
                at=datetime.now(UTC),
                source="Pricing & Co",
                account_id="P1",
                reason="no rule matches",
            )
        )
        shown = [
            await stack.enter_async_context(shown_transfer(site.client, database)) for _ in range(3)
        ]
        yield {
            "parked transfer": shown[0].page,
            "receipt": f"/transfers/{kept.transfer_id}",
            "no rule": f"/transfers/{unmatched}",
        }


async def job_of(site: PagesSetup, job_type: str, state: str, **parameters: Any) -> str:
    """Path of the page of a job, once it is in a state."""
    async with program(site, "operator") as api:
        asked = {"job_type": job_type, "parameters": parameters}
        answer = await api.post("/api/jobs", json=asked)
        job: str = answer.raise_for_status().json()["job_id"]

        async def reached() -> bool:
            return (await api.get(f"/api/jobs/{job}")).json()["status"] == state

        await eventually(reached, seconds=60)
    return f"/jobs/{job}"


@asynccontextmanager
async def jobs(site: PagesSetup) -> AsyncGenerator[Mapping[str, str]]:
    """Jobs that have ended, failed and ask, and an item of the catalogue with a preview."""
    well = {"type": "Point", "coordinates": [9.0, 48.0]}
    feature = {"type": "Feature", "geometry": well, "properties": {"name": "well"}}
    bronze, silver = (site.folder / "blobs" / tier for tier in ("bronze", "silver"))
    wells, damaged = (f"{each}-{site.club.organisation_id}.geojson" for each in ("wells", "broken"))
    (bronze / wells).write_text(json.dumps(feature))
    (bronze / damaged).write_text("{")
    (silver / "paris.png").write_bytes(PNG)
    name = f"maps-{site.club.organisation_id}"
    async with open_database(site.settings["DATABASE_URL"]) as database:
        catalogue = Catalogue(database)
        await catalogue.put_collection(collection(name, title="Maps of 2024"))
        preview = asset(href="silver://paris.png", media_type="image/png", roles=("thumbnail",))
        assets = {"data": asset(title="Heights"), "thumbnail": preview}
        items = [
            item("paris", collection=name, box=(2, 48, 3, 49), assets=assets),
            *(item(f"s{number:02}", collection=name, days=number) for number in range(22)),
        ]
        await catalogue.put_items(name, items)
    yield {
        "job that asks": await job_of(site, "process_vector", "PARKED", source=wells),
        "job that made a table": await job_of(
            site, "process_vector", "COMPLETED", source=wells, datetime="2024-05-31"
        ),
        "failed job": await job_of(
            site, "process_vector", "FAILED", source=damaged, datetime="2024-05-31"
        ),
        "ended job": await job_of(site, "hello_world", "COMPLETED", n=120, message=name),
        "items": f"/catalogue?collection={name}",
        "item": f"/catalogue/{name}/paris",
    }


_UPLOAD = "GET /uploads/{uuid}"
_RUN = "GET /runs/{id:path}"
VISITS: Mapping[str, Visit] = {
    "lists": Visit(
        {
            "inbox": at("/"),
            "uploads": at("/uploads"),
            "own inbox": at("/?mine=true"),
            "no uploads": at("/uploads?q=access&sort=FILENAME&state=FAILED&mine=true"),
            "overview": at("/overview"),
            "runs": at("/runs"),
            "no runs": at("/runs?text=nothing&state=needs_attention"),
            "new upload": at("/uploads/new"),
            "nothing remembered": at("/uploads/memory"),
            "settings": at("/settings"),
            "new document": at("/runs/new/document"),
            "new event": at("/runs/new/event"),
            "sign in": at("/sign-in"),
            "API": at("/docs"),
            "frame": Seen("GET /embed/{session}", frame),
            "not found": at("/uploads/00000000-0000-4000-8000-000000000000", _UPLOAD[4:]),
            "no such page": Seen(NOWHERE, at("/nosuchpage/" + "x" * 300).show),
            "not a page": Seen(NOWHERE, at("/sign-out").show),
        }
    ),
    "what pipelines keep": Visit(
        {
            "catalogue": at("/catalogue"),
            "wrong search": at("/catalogue?since=2026-01-02&until=2026-01-01&west=1"),
            "batches": at("/batches"),
            "routes": at("/routes"),
            "partners": at("/partners"),
            "watches": at("/watches"),
        }
    ),
    "an upload": Visit(
        {
            "columns": Seen(_UPLOAD, layout_of_columns),
            "stuck": Seen(_UPLOAD, stuck),
            "reading": Seen(_UPLOAD, reading),
            "failed": Seen(_UPLOAD, failed),
            "processing": Seen(_UPLOAD, processing),
            "uploads": at("/uploads"),
        }
    ),
    "values": Visit(
        {
            "values": Seen(_UPLOAD, values),
            "remembered columns": Seen("GET /uploads/memory", remembered),
            "remembered values": at("/uploads/memory?show=values"),
            "remembered changes": at("/uploads/memory?show=changes"),
        }
    ),
    "a review": Visit({"review": Seen(_UPLOAD, in_review), "waiting": at("/")}),
    "two tabs": Visit(
        {
            "conflict": Seen(_UPLOAD, conflict),
            "trail": Seen("GET /uploads/{uuid}/decisions", trail),
        }
    ),
    "two bibs": Visit({"bibs": Seen(_UPLOAD, bibs), "answered": Seen(_UPLOAD, answered)}),
    "the end": Visit(
        {
            "done": Seen(_UPLOAD, done),
            "what an undo does": Seen("GET /uploads/{uuid}/undo-preview", undo_previewed),
            "preview": Seen(_UPLOAD, preview),
            "undone": Seen(_UPLOAD, undone),
            "history": Seen(_RUN, history),
        }
    ),
    "purged": Visit({"purged": Seen(_UPLOAD, purged)}),
    "a document": Visit(
        {
            "parked": Seen(_RUN, parked),
            "runs that wait": at("/runs?state=needs_attention"),
            "an answer to come": Seen("GET /runs/answers", answer_previewed),
            "an answer given": Seen("POST /runs/answers", answer_given),
            "parked again": Seen(_RUN, lambda site, page: parked(site, page, "odder")),
            "mapped": Seen(_RUN, mapped),
            "refused": Seen("POST /runs/new/event", refused),
            "view": Seen("GET /runs", view),
            "overview": at("/overview"),
        }
    ),
    "batches": Visit(
        {
            "batches": Seen("GET /batches"),
            "case": Seen("GET /batches/{case}"),
            "parked batch": Seen("GET /batches/{case}/{batch}"),
            "waiting batch": Seen("GET /batches/{case}/{batch}"),
            "failed documents": Seen("GET /batches/{case}/{batch}"),
            "document": Seen("GET /batches/{case}/{batch}/document"),
            "failed document": Seen("GET /batches/{case}/{batch}/document"),
            "messages": Seen("GET /batches/{case}/{batch}/messages"),
        },
        batches,
    ),
    "transfers": Visit(
        {
            "parked transfer": Seen("GET /transfers/{transfer}"),
            "receipt": Seen("GET /transfers/{transfer}"),
            "no rule": Seen("GET /transfers/{transfer}"),
            "transfers": at("/runs?pipeline=transfers"),
            "event tried": Seen("POST /routes/test", event_tried),
            "partners": at("/partners"),
            "watches": at("/watches"),
            "one cause": Seen("GET /transfers/waiting/{group}", one_cause),
            "one answer": Seen("POST /transfers/waiting/{group}", one_answer),
        },
        transfers,
    ),
    "jobs": Visit(
        {
            "job that asks": Seen("GET /jobs/{job}"),
            "job that made a table": Seen("GET /jobs/{job}"),
            "failed job": Seen("GET /jobs/{job}"),
            "ended job": Seen("GET /jobs/{job}"),
            "jobs": at("/runs?pipeline=jobs"),
            "collections": at("/catalogue"),
            "items": Seen("GET /catalogue"),
            "item": Seen("GET /catalogue/{collection}/{item}"),
        },
        jobs,
    ),
    "a viewer": Visit({"inbox": at("/"), "forbidden": at("/batches")}, roles=("viewer",)),
}

"""The pages in a real browser, before a gateway, a worker and a Temporal server of their own."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count, product
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, ConsoleMessage, Error, Frame, Page, expect
from temporalio.client import Client

from adapters.database.engine import open_database
from stack.children import free_port
from stack.embedded import DOCFLOW
from stack.sample_club import SampleClub, sample_club
from stack.temporal import temporal_server
from tests.crash.harness import Part
from tests.support.chromium import browser
from tests.support.fresh_database import fresh_url
from workers.shared.connect import connect
from workers.shared.gateway.http.auth import mint_token
from workers.shared.settings.gateway import TokenSettings

ROOT = Path(__file__).parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
_KEY = "a key of the page tests that is long enough"
Scheme = Literal["light", "dark"]
WINDOWS: Sequence[tuple[int, Scheme]] = (
    (1280, "light"),
    (1280, "dark"),
    (400, "light"),
    # What is left of 1280 px at 200 % zoom.
    (640, "dark"),
)
_NARROW = 704
"""Pixels of a window up to which pages have the layout of a phone."""
_LOADS: Mapping[str, Sequence[int]] = {"en": (1280, 400), "de": (400, 1280)}
"""Widths of the window by language, the first one while the page is loaded."""
_OF_COLOURS = ("color-contrast", "link-in-text-block")
"""The rules of axe whose outcome depends on colours."""
_RULES: Mapping[Scheme, Sequence[str] | None] = {"light": None, "dark": _OF_COLOURS}
"""By scheme, in the order of looks; None: all."""
# Everything that axe tells of what is right would be worked out and sent here as well.
_VIOLATIONS = """async rules => {
  const options = {resultTypes: ["violations"], ...(rules && {runOnly: rules})};
  const found = await axe.run(document, options);
  return found.violations.flatMap(each => each.nodes.map(node => `${each.id}: ${node.html}`));
}"""


WATCH = "acme-orders"
_WATCHES = f"""
watches:
- name: {WATCH}
  partner: acme
  path: out/*.csv
  account_id: TMS001
expected:
- name: acme-morning
  queue: jobs
  account_id: TMS001
  deadline: 06:00
"""
_OVERFLOW = """() => {
  const page = document.documentElement;
  const wide = [...document.querySelectorAll(".card table")].map(each =>
    each.closest(".scroll, .tabulator") ? 0 : each.offsetWidth - each.parentElement.clientWidth);
  return Math.max(page.scrollWidth - page.clientWidth, ...wide);
}"""
MOST_SHIFT = 0.02
"""Cumulative layout shift; people see one above 0.1."""
_SHIFT = """() => new Promise(done => {
  let sum = 0;
  const add = list => list.getEntries().forEach(each => {
    sum += each.hadRecentInput ? 0 : each.value;
  });
  new PerformanceObserver(add).observe({type: "layout-shift", buffered: true});
  setTimeout(() => done(sum), 50);
})"""


@dataclass(frozen=True)
class PagesSetup:
    """What the pages stand on.

    Attributes:
        folder: Blobs, logs and files to upload.
        address: Of the gateway.
        worker: Of both pipelines; can be killed and started again.
        gateway: Can be killed and started again as well.
        client: Of the Temporal server.
        club: What is in the database.
        settings: What points docflow at it all.
        browser: Chromium.
    """

    folder: Path
    address: str
    worker: Part
    gateway: Part
    client: Client
    club: SampleClub
    settings: Mapping[str, str]
    browser: Browser
    _others: Iterator[int] = field(default_factory=lambda: count(1), repr=False)
    _idle: list[Page] = field(default_factory=list[Page], repr=False)
    """Pages that no one visits: a new window costs a second of a core."""

    async def with_new_club(self) -> "PagesSetup":
        """The same, for people of another club."""
        async with open_database(self.settings["DATABASE_URL"]) as database:
            club = await sample_club(database, self.club.organisation_id + next(self._others))
        return replace(self, club=club)

    def token(self, subject: str, roles: Sequence[str], name: str | None = None) -> str:
        """A token for a person of the club."""
        return mint_token(
            TokenSettings.read(self.settings),
            subject=subject,
            organisations=[self.club.organisation_id],
            roles=roles,
            name=name,
        )

    @asynccontextmanager
    async def visit(
        self,
        subject: str = "ada@example.org",
        *,
        roles: Sequence[str] = ("mapper", "operator"),
        width: int = 1280,
        scheme: Scheme = "light",
        start: str = "/",
        scripts: bool = True,
    ) -> AsyncGenerator[Page]:
        """A signed-in person's page; nothing on it may complain in the console."""
        complaints: list[str] = []

        def fails(error: Error) -> None:
            complaints.append(str(error))

        def says(said: ConsoleMessage) -> None:
            complaints.extend(_complaint(said.type, said.text))

        page = self._idle.pop() if scripts and self._idle else await self._new_page(scripts)
        page.on("pageerror", fails)
        page.on("console", says)
        try:
            await page.set_viewport_size({"width": width, "height": 800})
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            token = self.token(subject, roles, subject.partition("@")[0].title())
            await self._sign_in(page, token, by_link=scripts)
            await page.goto(start)
            yield page
        except BaseException:
            await page.context.close()
            raise
        page.remove_listener("pageerror", fails)
        page.remove_listener("console", says)
        await self._leave(page, scripts)
        assert not complaints, complaints

    async def _new_page(self, scripts: bool) -> Page:
        context = await self.browser.new_context(base_url=self.address, java_script_enabled=scripts)
        context.set_default_timeout(60_000)
        return await context.new_page()

    async def _leave(self, page: Page, scripts: bool) -> None:
        """Forget the visitor: docflow keeps nothing in a browser but a cookie."""
        if not scripts:
            await page.context.close()
            return
        # Another site would take another process of the browser.
        await page.goto("/health/live")
        await page.context.clear_cookies()
        self._idle.append(page)

    async def _sign_in(self, page: Page, token: str, *, by_link: bool) -> None:
        await page.goto(f"/sign-in#token={token}" if by_link else "/sign-in")
        if not by_link:
            await page.get_by_label("Access token").fill(token)
        await page.get_by_role("button", name="Sign in").click()
        await page.wait_for_url(f"{self.address}/")

    def file(self, name: str, rows: Sequence[Sequence[object]]) -> Path:
        """A CSV file to upload."""
        path = self.folder / "files" / name
        path.parent.mkdir(exist_ok=True)
        lines = (",".join(f'"{cell}"' for cell in row) for row in rows)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    async def upload(
        self, page: Page, path: Path, *, dry_run: bool = False, review: bool = False
    ) -> str:
        """Upload a file of event participants; path of its page."""
        await page.goto("/uploads/new")
        await page.get_by_label("Review before").set_checked(review)
        await page.get_by_label("belong to").select_option("City Marathon")
        await page.get_by_label("Spreadsheet").set_input_files(path)
        if dry_run:
            await page.get_by_label("Dry run").check()
        await page.get_by_role("button", name="Upload").click()
        await page.wait_for_url(re.compile(r"/uploads/[0-9a-f-]{36}$"))
        return page.url.removeprefix(self.address)


def people(name: str, number: int) -> Iterator[tuple[int, tuple[str, str, str]]]:
    """People that no other test knows: place, and first name, last name, mail address."""
    for place in range(number):
        yield place, (f"First{place}", f"Last{place}", f"person{place}@{name}.example.org")


def _complaint(kind: str, text: str) -> Sequence[str]:
    # A refused form is answered with 4xx and an unavailable gateway with nothing at all: the
    # browser notes both, and the page shows them.
    is_expected = text.startswith(("Failed to load resource", "htmx: htmx:error: Failed to fetch"))
    return [text] if kind == "error" and not is_expected else []


@asynccontextmanager
async def running_pages(folder: Path) -> AsyncGenerator[PagesSetup]:
    """Start everything; it ends with the block."""
    # Machines differ, and waiting long costs nothing where it is not needed.
    expect.set_options(timeout=60_000)
    async with AsyncExitStack() as stack:
        temporal = await stack.enter_async_context(
            temporal_server(folder / "temporal", ui=False, in_memory=True)
        )
        port = free_port()
        settings = {
            "TEMPORAL_ADDRESS": temporal.address,
            "TEMPORAL_UI_ADDRESS": "http://127.0.0.1:8233",
            "DATABASE_URL": fresh_url(),
            "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            "DOCFLOW_JWT_KEY": _KEY,
            "DOCFLOW_CREATE_PER_MINUTE": "1000",
            "DOCFLOW_REQUESTS_PER_MINUTE": "0",
            "DOCFLOW_UPLOAD_LIMIT_MB": "50",
            "DOCFLOW_BRONZE_CONTAINER": "bronze",
            "DOCFLOW_WEBHOOK_LOCAL": "true",
            "DOCFLOW_TRANSFERS_WATCHES": str(folder / "watches.yaml"),
        }
        (folder / "watches.yaml").write_text(_WATCHES)
        for tier in ("bronze", "silver", "gold"):
            (folder / "blobs" / tier).mkdir(parents=True)
        async with open_database(settings["DATABASE_URL"]) as database:
            club = await sample_club(database)
        environment = {**os.environ, **settings}
        health = free_port()
        worker = Part(
            "worker",
            [*DOCFLOW, "worker", "all", "--health-port", str(health)],
            folder / "worker.log",
            environment,
            health,
            has_health=True,
        )
        gateway = Part(
            "gateway",
            [*DOCFLOW, "gateway", "--port", str(port)],
            folder / "gateway.log",
            environment,
            port,
            has_health=True,
        )
        for part in (worker, gateway):
            stack.push_async_callback(part.stop)
        await asyncio.gather(worker.start(), gateway.start())
        yield PagesSetup(
            folder,
            f"http://127.0.0.1:{port}",
            worker,
            gateway,
            await connect(temporal.address),
            club,
            settings,
            await stack.enter_async_context(browser()),
        )


async def violations(page: Page | Frame, rules: Sequence[str] | None = None) -> Sequence[str]:
    """What axe finds wrong with a page, one line each.

    Args:
        page: What is looked at.
        rules: The only ones that are asked; None: all.
    """
    assert AXE.exists(), "axe-core is missing: run `npm ci` in the project's folder"
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text())
    return await page.evaluate(_VIOLATIONS, rules)


async def faults(page: Page) -> Sequence[str]:
    """What keeps some people from using a page, one line each; afterwards its window is wide.

    Of a layout that axe has seen, another scheme can change the colours alone.
    """
    found: list[str] = []
    layouts: set[bool] = set()
    for width, scheme in WINDOWS:
        await _set_look(page, width, scheme)
        layout = width <= _NARROW
        wrong = [*await violations(page, _OF_COLOURS if layout in layouts else None)]
        if (wider := await overflow(page)) > 0:
            wrong.append(f"{wider} px wider than the window")
        found += [f"{width} px, {scheme}: {line}" for line in wrong]
        layouts.add(layout)
    await _set_look(page, 1280, "light")
    return found


async def faults_of_looks(page: Page) -> Sequence[str]:
    """What is wrong with a page in each language, width and scheme, one line each.

    It is loaded once for each language, in windows of different widths. The other looks follow
    without loading it, as only styles tell them apart; of a width that axe has seen, another scheme
    can change the colours alone.
    """
    found: list[str] = []
    for language, widths in _LOADS.items():
        await page.set_extra_http_headers({"Accept-Language": language})
        await _set_look(page, widths[0], "light")
        await page.reload()
        if (shift := await page.evaluate(_SHIFT)) > MOST_SHIFT:
            found.append(f"{language}, {widths[0]} px: the layout shifts by {shift:.3f}")
        if (lang := await page.evaluate("document.documentElement.lang")) != language:
            found.append(f"it is in {lang}, not {language}")
        for width, (scheme, rules) in product(widths, _RULES.items()):
            await _set_look(page, width, scheme)
            wrong = [*await violations(page, rules)]
            if (wider := await overflow(page)) > 0:
                wrong.append(f"{wider} px wider than the window")
            found += [f"{language}, {width} px, {scheme}: {line}" for line in wrong]
    await page.set_extra_http_headers({})
    await _set_look(page, 1280, "light")
    await page.reload()
    return found


async def _set_look(page: Page, width: int, scheme: Scheme) -> None:
    await page.set_viewport_size({"width": width, "height": 800})
    await page.emulate_media(color_scheme=scheme)


async def overflow(page: Page | Frame) -> int:
    """Pixels by which a page is wider than its window, or a table than what it stands in."""
    return await page.evaluate(_OVERFLOW)

"""What the gateway serves of cases and batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from activities.batches.extracts import SqlExtracts
from activities.batches.records import FailedMessage
from activities.batches.store import SqlBatchStore
from adapters.database.records import SqlLeases
from workers.batches import labels
from workers.batches.reading import BatchReader
from workers.batches.register import NAME
from workers.batches.run_actions import ServedBatches
from workers.batches.service import BatchDetails, BatchOverview, BatchPage, BatchRuns, key_of
from workers.batches.settings import read_timings
from workers.batches.v1 import ROUTERS
from workers.shared.gateway.app import GatewayPart
from workers.shared.gateway.http.requests import Before, cursor_of, the
from workers.shared.gateway.pages.renderer import N_, MenuEntry, gettext, number
from workers.shared.gateway.pages.site import (
    Fact,
    Form,
    PageRoute,
    PipelinePages,
    RunPart,
    Site,
    Visitor,
    facts_part,
)
from workers.shared.register import Context
from workers.shared.services.errands import ErrandService
from workers.shared.services.errors import NotFound, Refused, ServiceUnavailable
from workers.shared.services.run_service import RunDetails
from workflows.batches.events import (
    STARTABLE,
    BatchEndFinished,
    CancelMode,
    JobFinished,
    RedriveRequested,
)
from workflows.batches.loads import DocumentState
from workflows.batches.names import LARGEST_ID, LoaderStatus
from workflows.batches.runs import PolledDepth
from workflows.shared.parking import Decision


class BatchLists:
    """Batches, the newest change first.

    Args:
        site: The context of the pages.
        service: Of cases and batches.
    """

    def __init__(self, site: Site, service: BatchOverview) -> None:
        self._site = site
        self._service = service

    async def all(
        self,
        request: Request,
        status: LoaderStatus | None = None,
        case: Annotated[str, Query(max_length=20)] = "",
        before: Before = None,
    ) -> Response:
        """Batches of every case, in a status or in any; or those of a case that was typed."""
        visitor = await self._site.visitor(request)
        if typed := case.strip():
            if not (typed.isascii() and typed.isdecimal()):
                raise Refused(gettext("“%(value)s” is not a whole number", value=typed))
            return RedirectResponse(f"/batches/{int(typed)}", 303)
        found = await self._service.batches(visitor.who, status=status, before=cursor_of(before))
        query = {"status": status.value} if status else {}
        return self._site.page(
            request,
            visitor,
            "batches.html",
            **_page(found, "/batches", query, before),
            only=status,
        )

    async def case(self, request: Request, case: int, before: Before = None) -> Response:
        """Batches of one case, and which of them waits for which."""
        case = key_of(case, 1).case_id
        visitor = await self._site.visitor(request)
        found = await self._service.batches(visitor.who, case_id=case, before=cursor_of(before))
        if not found.batches and before is None:
            raise NotFound(gettext("case %(case)s has no batches", case=case))
        return self._site.page(
            request,
            visitor,
            "batch_case.html",
            **_page(found, f"/batches/{case}", {}, before),
            case=case,
            line=await self._service.line(visitor.who, case),
        )


def _page(found: BatchPage, path: str, query: dict[str, str], before: str | None) -> dict[str, Any]:
    older = found.next and {**query, "before": f"{found.next}"}
    newest = f"{path}?{urlencode(query)}" if query else path
    return {
        "batches": found.batches,
        "older": f"{path}?{urlencode(older)}" if older else None,
        "newest": newest if before else None,
    }


WIDTH: Final = 600
HEIGHT: Final = 160
_LEFT: Final = 56
_EDGE: Final = 12


@dataclass(frozen=True, slots=True)
class Line:
    """One number over time."""

    name: str
    points: str
    """As SVG reads the points of a `polyline`."""
    last: int
    end: tuple[float, float]
    """Where its newest value is."""


@dataclass(frozen=True, slots=True)
class DepthPlot:
    """Numbers of messages and loads over the looks that a run has kept."""

    lines: Sequence[Line]
    most: int
    """The number at the upper edge; 0 is at the lower one."""
    size: tuple[int, int] = (WIDTH, HEIGHT)
    frame: tuple[int, int, int, int] = (_LEFT, _EDGE, WIDTH - _EDGE, HEIGHT - _EDGE)
    """Left, upper, right and lower edge of what is drawn, in units of the picture."""


def depth_plot(depths: Sequence[PolledDepth]) -> DepthPlot | None:
    """The picture of some looks; None: the queues were not looked at yet.

    Args:
        depths: In the order of time.
    """
    if not depths:
        return None
    numbers = {
        N_("messages"): [each.queue.total for each in depths],
        N_("dead letters"): [each.dead_letters.total for each in depths],
        N_("open loads"): [each.loads for each in depths],
    }
    most = max(1, *(value for values in numbers.values() for value in values))
    first, last = depths[0].at, depths[-1].at
    seconds = (last - first).total_seconds()

    def place(depth: PolledDepth, value: int) -> tuple[float, float]:
        # A single look is drawn at the right, where the newest one always is.
        share = (depth.at - first).total_seconds() / seconds if seconds > 0 else 1.0
        x = _LEFT + share * (WIDTH - _EDGE - _LEFT)
        return round(x, 1), round(HEIGHT - _EDGE - value / most * (HEIGHT - 2 * _EDGE), 1)

    lines: list[Line] = []
    for name, values in numbers.items():
        places = [place(depth, value) for depth, value in zip(depths, values, strict=True)]
        points = " ".join(f"{x},{y}" for x, y in places)
        lines.append(Line(name, points, values[-1], places[-1]))
    return DepthPlot(lines, most)


_LONGEST_REASON: Final = 500
_MESSAGES: Final = 100


class BatchPages:
    """Shows a batch in whatever state it is.

    Args:
        site: The context of the pages.
        service: Of cases and batches.
        reader: Of what was read of documents.
    """

    def __init__(self, site: Site, service: BatchOverview, reader: BatchReader) -> None:
        self._site = site
        self._service = service
        self._reader = reader

    async def show(
        self,
        request: Request,
        case: int,
        batch: int,
        state: DocumentState | None = None,
        after: Annotated[str, Query(max_length=300)] = "",
        lost: Annotated[int, Query(ge=0, le=LARGEST_ID)] = 0,
    ) -> Response:
        """The page; of its documents those in a state, behind one."""
        key = key_of(case, batch)
        visitor = await self._site.visitor(request)
        found = await self._service.get(visitor.who, key)
        documents = await self._service.documents(visitor.who, key, state, after)
        report = found.status
        return self._site.page(
            request,
            visitor,
            "batch.html",
            batch=found,
            key=key,
            address=_address(case, batch),
            report=report,
            plot=depth_plot(report.depths) if report else None,
            timeline=await self._reader.timeline(visitor.who, key),
            documents=documents.documents,
            extracts=await self._reader.heads(visitor.who, key, documents.documents),
            next=documents.after,
            after=after,
            only=state,
            offers=_offers(found),
            lost=lost,
        )

    async def document(
        self, request: Request, case: int, batch: int, id: Annotated[str, Query(max_length=1_000)]
    ) -> Response:
        """What was read of a document."""
        key = key_of(case, batch)
        visitor = await self._site.visitor(request)
        return self._site.page(
            request,
            visitor,
            "batch_document.html",
            key=key,
            address=_address(case, batch),
            document=await self._reader.whole(visitor.who, key, id),
        )

    async def messages(
        self,
        request: Request,
        case: int,
        batch: int,
        errands: Annotated[ErrandService, the(ErrandService)],
    ) -> Response:
        """Messages that are not loaded: a worker looks into the queue of dead letters."""
        key = key_of(case, batch)
        visitor = await self._site.visitor(request)
        found = await self._service.get(visitor.who, key)
        problem = None
        try:
            asked = {**key.model_dump(), "limit": _MESSAGES}
            answer = await errands.ask(visitor.who, NAME, "batch-failed-messages", asked)
            messages = [FailedMessage.model_validate(each) for each in answer]
        except ServiceUnavailable as error:
            problem = str(error)
            messages = await self._reader.recorded(visitor.who, key, _MESSAGES)
        return self._site.page(
            request,
            visitor,
            "batch_messages.html",
            key=key,
            address=_address(case, batch),
            messages=messages,
            problem=problem,
            offers=_offers(found),
            most=_MESSAGES,
        )

    async def answer(self, request: Request, case: int, batch: int) -> Response:
        """Answer a batch that is parked."""
        key = key_of(case, batch)
        visitor, form = await self._form(request)
        decision = form.text("decision", 20)
        if decision not in tuple(Decision):
            raise Refused(gettext("“%(text)s” is no answer to a parked batch", text=decision))
        reason = form.text("reason", _LONGEST_REASON) or None
        await self._service.answer(visitor.who, key, Decision(decision), reason)
        return _back(case, batch)

    async def cancel(self, request: Request, case: int, batch: int) -> Response:
        """Cancel a batch that has not ended."""
        key = key_of(case, batch)
        visitor, form = await self._form(request)
        mode = form.text("mode", 20)
        if mode not in tuple(CancelMode):
            raise Refused(gettext("“%(text)s” is no way to cancel a batch", text=mode))
        reason = form.text("reason", _LONGEST_REASON) or None
        await self._service.cancel(visitor.who, key, CancelMode(mode), reason)
        return _back(case, batch)

    async def start(self, request: Request, case: int, batch: int) -> Response:
        """Start a batch with the installation's timings."""
        key = key_of(case, batch)
        visitor, _ = await self._form(request)
        await self._service.start(visitor.who, key, {})
        return _back(case, batch)

    async def finish(self, request: Request, case: int, batch: int) -> Response:
        """Report that all documents of a batch have been sent."""
        key = key_of(case, batch)
        visitor, form = await self._form(request)
        number = form.whole("documents")
        if number is not None and number > LARGEST_ID:
            raise Refused(gettext("“%(value)s” is too many documents", value=number))
        await self._service.send(visitor.who, JobFinished(**key.model_dump(), documents=number))
        return _back(case, batch)

    async def end(self, request: Request, case: int, batch: int) -> Response:
        """Report that what follows the loading is done."""
        key = key_of(case, batch)
        visitor, _ = await self._form(request)
        await self._service.send(visitor.who, BatchEndFinished(**key.model_dump()))
        return _back(case, batch)

    async def redrive(self, request: Request, case: int, batch: int) -> Response:
        """Try dead letters once more, and what was recorded as failed as well if it is asked."""
        key = key_of(case, batch)
        visitor, form = await self._form(request)
        if not form.text("with_failed", 10):
            await self._service.send(visitor.who, RedriveRequested(**key.model_dump()))
            return _back(case, batch)
        lost = await self._service.retry_failed(visitor.who, key)
        return _back(case, batch, f"?lost={lost}" if lost else "")

    async def _form(self, request: Request) -> tuple[Visitor, Form]:
        visitor = await self._site.visitor(request)
        return visitor, await self._site.form(request, visitor)


def _address(case: int, batch: int) -> str:
    return f"/batches/{case}/{batch}"


def _back(case: int, batch: int, query: str = "") -> Response:
    return RedirectResponse(f"{_address(case, batch)}{query}", 303)


def _offers(found: BatchDetails) -> Sequence[str]:
    """What a person can have done with a batch, as its row and its run say."""
    view, report = found.view, found.status
    is_running = found.run is not None and not found.run.closed
    offered: list[str] = []
    if view.status in STARTABLE and not is_running and not found.is_left_open:
        offered.append("start")
    if report is not None and is_running and not view.status.terminal:
        if not report.job_finished:
            offered.append("finish")
        elif not report.end_finished:
            offered.append("end")
    if view.dead_letters or view.documents.failed:
        offered.append("redrive")
    if found.can_cancel:
        offered.append("cancel")
    return offered


async def _parts(visitor: Visitor, found: RunDetails, form: Form | None) -> Sequence[RunPart]:
    """Where a batch stands, and the way to its documents."""
    batch = found.details.get("batch_id")
    if batch is None:
        return ()
    case = found.details["case_id"]
    waits = [f"{each['batch_id']}" for each in found.details.get("waits_for") or ()]
    documents = found.run.counts.get("documents")
    return facts_part(
        N_("Batch"),
        [
            Fact(N_("Case"), f"{case}", f"/batches/{case}"),
            Fact(N_("Documents"), number(documents), f"/batches/{case}/{batch}"),
            Fact(N_("Phase"), found.details.get("phase") or ""),
            Fact(N_("Waits for batches"), ", ".join(waits)),
        ],
    )


TEMPLATES: Final = Path(__file__).parent / "templates"
_SECONDS_TO_ANSWER: Final = 2.0
"""A worker answers at once; without one the table says how far a batch is."""


def open_part(context: Context, settings: None) -> GatewayPart:
    """The part over the resources of a gateway.

    Args:
        context: What the process has opened.
        settings: None.
    """
    runs = BatchRuns(context.client, context.environment, seconds_to_answer=_SECONDS_TO_ANSWER)
    database, timings = context.resources.database, read_timings(context.environment)
    service = BatchOverview(SqlBatchStore(database), runs, SqlLeases(database), timings)
    return part_of(service, BatchReader(SqlExtracts(database), runs))


def part_of(service: BatchOverview, reader: BatchReader) -> GatewayPart:
    """The part over services.

    Args:
        service: Of cases and batches.
        reader: Of what was read of documents.
    """

    def routes(site: Site) -> Sequence[PageRoute]:
        lists, one = BatchLists(site, service), BatchPages(site, service, reader)
        batch = "{case}/{batch}"
        return (
            ("GET", "/batches", lists.all),
            ("GET", "/batches/{case}", lists.case),
            ("GET", f"/batches/{batch}", one.show),
            ("POST", f"/batches/{batch}/answer", one.answer),
            ("GET", f"/batches/{batch}/document", one.document),
            ("GET", f"/batches/{batch}/messages", one.messages),
            ("POST", f"/batches/{batch}/cancel", one.cancel),
            ("POST", f"/batches/{batch}/start", one.start),
            ("POST", f"/batches/{batch}/finish", one.finish),
            ("POST", f"/batches/{batch}/end", one.end),
            ("POST", f"/batches/{batch}/redrive", one.redrive),
        )

    return GatewayPart(
        service=service,
        runs=ServedBatches(service),
        routers=ROUTERS,
        description="Load batches of cases: start, finish, cancel and redrive them, and see where "
        "their documents stand.",
        pages=PipelinePages(
            routes=routes,
            templates=TEMPLATES,
            names={"batch_words": labels},
            parts=_parts,
            menu=(MenuEntry("/batches", N_("Batches"), operators=True, key="b"),),
        ),
    )

"""What the gateway serves of cases and batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from activities.batches.store import SqlBatchStore
from adapters.database.records import SqlLeases
from workers.batches import labels
from workers.batches.labels import remark
from workers.batches.run_actions import ServedBatches
from workers.batches.service import BatchOverview, BatchPage, BatchRuns, key_of
from workers.batches.settings import read_timings
from workers.batches.v1 import ROUTERS
from workers.shared.gateway.app import GatewayPart
from workers.shared.gateway.http.requests import Before, cursor_of
from workers.shared.gateway.pages.renderer import N_, MenuEntry
from workers.shared.gateway.pages.site import PageRoute, PipelinePages, Site
from workers.shared.register import Context
from workers.shared.services.errors import NotFound, Refused
from workflows.batches.events import CancelMode
from workflows.batches.loads import DocumentState
from workflows.batches.names import LoaderStatus
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
        self, request: Request, status: LoaderStatus | None = None, before: Before = None
    ) -> Response:
        """Batches of every case, in a status or in any."""
        visitor = await self._site.visitor(request)
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
            raise NotFound(f"case {case} has no batches")
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
        "messages": [each.queue.total for each in depths],
        "dead letters": [each.dead_letters.total for each in depths],
        "open loads": [each.loads for each in depths],
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


class BatchPages:
    """Shows a batch in whatever state it is.

    Args:
        site: The context of the pages.
        service: Of cases and batches.
    """

    def __init__(self, site: Site, service: BatchOverview) -> None:
        self._site = site
        self._service = service

    async def show(
        self,
        request: Request,
        case: int,
        batch: int,
        state: DocumentState | None = None,
        after: Annotated[str, Query(max_length=300)] = "",
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
            address=f"/batches/{case}/{batch}",
            report=report,
            plot=depth_plot(report.depths) if report else None,
            documents=documents.documents,
            next=documents.after,
            after=after,
            only=state,
        )

    async def answer(self, request: Request, case: int, batch: int) -> Response:
        """Answer a batch that is parked."""
        key = key_of(case, batch)
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        decision = form.text("decision", 20)
        if decision not in tuple(Decision):
            raise Refused(f"“{decision}” is no answer to a parked batch")
        reason = form.text("reason", _LONGEST_REASON) or None
        await self._service.answer(visitor.who, key, Decision(decision), reason)
        return RedirectResponse(f"/batches/{case}/{batch}", 303)

    async def cancel(self, request: Request, case: int, batch: int) -> Response:
        """Cancel a batch that has not ended."""
        key = key_of(case, batch)
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        mode = form.text("mode", 20)
        if mode not in tuple(CancelMode):
            raise Refused(f"“{mode}” is no way to cancel a batch")
        reason = form.text("reason", _LONGEST_REASON) or None
        await self._service.cancel(visitor.who, key, CancelMode(mode), reason)
        return RedirectResponse(f"/batches/{case}/{batch}", 303)


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
    return part_of(BatchOverview(SqlBatchStore(database), runs, SqlLeases(database), timings))


def part_of(service: BatchOverview) -> GatewayPart:
    """The part over a service.

    Args:
        service: Of cases and batches.
    """

    def routes(site: Site) -> Sequence[PageRoute]:
        lists, one, batch = BatchLists(site, service), BatchPages(site, service), "{case}/{batch}"
        return (
            ("GET", "/batches", lists.all),
            ("GET", "/batches/{case}", lists.case),
            ("GET", f"/batches/{batch}", one.show),
            ("POST", f"/batches/{batch}/answer", one.answer),
            ("POST", f"/batches/{batch}/cancel", one.cancel),
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
            names={"batch_words": labels, "document_remark": remark},
            menu=(MenuEntry("/batches", N_("Batches"), operators=True),),
        ),
    )

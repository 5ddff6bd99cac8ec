"""What the gateway serves of jobs: list and page, drawings of footprints."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from activities.jobs.catalogue import Catalogue
from workers.jobs import api, labels, v1
from workers.jobs.api import invalid_job
from workers.jobs.factory import job_service
from workers.jobs.run_actions import ServedJobs
from workers.jobs.runs import JobDocument
from workers.jobs.service import JobService, revision
from workers.jobs.stac_api import stac_router
from workers.jobs.submission import InvalidJob
from workers.shared.gateway.app import GatewayPart
from workers.shared.gateway.http.answers import Download, event_stream
from workers.shared.gateway.http.requests import Before, cursor_of
from workers.shared.gateway.pages.renderer import N_, MenuEntry
from workers.shared.gateway.pages.site import Form, PageRoute, PipelinePages, Site, Visitor
from workers.shared.register import Context
from workers.shared.services.errors import NotFound, Refused
from workers.shared.settings.common import AddressSettings
from workflows.jobs.records import JobOutputs, JobStatus, TaskStatus
from workflows.shared.parking import Decision

WIDTH: Final = 320.0
HEIGHT: Final = 220.0
_MARGIN: Final = 12.0
_POINTS: Final = 2_000
"""Of one line; more could not be seen."""
KILOMETRES_PER_DEGREE: Final = 111.195
_SMALLEST: Final = 1e-5
"""Degrees, about a metre: a point is drawn in an area of this size."""
_POLE: Final = 89.999
"""Degrees of latitude from which on a footprint holds the pole."""
_BAR: Final = 100.0
"""Longest scale bar, in units of the drawing."""

Position = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Footprint:
    """A drawing of `WIDTH` by `HEIGHT`."""

    path: str
    """Of SVG: areas and lines."""
    points: tuple[Position, ...]
    """Centres of points."""
    bar: float
    """Length of the scale bar."""
    bar_label: str
    """What it stands for: `5 km`."""
    west: float
    south: float
    east: float
    north: float
    """Limits in degrees; an east above 180 lies beyond the antimeridian."""


@dataclass(frozen=True, slots=True)
class _Line:
    positions: Sequence[Position]
    closed: bool


def footprint(geometry: Mapping[str, Any]) -> Footprint | None:
    """Draw a geometry; None: it holds no position that can be drawn.

    Degrees of longitude are shortened as they are at the middle latitude, so that distances
    compare in both directions. What surrounds a pole is drawn as seen from above it.

    Args:
        geometry: GeoJSON (RFC 7946), in degrees.
    """
    try:
        lines = list(_lines(geometry))
    except (KeyError, TypeError, ValueError, IndexError):
        return None
    every = [position for line in lines for position in line.positions]
    if not every or not all(math.isfinite(number) for position in every for number in position):
        return None
    west, _, east, _ = _bounds(every)
    surrounds = any(_width(line) > 180 for line in lines)
    if east - west > 180 and not surrounds:
        # Parts on both sides of the antimeridian are drawn beside each other.
        lines = [_moved(line, _eastward) for line in lines]
        every = [position for line in lines for position in line.positions]
    west, south, east, north = _bounds(every)
    shrink = max(math.cos(math.radians((south + north) / 2)), 0.01)
    flat = _from_above(south, north) if surrounds else None
    lines = [_moved(line, flat or (lambda at: (at[0] * shrink, at[1]))) for line in lines]
    x0, y0, x1, y1 = _bounds([position for line in lines for position in line.positions])
    wide, high = max(x1 - x0, _SMALLEST), max(y1 - y0, _SMALLEST)
    scale = min((WIDTH - 2 * _MARGIN) / wide, (HEIGHT - 2 * _MARGIN - 20) / high)
    left, top = (WIDTH - wide * scale) / 2, (HEIGHT - 20 - high * scale) / 2

    def placed(position: Position) -> Position:
        x, y = position
        return left + (x - x0) * scale, top + (y1 - y) * scale

    length, label = _bar(scale)
    return Footprint(
        path="".join(_path(line, placed) for line in lines if len(line.positions) > 1),
        points=tuple(placed(each.positions[0]) for each in lines if len(each.positions) == 1),
        bar=length,
        bar_label=label,
        west=west,
        south=south,
        east=east,
        north=north,
    )


def _bounds(positions: Sequence[Position]) -> tuple[float, float, float, float]:
    xs, ys = [x for x, _ in positions], [y for _, y in positions]
    return min(xs), min(ys), max(xs), max(ys)


def _width(line: _Line) -> float:
    west, _, east, _ = _bounds(line.positions)
    return east - west


def _moved(line: _Line, move: Callable[[Position], Position]) -> _Line:
    return _Line([move(each) for each in line.positions], line.closed)


def _from_above(south: float, north: float) -> Callable[[Position], Position] | None:
    """Degrees from a pole in every direction; None: there is nothing around one pole alone."""
    if south > 0 and north >= _POLE:
        side = 1.0
    elif north < 0 and south <= -_POLE:
        side = -1.0
    else:
        return None

    def move(position: Position) -> Position:
        angle, distance = math.radians(position[0]), 90 - side * position[1]
        return distance * math.sin(angle), -side * distance * math.cos(angle)

    return move


def _lines(geometry: Mapping[str, Any]) -> Iterator[_Line]:
    kind = geometry["type"]
    if kind == "GeometryCollection":
        for each in geometry["geometries"]:
            yield from _lines(each)
        return
    found = geometry["coordinates"]
    match kind:
        case "Point":
            yield _Line([_position(found)], closed=False)
        case "MultiPoint":
            yield from (_Line([_position(each)], closed=False) for each in found)
        case "LineString":
            yield _line(found, closed=False)
        case "MultiLineString":
            yield from (_line(each, closed=False) for each in found)
        case "Polygon":
            yield from (_line(each, closed=True) for each in found)
        case "MultiPolygon":
            yield from (_line(ring, closed=True) for each in found for ring in each)
        case _:
            raise ValueError(kind)


def _line(found: Sequence[Any], *, closed: bool) -> _Line:
    step = max(1, math.ceil(len(found) / _POINTS))
    return _Line([_position(each) for each in found[::step]], closed)


def _position(found: Sequence[Any]) -> Position:
    return float(found[0]), float(found[1])


def _eastward(position: Position) -> Position:
    x, y = position
    return (x + 360 if x < 0 else x), y


def _path(line: _Line, placed: Any) -> str:
    positions = (placed(each) for each in line.positions)
    drawn = "L".join(f"{x:.1f} {y:.1f}" for x, y in positions)
    return f"M{drawn}{'Z' if line.closed else ''}"


def _bar(scale: float) -> tuple[float, str]:
    """The longest of 1, 2 and 5 times a power of ten that fits, and its name."""
    per_kilometre = scale / KILOMETRES_PER_DEGREE
    fitting = _BAR / per_kilometre
    power = 10.0 ** math.floor(math.log10(fitting))
    kilometres = max(factor * power for factor in (1, 2, 5) if factor * power <= fitting)
    label = f"{kilometres:,.0f} km" if kilometres >= 1 else f"{kilometres * 1000:,.3g} m"
    return kilometres * per_kilometre, label


_PAGE_SIZE: Final = 20


class JobListPage:
    """Jobs, the newest change first."""

    def __init__(self, site: Site, service: JobService) -> None:
        self._site = site
        self._service = service

    async def show(
        self, request: Request, status: JobStatus | None = None, before: Before = None
    ) -> Response:
        """Jobs of a status, or all."""
        visitor = await self._site.visitor(request)
        found = await self._service.queries.list(
            visitor.who, status=status, before=cursor_of(before), limit=_PAGE_SIZE
        )
        query = {"status": status.value} if status else {}
        older = None
        if found.next is not None:
            older = f"/jobs?{urlencode({**query, 'before': found.next})}"
        newest = f"/jobs?{urlencode(query)}" if before else None
        return self._site.page(
            request,
            visitor,
            "jobs.html",
            jobs=found.jobs,
            only=status,
            older=older,
            newest=newest,
        )


ASKED: Final = "parameter."
"""Begins the names of fields for parameters that a job asks for."""
_TASKS: Final = 50
_LONGEST: Final = 10_000
"""Characters of a parameter."""


class JobPage:
    """Shows a job in whatever state it is.

    Args:
        site: The context of the pages.
        service: Of jobs.
        scratch: Folder for files on their way to a person.
    """

    def __init__(self, site: Site, service: JobService, scratch: Path) -> None:
        self._site = site
        self._service = service
        self._scratch = scratch

    async def show(
        self,
        request: Request,
        job: str,
        status: TaskStatus | None = None,
        token: Annotated[str | None, Query(max_length=200)] = None,
    ) -> Response:
        """The whole page; of its tasks those of a status."""
        visitor = await self._site.visitor(request)
        found = await self._service.queries.get(visitor.who, job)
        tasks = await self._service.queries.tasks(
            visitor.who, found.job_id, status=status, token=token, limit=_TASKS
        )
        context = await self._context(visitor, found)
        return self._site.page(
            request,
            visitor,
            "job.html",
            **context,
            with_forms=False,
            tasks=tasks.tasks,
            next=tasks.next,
            only=status,
            token=token,
        )

    async def live(self, request: Request, job: str, shown: JobStatus | None = None) -> Response:
        """The part of the page that changes by itself.

        Its forms are left alone while the job has the status for which they are shown.
        """
        visitor = await self._site.visitor(request)
        found = await self._service.queries.get(visitor.who, job)
        context = await self._context(visitor, found)
        return self._site.page(
            request, visitor, "job_live.html", **context, with_forms=found.status is not shown
        )

    async def events(self, request: Request, job: str) -> Response:
        """An event whenever the job has changed; its data is nothing but its revision."""
        visitor = await self._site.visitor(request)
        last = request.headers.get("Last-Event-ID", "")[:30] or None
        now = revision(await self._service.queries.get(visitor.who, job))
        if now.job.ended and now.id == last:
            return Response(status_code=204)
        stopping = request.app.state.stopping
        revisions = self._service.queries.events(visitor.who, job, last, stopping)
        return event_stream(
            revisions, event="revision", id=lambda each: each.id, render=lambda each: each.id
        )

    async def preview(self, request: Request, job: str) -> Response:
        """The preview picture of the result."""
        visitor = await self._site.visitor(request)
        found = await self._service.queries.record(visitor.who, job)
        outputs = JobOutputs.of(found.result_data)
        if outputs.preview is None:
            raise NotFound("this job has no preview")
        return await self._file(visitor, job, outputs.preview, "image/png", inline=True)

    async def file(
        self, request: Request, job: str, uri: Annotated[str, Query(max_length=2_048)]
    ) -> Response:
        """A file of the result."""
        visitor = await self._site.visitor(request)
        return await self._file(visitor, job, uri, "application/octet-stream", inline=False)

    async def answer(self, request: Request, job: str) -> Response:
        """Answer a job that is parked."""
        visitor, form = await self._form(request)
        record = await self._service.queries.record(visitor.who, job)
        given = self._service.submission.typed(record.job_type, _parameters(form))
        decision = form.text("decision", 20) or Decision.RETRY
        if decision not in tuple(Decision):
            raise Refused(f"“{decision}” is no answer to a parked job")
        await self._service.answer(
            visitor.who,
            record.job_id,
            Decision(decision),
            parameters=given if decision == Decision.RETRY else None,
            reason=form.text("reason", 500) or None,
        )
        return RedirectResponse(f"/jobs/{job}", 303)

    async def restart(self, request: Request, job: str) -> Response:
        """Begin another attempt."""
        visitor, form = await self._form(request)
        await self._service.restart(visitor.who, job, form.whole("from_stage"))
        return RedirectResponse(f"/jobs/{job}", 303)

    async def cancel(self, request: Request, job: str) -> Response:
        """End the job."""
        visitor, form = await self._form(request)
        await self._service.cancel(visitor.who, job, form.text("reason", 500) or None)
        return RedirectResponse(f"/jobs/{job}", 303)

    async def send_again(self, request: Request, job: str, number: int) -> Response:
        """Send a webhook again."""
        visitor, form = await self._form(request)
        await self._service.send_again(visitor.who, job, number, form.whole("attempt"))
        return RedirectResponse(f"/jobs/{job}#webhooks", 303)

    async def _form(self, request: Request) -> tuple[Visitor, Form]:
        visitor = await self._site.visitor(request)
        return visitor, await self._site.form(request, visitor)

    async def _file(
        self, visitor: Visitor, job: str, uri: str, media_type: str, *, inline: bool
    ) -> Response:
        with NamedTemporaryFile(dir=self._scratch, prefix="download-", delete=False) as file:
            path = Path(file.name)
        try:
            await self._service.download(visitor.who, job, uri, path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return Download(
            path,
            media_type=media_type,
            filename=uri.rsplit("/", 1)[-1],
            content_disposition_type="inline" if inline else "attachment",
        )

    async def _context(self, visitor: Visitor, job: JobDocument) -> dict[str, Any]:
        deliveries = await self._service.queries.deliveries(visitor.who, job.job_id)
        outputs = JobOutputs.of(job.result_data)
        return {
            "job": job,
            "revision": revision(job).id,
            "outputs": outputs,
            "drawing": footprint(outputs.footprint) if outputs.footprint else None,
            "size": (WIDTH, HEIGHT),
            "deliveries": deliveries,
            "can_answer": job.status is JobStatus.PARKED and job.next_steps is not None,
            "can_cancel": not job.ended,
            "can_restart": job.status
            in (JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.TERMINATED)
            or (job.status is JobStatus.COMPLETED and job.failed_count > 0),
        }


def _parameters(form: Form) -> dict[str, str]:
    """The answers to questions, and other parameters that were typed a line each.

    Raises:
        Refused: A line is not NAME=VALUE.
    """
    asked = {
        name.removeprefix(ASKED): form.text(name, _LONGEST)
        for name in form.fields
        if name.startswith(ASKED)
    }
    given = {name: text for name, text in asked.items() if text}
    for line in filter(None, map(str.strip, form.text("others", _LONGEST).splitlines())):
        name, equals, value = line.partition("=")
        if not name.strip() or not equals:
            raise Refused(f"“{line[:100]}”: write NAME=VALUE, a parameter in each line")
        given[name.strip()] = value.strip()
    return given


TEMPLATES: Final = Path(__file__).parent / "templates"
_DESCRIPTION: Final = (
    "Run staged jobs: submit one, follow its stages and tasks, restart it from the stage that "
    "failed, and see what became of its webhooks."
)


def open_part(context: Context, settings: None) -> GatewayPart:
    """The part over the resources of a gateway.

    Args:
        context: What the process has opened.
        settings: None.
    """
    resources = context.resources
    service = job_service(context.environment, context.client, resources)
    public_url = AddressSettings.read(context.environment).public_url
    return part_of(service, resources.scratch, Catalogue(resources.database), public_url)


def part_of(
    service: JobService, scratch: Path, catalogue: Catalogue, public_url: str | None = None
) -> GatewayPart:
    """The part over a service.

    Args:
        service: Of jobs.
        scratch: Folder for files on their way to a person.
        catalogue: Of what jobs have made.
        public_url: Address of the gateway for its users; None: as each request was addressed.
    """
    stac = stac_router(catalogue, public_url, service.published)

    def routes(site: Site) -> Sequence[PageRoute]:
        return _routes(site, service, scratch)

    return GatewayPart(
        service=service,
        description=_DESCRIPTION,
        further={Catalogue: catalogue},
        routers=(api.router, *v1.ROUTERS, stac),
        uploads=("/api/v1/jobs/files",),
        runs=ServedJobs(service),
        problems={InvalidJob: invalid_job},
        pages=PipelinePages(
            routes=routes,
            templates=TEMPLATES,
            names={"job_words": labels},
            answer_at="#answer",
            menu=(MenuEntry("/jobs", N_("Jobs"), operators=True),),
        ),
    )


def _routes(site: Site, service: JobService, scratch: Path) -> Sequence[PageRoute]:
    page, one = JobPage(site, service, scratch), "/jobs/{job}"
    return (
        ("GET", "/jobs", JobListPage(site, service).show),
        ("GET", one, page.show),
        ("GET", f"{one}/live", page.live),
        ("GET", f"{one}/events", page.events),
        ("GET", f"{one}/preview", page.preview),
        ("GET", f"{one}/files", page.file),
        ("POST", f"{one}/answer", page.answer),
        ("POST", f"{one}/restart", page.restart),
        ("POST", f"{one}/cancel", page.cancel),
        ("POST", f"{one}/webhooks/{{number}}/send", page.send_again),
    )

"""What the gateway serves of jobs: list and page, drawings of footprints."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from activities.jobs.catalogue import Catalogue
from workers.jobs import api, labels, v1
from workers.jobs.api import invalid_job
from workers.jobs.catalogue_pages import catalogue_routes
from workers.jobs.factory import job_service
from workers.jobs.graph import APART, job_graph, restart_choices
from workers.jobs.maps import footprint
from workers.jobs.run_actions import ServedJobs
from workers.jobs.runs import JobDocument
from workers.jobs.service import JobService, revision
from workers.jobs.stac_api import AssetFiles, stac_router
from workers.jobs.submission import InvalidJob
from workers.shared.gateway.app import GatewayPart
from workers.shared.gateway.http.answers import Download, event_stream
from workers.shared.gateway.pages.renderer import N_, MenuEntry, gettext
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
from workers.shared.services.errors import NotFound, Refused
from workers.shared.services.identity import OPERATOR
from workers.shared.services.run_service import RunDetails
from workers.shared.settings.common import AddressSettings
from workflows.jobs.records import JobOutputs, JobStatus, TaskStatus
from workflows.shared.parking import Decision

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
            request,
            visitor.who,
            revisions,
            event="revision",
            id=lambda each: each.id,
            render=lambda each: each.id,
        )

    async def preview(self, request: Request, job: str) -> Response:
        """The preview picture of the result."""
        visitor = await self._site.visitor(request)
        found = await self._service.queries.record(visitor.who, job)
        outputs = JobOutputs.of(found.result_data)
        if outputs.preview is None:
            raise NotFound(gettext("this job has no preview"))
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
            raise Refused(gettext("“%(text)s” is no answer to a parked job", text=decision))
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
        spans = await self._service.queries.spans(visitor.who, job.job_id, APART)
        outputs = JobOutputs.of(job.result_data)
        operates = visitor.who.may(OPERATOR, job.organisation_id)
        return {
            "job": job,
            "revision": revision(job).id,
            "outputs": outputs,
            "drawing": footprint(outputs.footprint) if outputs.footprint else None,
            "graph": job_graph(job, spans, datetime.now(UTC)),
            "deliveries": deliveries,
            "operates": operates,
            "can_answer": operates
            and job.status is JobStatus.PARKED
            and job.next_steps is not None,
            "can_cancel": operates and not job.ended,
            "restarts": restart_choices(job) if operates and job.ended else (),
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
            text = line[:100]
            raise Refused(
                gettext("“%(text)s”: write NAME=VALUE, a parameter in each line", text=text)
            )
        given[name.strip()] = value.strip()
    return given


async def _parts(visitor: Visitor, found: RunDetails, form: Form | None) -> Sequence[RunPart]:
    """What a job was asked to do."""
    given: Mapping[str, Any] = found.details.get("parameters") or {}
    return facts_part(
        N_("Input"), [Fact(name, _shown(value)) for name, value in given.items()][:_PARAMETERS]
    )


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


_PARAMETERS: Final = 50
_LONGEST_SHOWN: Final = 300
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
        files = AssetFiles(service.published)
        return (*_routes(site, service, scratch), *catalogue_routes(site, catalogue, files))

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
            parts=_parts,
            menu=(
                MenuEntry("/runs?pipeline=jobs", N_("Jobs"), key="j"),
                MenuEntry("/catalogue", N_("Catalogue"), key="c"),
            ),
        ),
    )


def _routes(site: Site, service: JobService, scratch: Path) -> Sequence[PageRoute]:
    page, one = JobPage(site, service, scratch), "/jobs/{job}"
    return (
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

"""The page of one job: stages, tasks, result, webhooks, and what a person can do."""

from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from fastapi.responses import FileResponse, RedirectResponse
from starlette.types import Receive, Scope, Send

from contracts.jobs import JobOutputs, JobStatus, TaskStatus
from domain.jobs.footprints import HEIGHT, WIDTH, footprint
from workers.gateway.http.event_stream import event_stream
from workers.gateway.jobs.schemas import delivery_view
from workers.gateway.pages.forms import Form
from workers.gateway.pages.site import Site, Visitor
from workers.services.errors import NotFound, Refused
from workers.services.jobs.documents import JobDocument
from workers.services.jobs.queries import revision
from workers.services.jobs.service import JobService
from workflows.parking import Decision

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
            "deliveries": [delivery_view(each) for each in deliveries],
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


class Download(FileResponse):
    """Sends a file and deletes it, also when the client has disconnected."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            Path(self.path).unlink(missing_ok=True)

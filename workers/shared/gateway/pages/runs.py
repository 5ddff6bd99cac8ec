"""The runs of all pipelines: the overview, the list, one answer for many, and a page for each."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Final, Literal
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from adapters.database.access import SqlAudit
from adapters.database.runs import EndedRuns, RunsOverview, WaitingRuns
from adapters.database.saved_views import MOST_VIEWS, SqlSavedViews
from workers import catalogue
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.requests import cursor_of
from workers.shared.gateway.pages.preferences import preferences_of
from workers.shared.gateway.pages.renderer import N_, MenuEntry, gettext, localised, number, stamp
from workers.shared.gateway.pages.site import (
    Alert,
    Form,
    PageRoute,
    PipelinePages,
    RunPart,
    Site,
    Visitor,
    sentence,
)
from workers.shared.gateway.v1.audit import audit_of
from workers.shared.gateway.v1.runs import Verb, download_report, note_answer, note_answers
from workers.shared.register import RunGroup, recognise
from workers.shared.services.errors import (
    Conflict,
    Refused,
    ServiceError,
    TemporalUnavailable,
    WrongState,
)
from workers.shared.services.identity import Identity
from workers.shared.services.inbox import page_of
from workers.shared.services.lists import Cursor
from workers.shared.services.run_actions import AnswerRequest
from workers.shared.services.run_service import MOST_ANSWERED, RunService, Span
from workers.shared.services.status_service import StatusRecord, StatusService
from workers.shared.services.versions import version_of
from workers.shared.text import Label
from workflows.shared.runs import RunFilter, RunRecord, RunState

_S = RunState
STATES: Final[Mapping[RunState, Label]] = {
    _S.NEEDS_ATTENTION: Label(N_("Needs attention"), "warn"),
    _S.RUNNING: Label(N_("Running"), "info"),
    _S.WAITING: Label(N_("Waiting")),
    _S.COMPLETED: Label(N_("Completed"), "good"),
    _S.COMPLETED_WITH_PROBLEMS: Label(N_("Completed with problems"), "warn"),
    _S.FAILED: Label(N_("Failed"), "bad"),
    _S.CANCELLED: Label(N_("Cancelled")),
    _S.SKIPPED: Label(N_("Skipped")),
}
"""What pages call the states, in the order of the list's tabs."""
SPANS: Final[Mapping[Span, str]] = {
    Span.HOUR: N_("Last hour"),
    Span.DAY: N_("Last day"),
    Span.MONTH: N_("Last month"),
}
VERBS: Final[Mapping[Verb, str]] = {
    "retry": N_("Try again"),
    "skip": N_("Leave out"),
    "fail": N_("Give up"),
    "cancel": N_("Cancel"),
}
COUNTS: Final[Mapping[str, str]] = {
    "rows": N_("rows"),
    "created": N_("created"),
    "updated": N_("updated"),
    "unchanged": N_("unchanged"),
    "skipped": N_("skipped"),
    "deleted": N_("deleted"),
    "flagged": N_("flagged"),
    "rejected": N_("rejected"),
    "error": N_("with errors"),
    "parked": N_("parked"),
    "open_values": N_("open values"),
    "problems": N_("problems"),
    "documents": N_("documents"),
    "dead_letters": N_("dead letters"),
    "stage": N_("stage"),
    "total_stages": N_("stages"),
    "failed_tasks": N_("failed tasks"),
}
"""What pages call the counts of a run; others are shown as they are."""
TIMELINE: Final[Mapping[str, str]] = {
    "started": N_("started"),
    "continued": N_("continued"),
    "waits for a person": N_("waits for a person"),
    "ended": N_("ended"),
    "failed": N_("failed"),
    "ran out of time": N_("ran out of time"),
    "was cancelled": N_("was cancelled"),
    "was terminated": N_("was terminated"),
    "continues with a new history": N_("continues with a new history"),
    "retry": N_("Try again"),
    "skip": N_("Leave out"),
    "fail": N_("Give up"),
    "cancel": N_("Cancel"),
}
"""What a timeline says in the same words of every run; names of steps are shown as they are."""
_PAGE: Final = 50
_SHORT: Final = 200
_NAME: Final = 60
"""Characters of the name of a view."""
_QUERY: Final = 2_000


Text = Annotated[str, Query(max_length=_SHORT)]
# A form sends a field that was left blank as well.
Day = Annotated[
    Annotated[date, Field(ge=date(1970, 1, 1), le=date(9000, 1, 1))] | None,
    BeforeValidator(lambda text: text or None),
    Query(),
]


@dataclass(frozen=True)
class Asked:
    """What a list of runs is narrowed to, as its address says."""

    text: Text = ""
    pipeline: Text = ""
    kind: Text = ""
    state: Text = ""
    project: Text = ""
    reason: Text = ""
    since: Day = None
    """They changed on this day or later, UTC."""
    until: Day = None
    """They changed on this day or earlier, UTC."""
    mine: bool = False
    sort: Annotated[Literal["", "changed_at"], Query()] = ""
    """`changed_at`: the oldest change comes first."""

    def given(self, **changes: str | bool) -> Mapping[str, str]:
        """What narrows the list, by the name of its field, with changes."""
        values = asdict(self) | changes
        texts = {name: str(value).strip() for name, value in values.items() if value}
        return texts | ({"mine": "true"} if values["mine"] else {})

    def query(self, **changes: str | bool) -> str:
        """The same as a query."""
        return urlencode(self.given(**changes))

    def address(self, **changes: str | bool) -> str:
        """Address of the list that is narrowed so."""
        query = self.query(**changes)
        return f"/runs?{query}" if query else "/runs"

    def filter(self, who: Identity, limit: int) -> RunFilter:
        """The same as the table of runs reads it."""
        return RunFilter(
            limit,
            pipelines=[self.pipeline] if self.pipeline else None,
            kind=self.kind.strip() or None,
            state=self.state or None,
            project=self.project.strip() or None,
            owner=who.subject if self.mine else None,
            oldest_first=bool(self.sort),
            reason=self.reason.strip() or None,
            text=self.text.strip() or None,
            since=self.since and datetime.combine(self.since, time(), UTC),
            until=self.until and datetime.combine(self.until + timedelta(days=1), time(), UTC),
        )


_ASKED: Final = TypeAdapter(Asked)


def _asked_in(query: str) -> Asked:
    """The filter that the query of an address says; one that says none narrows nothing."""
    try:
        return _ASKED.validate_python(dict(parse_qsl(query)))
    except ValidationError:
        return Asked()


TheAsked = Annotated[Asked, Depends()]


@dataclass(frozen=True, slots=True)
class Listed:
    """A run in a list."""

    run: RunRecord
    title: str
    kind: str
    address: str
    """Of its own page, or else of the page that every run has."""
    has_own_page: bool
    needs: str | None
    """Why it is in its state, or what it waits for."""


class RunPages:
    """Lists runs, shows one, and takes answers to one or many.

    Args:
        site: The context of the pages.
        service: Of runs.
        status: Of the installation.
        pages: Those of each pipeline that has some, by name.
        views: Filters that people keep.
    """

    def __init__(
        self,
        site: Site,
        service: RunService,
        status: StatusService | None,
        pages: Mapping[str, PipelinePages],
        views: SqlSavedViews,
    ) -> None:
        self._site = site
        self._service = service
        self._status = status
        self._pages = pages
        self._views = views

    async def overview(self, request: Request, span: Span = Span.DAY) -> Response:
        """Whether everything is well, in five seconds."""
        visitor = await self._site.visitor(request)
        who = preferences_of(request).narrowed(visitor.who)
        found = await self._service.overview(who, span)
        status: StatusRecord | None = None
        if visitor.who.is_operator and self._status is not None:
            status = await self._status.status(visitor.who)
        numbers, ended = _numbers(found), _ended(found.ended)
        # The inbox also has runs that ended and left something to a person.
        pipelines = status.pipelines.values() if status and who == visitor.who else ()
        inbox = [each.waiting for each in pipelines if each is not None]
        return self._site.page(
            request,
            visitor,
            "overview.html",
            found=found,
            numbers=numbers,
            waits=max(numbers[_S.NEEDS_ATTENTION][0], sum(inbox)),
            ended=ended,
            failed=ended.get(_S.FAILED, 0),
            waiting=[
                (
                    each,
                    each.reason or self._waits_for(each.pipeline, each.own_state) or "–",  # noqa: RUF001
                    _alike(each).address(),
                )
                for each in found.waiting
            ],
            plot=plot(found, span),
            span=span,
            spans=SPANS,
            states=STATES,
            titles=_titles(),
            failing=[each for each in status.checks if not each.up] if status else [],
            checks=status.checks if status else [],
            outages=status.outages if status else [],
            pipelines=status.pipelines if status else {},
        )

    async def list(
        self,
        request: Request,
        asked: TheAsked,
        cursor: Annotated[str | None, Query(max_length=300)] = None,
    ) -> Response:
        """Runs, the newest change first."""
        visitor = await self._site.visitor(request)
        return await self._list(request, visitor, asked, cursor)

    async def _list(
        self,
        request: Request,
        visitor: Visitor,
        asked: Asked,
        cursor: str | None = None,
        problem: Alert | None = None,
        typed: str = "",
    ) -> Response:
        who = preferences_of(request).narrowed(visitor.who)
        wanted = asked.filter(who, _PAGE + 1)
        if (behind := cursor_of(cursor)) is not None:
            wanted = replace(wanted, before=behind.at, behind=behind.id)
        found = await self._service.list(who, wanted)
        items, older = found[:_PAGE], None
        if len(found) > _PAGE:
            last = {"cursor": str(Cursor(items[-1].changed_at, items[-1].id))}
            older = f"/runs?{asked.query()}&{urlencode(last)}".replace("?&", "?")
        return self._site.page(
            request,
            visitor,
            "runs.html",
            200 if problem is None else Refused.status,
            problem=problem,
            typed=typed,
            views=await self._views.of(visitor.who.subject),
            longest=_NAME,
            new=beginnings(self._pages, visitor.who),
            related=[
                entry
                for name, each in self._pages.items()
                for entry in each.related
                if name == asked.pipeline and entry.is_for(visitor.who)
            ],
            kinds={
                name: title
                for each in self._pages.values()
                for name, title in each.type_titles().items()
            },
            runs=[self._listed(each) for each in items],
            asked=asked,
            older=older,
            newest=asked.address() if cursor else None,
            states=STATES,
            groups=_titles(),
            verbs=VERBS,
            counts=COUNTS,
        )

    async def save_view(self, request: Request) -> Response:
        """Keep the filter of the list under a name, for the person alone."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        asked = _asked_in(form.text("query", _QUERY))
        try:
            name = form.text("name", _NAME)
            if not name:
                raise Refused(gettext("give the view a name"))
            if not asked.query():
                raise Refused(gettext("narrow the list first: a view keeps a filter"))
            if not await self._views.save(visitor.who.subject, name, asked.query()):
                raise Refused(gettext("you have %(most)s views: remove one first", most=MOST_VIEWS))
        except Refused as error:
            alert = Alert(gettext("The view was not saved"), sentence(error))
            typed = form.fields.get("name", "")[:_SHORT]
            return await self._list(request, visitor, asked, problem=alert, typed=typed)
        return RedirectResponse(asked.address(), 303)

    async def remove_view(self, request: Request) -> Response:
        """Forget a view of the person."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        asked = _asked_in(form.text("query", _QUERY))
        if (id := form.whole("id")) is not None:
            await self._views.remove(visitor.who.subject, id)
        return RedirectResponse(asked.address(), 303)

    async def preview(
        self,
        request: Request,
        asked: TheAsked,
        verb: Verb,
    ) -> Response:
        """Say which runs an answer would be for."""
        visitor = await self._site.visitor(request)
        who, asked = preferences_of(request).narrowed(visitor.who), replace(asked, state="")
        done = await self._service.answer_all(
            who,
            asked.filter(who, MOST_ANSWERED),
            AnswerRequest(verb),
            dry_run=True,
        )
        return self._site.page(
            request,
            visitor,
            "runs_preview.html",
            verb=verb,
            verbs=VERBS,
            asked=asked,
            runs=[self._listed(each) for each in done.found],
            left_out=done.left_out,
            more=done.more,
        )

    async def answer_all(
        self, request: Request, act: TheAct, audit: Annotated[SqlAudit, Depends(audit_of)]
    ) -> Response:
        """Give one answer to the runs that a preview has shown."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        ids = [id for each in form.text("ids", 500_000).split("\n") if (id := each.strip())]
        if len(ids) > MOST_ANSWERED:
            raise Refused(gettext("at most %(most)s runs at once", most=MOST_ANSWERED))
        answer = _answer_of(form)
        act.reason, act.after = answer.reason, {"answer": answer.verb, "ids": ids}
        done = await self._service.answer_all(
            visitor.who,
            RunFilter(MOST_ANSWERED, ids=ids),
            answer,
            dry_run=False,
        )
        await note_answers(audit, act, answer.verb, done)
        return self._site.page(
            request,
            visitor,
            "runs_answered.html",
            answered=len(done.found) - len(done.failed),
            failed=done.failed,
            left_out=done.left_out,
        )

    async def show(self, request: Request, id: str) -> Response:
        """What is known of a run, and what has happened to it."""
        visitor = await self._site.visitor(request)
        return await self._page(request, visitor, id)

    async def _page(
        self,
        request: Request,
        visitor: Visitor,
        id: str,
        form: Form | None = None,
        error: ServiceError | None = None,
    ) -> Response:
        """The page of a run; after an answer that was not taken with what was chosen, and why."""
        found = await self._service.get(visitor.who, id)
        pages = self._pages.get(found.run.pipeline)
        parts: Sequence[RunPart] = ()
        if pages is not None and pages.parts is not None:
            parts = await pages.parts(visitor, found, form)
        timeline, is_known = [], True
        try:
            timeline = await self._service.timeline(visitor.who, found.run.id)
        except TemporalUnavailable:
            is_known = False
        return self._site.page(
            request,
            visitor,
            "run.html",
            200 if error is None else error.status,
            problem=None if error is None else Alert(error.title, sentence(error)),
            it=self._listed(found.run),
            run=found.run,
            version=version_of(found.run),
            address=page_of(found.run.id),
            own_page=_own_page(found.run),
            parts=parts,
            answers=[each for each in VERBS if each in found.answers],
            has_report=found.has_report,
            temporal=None if found.view is None else found.view.link,
            timeline=timeline,
            said=TIMELINE,
            is_known=is_known,
            problems=found.details.get("problems") or (),
            problem_count=found.details.get("problem_count") or 0,
            states=STATES,
            verbs=VERBS,
            counts=COUNTS,
            reason=form.fields.get("reason", "") if form else "",
        )

    async def answer(self, request: Request, act: TheAct, id: str) -> Response:
        """Take an answer to a run, as long as it stands where the page showed it."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        run = await self._service.row(visitor.who, id)
        try:
            answer, seen = _answer_of(form), form.text("version", 100)
            pages = self._pages.get(run.pipeline)
            if answer.verb == "retry" and pages is not None and pages.changes_of is not None:
                answer = replace(answer, changes=pages.changes_of(form))
            act.reason = answer.reason
            note_answer(act, run, answer.verb, answer.changes)
            found = await self._service.answer(visitor.who, id, answer, [seen] if seen else None)
        except (Conflict, Refused, WrongState) as error:
            return await self._page(request, visitor, id, form, error)
        return RedirectResponse(page_of(found.run.id), 303)

    async def report(
        self, request: Request, id: Annotated[str, Query(min_length=1, max_length=1_000)]
    ) -> Response:
        """The spreadsheet of what was rejected."""
        visitor = await self._site.visitor(request)
        return await download_report(self._service, visitor.who, id)

    def _listed(self, run: RunRecord) -> Listed:
        pages = self._pages.get(run.pipeline)
        kind = (pages.type_titles().get(run.kind) if pages else None) or run.kind
        kind = localised(kind.replace("_", " "))
        group = _groups().get(run.pipeline)
        kinds = (localised(group.title) if group else run.pipeline, kind)
        own = _own_page(run)
        return Listed(
            run,
            run.title or run.key,
            " · ".join(dict.fromkeys(kinds)),
            own or page_of(run.id),
            own is not None,
            run.reason
            or (self._waits_for(run.pipeline, run.own_state) if run.needs_attention else None),
        )

    def _waits_for(self, pipeline: str, own_state: str) -> str | None:
        """What the pages of a pipeline call a state in which its runs wait for a person."""
        pages = self._pages.get(pipeline)
        title = pages and pages.state_titles.get(own_state)
        return localised(title) if title else None


def _alike(waiting: WaitingRuns) -> Asked:
    """The list of the runs that wait for one reason; without one, of those in their state."""
    state = str(_S.NEEDS_ATTENTION) if waiting.reason else waiting.own_state
    reason = (waiting.reason or "")[:_SHORT].strip()
    return Asked(pipeline=waiting.pipeline, state=state, reason=reason)


def beginnings(pages: Mapping[str, PipelinePages], who: Identity) -> Sequence[MenuEntry]:
    """Forms with which a person starts a run."""
    return [entry for each in pages.values() for entry in each.new if entry.is_for(who)]


def _groups() -> Mapping[str, RunGroup]:
    return {each.name: each for each in catalogue.run_groups()}


def _titles() -> Mapping[str, str]:
    return {name: each.title for name, each in _groups().items()}


def _own_page(run: RunRecord) -> str | None:
    """Address of a further page that its pipeline has of a run."""
    known = recognise(catalogue.run_groups(), run.id)
    page = None if known is None or known.kind.page is None else known.kind.page(known.key)
    return None if page == page_of(run.id) else page


def _answer_of(form: Form) -> AnswerRequest:
    verb = form.text("verb", 20)
    if verb not in VERBS:
        raise Refused(gettext("choose what becomes of the runs"))
    return AnswerRequest(verb, reason=form.text("reason", 500) or None)


def _numbers(found: RunsOverview) -> Mapping[RunState, tuple[int, datetime | None]]:
    """How many runs are in each open state, and since when the longest."""
    numbers: dict[RunState, tuple[int, datetime | None]] = {}
    for state in (each for each in STATES if each.is_open):
        of_it = [each for each in found.open if each.state is state]
        number = sum(each.number for each in of_it)
        numbers[state] = (number, min((each.since for each in of_it), default=None))
    return numbers


def _ended(steps: Sequence[EndedRuns]) -> Mapping[RunState, int]:
    """How many runs ended in each way."""
    return {
        state: number
        for state in STATES
        if (number := sum(each.number for each in steps if each.state is state))
    }


WIDTH: Final = 720
HEIGHT: Final = 180
_LEFT: Final = 56
_EDGE: Final = 12
_GAP: Final = 2.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a column of a plot, in units of the picture."""

    x: float
    y: float
    width: float
    height: float
    state: RunState
    tip: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Runs that ended, by step of time: columns of one part for each state."""

    bars: Sequence[Bar]
    most: int
    """The number at the upper edge; 0 is at the lower one."""
    begins: datetime
    ends: datetime
    size: tuple[int, int] = (WIDTH, HEIGHT)
    frame: tuple[int, int, int, int] = (_LEFT, _EDGE, WIDTH - _EDGE, HEIGHT - _EDGE)
    """Left, upper, right and lower edge of what is drawn."""


def plot(found: RunsOverview, span: Span) -> Plot:
    """Draw the runs that ended.

    Args:
        found: With the steps of time in which some ended.
        span: How much of the past they are of.
    """
    columns: dict[datetime, dict[RunState, int]] = {}
    for each in found.ended:
        columns.setdefault(each.at, {})[each.state] = each.number
    most = max((sum(each.values()) for each in columns.values()), default=0)
    width = (WIDTH - _EDGE - _LEFT) / span.steps
    bars: list[Bar] = []
    for at, states in sorted(columns.items()):
        x = _LEFT + (at - found.since) / span.step * width + _GAP / 2
        lower = float(HEIGHT - _EDGE)
        for state in (each for each in STATES if each in states):
            height = states[state] / most * (HEIGHT - 2 * _EDGE)
            lower -= height
            tip = f"{stamp(at)}: {localised(STATES[state].text)} {number(states[state])}"
            place = (round(x, 1), round(lower, 1), round(width - _GAP, 1), round(height, 1))
            bars.append(Bar(*place, state=state, tip=tip))
    return Plot(bars, most, found.since, found.since + span.steps * span.step)


def run_routes(
    site: Site,
    service: RunService,
    status: StatusService | None,
    pages: Mapping[str, PipelinePages],
    views: SqlSavedViews,
) -> Sequence[PageRoute]:
    """Addresses of these pages; see `RunPages` for the arguments."""
    own = RunPages(site, service, status, pages, views)
    return (
        ("GET", "/overview", own.overview),
        ("GET", "/runs", own.list),
        ("GET", "/runs/answers", own.preview),
        ("POST", "/runs/answers", own.answer_all),
        ("GET", "/runs/report", own.report),
        ("POST", "/runs/views", own.save_view),
        ("POST", "/runs/views/remove", own.remove_view),
        ("GET", "/runs/{id:path}", own.show),
        ("POST", "/runs/{id:path}", own.answer),
    )

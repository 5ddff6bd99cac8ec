"""Pages of what operators keep: partners with their last tests, watches and expected files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from workers.shared.gateway.http.requests import the
from workers.shared.gateway.pages.renderer import gettext
from workers.shared.gateway.pages.site import Alert, PageRoute, Site, Visitor, sentence
from workers.shared.services.errands import ErrandService
from workers.shared.services.errors import Refused, ServiceError
from workers.shared.services.identity import require_operator
from workers.shared.services.schedules import ScheduleService
from workers.transfers.clocks import ClockService
from workers.transfers.partners import PartnerRecords
from workers.transfers.register import NAME
from workers.transfers.v1 import partner_head

_REASON: Final = 500


@dataclass(frozen=True, slots=True)
class TestedPartner:
    """What a test has just seen."""

    name: str
    works: bool
    sentences: Sequence[str]


class PartnersPage:
    """Lists partners, tests one, and lets runs use it or wait.

    Args:
        site: The context of the pages.
        records: Of partners; they hold no secret.
    """

    def __init__(self, site: Site, records: PartnerRecords) -> None:
        self._site, self._records = site, records

    async def show(self, request: Request) -> Response:
        """All partners, by name."""
        return await self._page(request, await self._site.visitor(request))

    async def test(
        self, request: Request, errands: Annotated[ErrandService, the(ErrandService)]
    ) -> Response:
        """Have a worker connect to a partner, and show what it saw; no file of it is moved."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        name = form.text("name", 63)
        await self._records.get(visitor.who, name)
        try:
            found = await errands.ask(
                visitor.who, NAME, "test-partner", {"name": name, "folder": ""}
            )
        except ServiceError as error:
            problem = Alert(gettext("%(name)s could not be tested", name=name), sentence(error))
            return await self._page(request, visitor, problem=problem, status=error.status)
        tested = TestedPartner(name, found["works"], found["sentences"])
        return await self._page(request, visitor, tested=tested)

    async def change(self, request: Request) -> Response:
        """Let runs use a partner, or have them wait."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        verb, name = form.text("verb", 20), form.text("name", 63)
        if verb not in ("enable", "disable"):
            raise Refused(gettext("choose what becomes of the partner"))
        await self._records.enable(visitor.who, name, enabled=verb == "enable")
        return RedirectResponse("/partners", 303)

    async def _page(
        self,
        request: Request,
        visitor: Visitor,
        *,
        tested: TestedPartner | None = None,
        problem: Alert | None = None,
        status: int = 200,
    ) -> Response:
        found = await self._records.all(visitor.who)
        return self._site.page(
            request,
            visitor,
            "partners.html",
            status,
            partners=[(partner_head(each), each.profile) for each in found],
            tested=tested,
            problem=problem,
        )


class ClocksPage:
    """Shows watches and expected files, and pauses or resumes their schedules.

    Args:
        site: The context of the pages.
        clocks: What is declared, and what came of it.
    """

    def __init__(self, site: Site, clocks: ClockService) -> None:
        self._site, self._clocks = site, clocks

    async def show(self, request: Request) -> Response:
        """Both tables."""
        visitor = await self._site.visitor(request)
        require_operator(visitor.who, "watches")
        return self._site.page(
            request,
            visitor,
            "watches.html",
            watches=await self._clocks.watches(),
            expected=await self._clocks.expected(),
        )

    async def change(
        self, request: Request, schedules: Annotated[ScheduleService, the(ScheduleService)]
    ) -> Response:
        """Pause a schedule, or resume it."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        verb = form.text("verb", 20)
        if verb not in ("pause", "resume"):
            raise Refused(gettext("choose what becomes of the schedule"))
        reason = form.text("reason", _REASON) or None
        await schedules.pause(visitor.who, form.text("schedule"), reason, paused=verb == "pause")
        return RedirectResponse("/watches", 303)


def operator_routes(site: Site, further: Mapping[type, Any]) -> Sequence[PageRoute]:
    """Addresses of these pages.

    Args:
        site: The context of the pages.
        further: Services, by class.
    """
    partners = PartnersPage(site, further[PartnerRecords])
    clocks = ClocksPage(site, further[ClockService])
    return (
        ("GET", "/partners", partners.show),
        ("POST", "/partners/test", partners.test),
        ("POST", "/partners/change", partners.change),
        ("GET", "/watches", clocks.show),
        ("POST", "/watches/change", clocks.change),
    )

"""The page of transfers that wait for one cause: one answer for all of them."""

from collections.abc import Sequence
from typing import Final

from fastapi import Request, Response

from workers.gateway.pages.language import gettext
from workers.gateway.pages.site import Site
from workers.services.errors import Refused
from workers.services.transfers.parked_groups import Answered, ParkedGroups
from workflows.parking import Decision

GROUPS: Final = "/transfers/waiting"
_SHOWN: Final = 100
_REASON: Final = 500
_DECISIONS: Final = (Decision.RETRY, Decision.FAIL)


class GroupPage:
    """Shows what waits for one cause, and answers all of it.

    Args:
        site: The context of the pages.
        groups: Of transfers.
    """

    def __init__(self, site: Site, groups: ParkedGroups) -> None:
        self._site = site
        self._groups = groups

    async def show(self, request: Request, group: str) -> Response:
        """The cause, and the transfers that have waited longest."""
        visitor = await self._site.visitor(request)
        found = await self._groups.get(visitor.who, group)
        return self._site.page(
            request,
            visitor,
            "transfer_group.html",
            group=found,
            rows=found.rows[:_SHOWN],
            address=f"{GROUPS}/{found.key}",
        )

    async def answer(self, request: Request, group: str) -> Response:
        """Give all of them one answer; how many have taken it, and why others have not."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        decision = form.text("decision", 20)
        if decision not in _DECISIONS:
            raise Refused(gettext("“%(text)s” is no answer to a transfer", text=decision))
        reason = form.text("reason", _REASON) or None
        done = await self._groups.answer(visitor.who, group, Decision(decision), reason)
        problems = _problems(done)
        return self._site.page(
            request,
            visitor,
            "transfer_group_answered.html",
            503 if problems else 200,
            answered=len(done) - len(problems),
            problems=problems[:_SHOWN],
            more=max(len(problems) - _SHOWN, 0),
        )


def _problems(done: Sequence[Answered]) -> Sequence[Answered]:
    return [each for each in done if each.problem is not None]

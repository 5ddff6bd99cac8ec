"""Pages for errors that no page has caught: unknown addresses, other methods, outages, defects."""

from collections.abc import Collection
from typing import Final, cast
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from starlette.routing import Match

from workers.shared.gateway.http.requests import prefers_page
from workers.shared.gateway.pages.preferences import language_of
from workers.shared.gateway.pages.renderer import gettext, is_fragment, use_locale
from workers.shared.gateway.pages.site import Alert, Site
from workers.shared.services.bodies import printable
from workers.shared.services.errors import Forbidden, NotFound, ServiceError, ServiceUnavailable

_SHOWN: Final = 200
"""Characters of an unknown address that its page repeats."""
_KEPT: Final = ("allow", "retry-after")
"""Headers that say the same to a browser as to a program."""


class ErrorPages:
    """Answers browsers with a page where a program gets a problem.

    Args:
        site: The context of the pages.
        programs: What addresses of the API and of health begin with, as `api`.
    """

    def __init__(self, site: Site, programs: Collection[str]) -> None:
        self._site = site
        self._programs = frozenset(programs)

    async def instead_of(self, problem: Response, request: Request) -> Response:
        """A page for a person; the problem itself where a program asks."""
        if not self._is_for_a_person(request):
            return problem
        with use_locale(language_of(request)):
            alert = _alert(request, problem.status_code)
            page = await self._site.report(request, alert, problem.status_code)
        for name in _KEPT:
            if name in problem.headers:
                page.headers[name] = problem.headers[name]
        page.headers["Vary"] = "Accept, Accept-Language, Cookie"
        return page

    def _is_for_a_person(self, request: Request) -> bool:
        first = request.scope["path"].strip("/").partition("/")[0]
        if first in self._programs:
            return False
        return is_fragment(request) or prefers_page(request.headers.get("Accept", ""))


def _page_above(request: Request) -> tuple[str, str] | None:
    """The page that an address of one of its forms begins with, where there is one."""
    path = request.scope["path"].rpartition("/")[0]
    routes = cast("FastAPI", request.app).routes
    scope = {**request.scope, "method": "GET", "path": path}
    if path and any(route.matches(scope)[0] is Match.FULL for route in routes):
        return quote(path), printable(path)
    return None


def _alert(request: Request, status: int) -> Alert:
    match status:
        case 404:
            path = printable(request.scope["path"])
            address = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}…"
            text = gettext("There is no page at this address:")
            return Alert(NotFound.title, text, items=(address,))
        case 405 if request.method in ("GET", "HEAD"):
            text = gettext("Only a form is sent to this address. Open the page that has the form.")
            return Alert(gettext("Not a page"), text, link=_page_above(request))
        case 405:
            return Alert(Forbidden.title, gettext("This address takes no form."))
        case 408:
            text = gettext("What the browser sent came too slowly. Try again.")
            return Alert(gettext("Too slow"), text)
        case 413:
            return Alert(gettext("Too large"), gettext("More was sent than docflow takes here."))
        case 503:
            text = gettext("Something that docflow needs does not answer. Try again in a moment.")
            return Alert(ServiceUnavailable.title, text)
        case 500:
            text = gettext("This should not have happened. It is logged; trying again may help.")
            return Alert(ServiceError.title, text)
        case _:
            text = gettext("docflow cannot read what the browser sent.")
            return Alert(ServiceError.title, text)

"""The page on which a person chooses how pages look, and sees what they may do."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from urllib.parse import parse_qsl, urlencode

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from workers.shared.gateway.pages.preferences import PREFERENCES, Preferences, preferences_of
from workers.shared.gateway.pages.renderer import N_, gettext
from workers.shared.gateway.pages.site import PageRoute, Site, read_form, safe_redirect_path
from workers.shared.services.errors import Forbidden
from workers.shared.services.identity import ROLES, Identity

_LASTS: Final = timedelta(days=365)
_ADDRESS: Final = "/settings"
ROLE_TITLES: Final = {
    "viewer": N_("reads"),
    "mapper": N_("uploads files and answers what uploads ask"),
    "operator": N_("answers every run, and looks after batches, jobs and transfers"),
    "admin": N_("makes API tokens and reads the audit"),
}
"""What each role adds to those before it."""


class SettingsPage:
    """Shows and keeps the choices of a browser.

    Args:
        site: The context of the pages.
    """

    def __init__(self, site: Site) -> None:
        self._site = site

    async def show(self, request: Request) -> Response:
        """What is chosen, and who the visitor is."""
        visitor = await self._site.visitor(request)
        return self._site.page(
            request,
            visitor,
            "settings.html",
            everywhere=_highest(visitor.who, None),
            roles={each: _highest(visitor.who, each) for each in visitor.who.organisations},
            role_titles=ROLE_TITLES,
        )

    async def keep(self, request: Request) -> Response:
        """Keep what a form of a page chooses; what it does not name stays as it is.

        Raises:
            Forbidden: A form of another site sent it.
        """
        if not self._site.is_own_form(request):
            raise Forbidden(gettext("choose on this site's own page"))
        form = await read_form(request)
        known = dict(parse_qsl(str(preferences_of(request))))
        known |= {name: value for name, value in form.fields.items() if name != "next"}
        chosen = Preferences.read(urlencode(known))
        answer = RedirectResponse(safe_redirect_path(form.text("next", 2000), _ADDRESS), 303)
        answer.set_cookie(
            PREFERENCES,
            str(chosen),
            max_age=int(_LASTS.total_seconds()),
            httponly=True,
            samesite="lax",
            secure=self._site.sessions.is_https(request),
            path="/",
        )
        return answer


def _highest(who: Identity, organisation: int | None) -> str | None:
    """The role that includes all others which a person has in an organisation, or in none."""
    return next((role for role in reversed(ROLES) if who.may(role, organisation)), None)


def settings_routes(site: Site) -> Sequence[PageRoute]:
    """Addresses of this page; see `SettingsPage` for the argument."""
    own = SettingsPage(site)
    return (("GET", _ADDRESS, own.show), ("POST", "/preferences", own.keep))

"""Signing in and out."""

from typing import Final

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from workers.gateway.http.auth import Unauthorised
from workers.gateway.http.hosts import is_own_origin
from workers.gateway.pages.forms import read_form
from workers.gateway.pages.language import gettext, localised
from workers.gateway.pages.site import COOKIE, Site, own_address
from workers.services.errors import Forbidden

_LONGEST: Final = 3800
"""Characters of a token that fit into a cookie."""
_START: Final = "/"


class SessionPages:
    """A token becomes a session."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def show(self, request: Request, next: str = _START) -> Response:
        """The sign-in page."""
        return self._form(request, own_address(next, _START))

    async def sign_in(self, request: Request) -> Response:
        """Keep a token that is good in a cookie."""
        # Another site must not be able to sign a person in as another user.
        if not self._is_own(request):
            raise Forbidden(gettext("sign in on this site's own page"))
        form = await read_form(request)
        token = form.text("token", 20_000)
        target = own_address(form.text("next", 2000), _START)
        if len(token) > _LONGEST:
            return self._form(
                request, target, gettext("The token is too long for a browser's cookie.")
            )
        try:
            visitor = await self._site.identify(token)
        except Unauthorised as error:
            return self._form(request, target, f"{localised(str(error))}.".capitalize())
        if not visitor.who.may_read:
            return self._form(
                request, target, gettext("The token has none of the roles that docflow knows.")
            )
        answer = RedirectResponse(target, 303)
        answer.set_cookie(
            COOKIE,
            token,
            httponly=True,
            samesite="strict",
            secure=self._is_https(request),
            path="/",
        )
        return answer

    async def sign_out(self, request: Request) -> Response:
        """Forget the session."""
        visitor = await self._site.visitor(request)
        await self._site.form(request, visitor)
        answer = RedirectResponse("/sign-in", 303)
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return answer

    def _is_own(self, request: Request) -> bool:
        """Whether the form is ours, as the browser says; a program says nothing."""
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return False
        origin, host = request.headers.get("Origin"), request.headers.get("Host", "")
        return origin is None or is_own_origin(origin, host, self._site.settings.public_url)

    def _is_https(self, request: Request) -> bool:
        """Whether people use https; a proxy may terminate TLS."""
        public = self._site.settings.public_url or ""
        return public.startswith("https://") or request.url.scheme == "https"

    def _form(self, request: Request, next: str, problem: str | None = None) -> Response:
        status = 401 if problem else 200
        return self._site.page(request, None, "sign_in.html", status, problem=problem, next=next)

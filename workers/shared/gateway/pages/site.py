"""What all pages share: who looks at them, forms that are really ours, refusals in words."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from workers.shared.gateway.http.auth import KeysUnavailable, Tokens, Unauthorised
from workers.shared.gateway.http.requests import csrf_token, csrf_valid
from workers.shared.gateway.pages.renderer import (
    MenuEntry,
    Templates,
    gettext,
    is_fragment,
    localised,
    negotiated,
    use_locale,
)
from workers.shared.services.errors import (
    Forbidden,
    NotFound,
    Refused,
    ServiceError,
    ServiceUnavailable,
    TooLarge,
)
from workers.shared.services.identity import Identity
from workers.shared.settings.gateway import GatewaySettings

_LARGEST: Final = 1_000_000
"""Bytes of a form; one with 256 columns has about 30,000."""
_MOST_FIELDS: Final = 2_000
_FORM: Final = "application/x-www-form-urlencoded"


class Form:
    """A submitted form; the last of several values of a name counts."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = fields

    def text(self, name: str, most: int = 300) -> str:
        """A value without surrounding blanks.

        Raises:
            Refused: It is longer than any that a page sends.
        """
        value = self.fields.get(name, "").strip()
        if len(value) > most:
            raise Refused(
                gettext("“%(name)s” is too long: at most %(most)s characters", name=name, most=most)
            )
        return value

    def whole(self, name: str) -> int | None:
        """A whole number; None when it was left blank.

        Raises:
            Refused: It is not one.
        """
        value = self.text(name, 20)
        if not value:
            return None
        if not value.isascii() or not value.isdecimal():
            raise Refused(gettext("“%(value)s” is not a whole number", value=value))
        return int(value)


async def read_form(request: Request) -> Form:
    """Read a submitted form, of bounded size.

    Raises:
        Refused: It is not a form.
        TooLarge: It is larger than any of ours.
    """
    if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != _FORM:
        raise Refused(gettext("this page takes forms only"))
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST:
            raise TooLarge(gettext("the form is too large"))
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError as error:
        raise Refused(gettext("the form cannot be read")) from error
    return Form(dict(pairs))


_WIRE_NAME: Final = re.compile(r"^[a-z]+[A-Z]\w*: ")
COOKIE: Final = "docflow_session"
"""Holds the token of the signed-in person; neither scripts nor other sites can use it."""


class SignInNeeded(Exception):
    """There is no session, or it has expired."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The person who looks at a page."""

    who: Identity
    session: str
    """Value of the session cookie."""

    @property
    def csrf(self) -> str:
        """What the forms of this page carry."""
        return csrf_token(self.session)


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that a person should know before continuing."""

    title: str
    sentence: str
    tone: str = "bad"
    items: tuple[str, ...] = ()
    """Each of several things that it is about."""
    link: tuple[str, str] | None = None
    """Address, and what it is called."""
    quiet: bool = False
    """It is not a reply to an action: the focus stays where it is."""


class Site:
    """The pages' way to tokens, settings and templates."""

    def __init__(
        self, tokens: Tokens, settings: GatewaySettings, templates: Templates, start: str
    ) -> None:
        """Build the context of the pages.

        Args:
            tokens: Who may ask.
            settings: Of the gateway.
            templates: Of all pages.
            start: Path to continue at after signing in again for a form that was not taken.
        """
        self.settings = settings
        self.templates = templates
        self._tokens = tokens
        self._start = start

    async def identify(self, session: str) -> Visitor:
        """Whose token this is.

        Raises:
            Unauthorised: It belongs to no known person.
            ServiceUnavailable: It cannot be checked at the moment.
        """
        try:
            return Visitor(await self._tokens.identify(session), session)
        except KeysUnavailable as error:
            raise ServiceUnavailable(
                gettext("%(problem)s; try again in a moment", problem=error)
            ) from error

    async def visitor(self, request: Request) -> Visitor:
        """Who asks for a page.

        Raises:
            SignInNeeded: There is no valid session.
        """
        session = request.cookies.get(COOKIE)
        if not session:
            raise SignInNeeded(gettext("sign in to see this page"))
        try:
            return await self.identify(session)
        except Unauthorised as error:
            raise SignInNeeded(str(error)) from error

    async def form(self, request: Request, visitor: Visitor) -> Form:
        """The form that a page of ours sent.

        Raises:
            Forbidden: Another site sent it, or a page from before a new sign-in.
        """
        form = await read_form(request)
        self.check_csrf(visitor, form.text("csrf"))
        return form

    def check_csrf(self, visitor: Visitor, token: str | None) -> None:
        """Refuse what no page of this session sent.

        Raises:
            Forbidden: The token is another session's, or none.
        """
        if not csrf_valid(visitor.session, token):
            raise Forbidden(
                gettext("this page is from before you signed in; load it again and repeat it")
            )

    def page(
        self,
        request: Request,
        visitor: Visitor | None,
        template: str,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **context: Any,
    ) -> Response:
        """Render a template for a visitor."""
        return self.templates.answer(
            template,
            status,
            headers,
            **context,
            here=request.url.path,
            who=visitor.who if visitor else None,
            csrf=visitor.csrf if visitor else "",
        )

    async def refusal(self, request: Request, error: ServiceError) -> Response:
        """Report why something cannot be done."""
        return await self.report(request, Alert(error.title, sentence(error)), error.status)

    async def report(self, request: Request, alert: Alert, status: int) -> Response:
        """Say what is wrong: in place to a script, else as a page."""
        if is_fragment(request):
            return self.in_place(request, alert, status)
        try:
            visitor = await self.visitor(request)
        except (SignInNeeded, ServiceUnavailable):
            visitor = None
        return self.page(request, visitor, "error.html", status, problem=alert)

    def in_place(self, request: Request, alert: Alert, status: int) -> Response:
        """A notice at the top of the page that is open; all else on it stays as it is.

        A page that asks by itself, again and again, gets the same notice each time: merged into
        what is there, it is neither read out nor focused again.
        """
        alert = replace(alert, quiet=request.method == "GET")
        headers = {"HX-Retarget": "#problem", "HX-Reswap": "innerMorph"}
        return self.templates.answer("problem.html", status, headers, problem=alert)

    def ask_to_sign_in(self, request: Request, reason: SignInNeeded) -> Response:
        """To the sign-in page; an open page with unsaved choices is left as it is."""
        if is_fragment(request):
            alert = Alert(
                gettext("You are signed out"),
                gettext(
                    "Nothing of this page is lost: sign in again in a new tab, then repeat it here."
                ),
                "warn",
                link=("/sign-in", gettext("Sign in")),
            )
            return self.in_place(request, alert, 401)
        if request.method != "GET":
            return self.page(
                request, None, "sign_in.html", 401, problem=f"{reason}", next=self._start
            )
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/sign-in?next={quote(target)}", 303)


def page_route(site: Site) -> type[APIRoute]:
    """Routes whose refusals are pages for people."""

    class PageRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # pyright: ignore[reportIncompatibleMethodOverride]
            handle = super().get_route_handler()

            async def answer(request: Request) -> Response:
                with use_locale(negotiated(request.headers.get("Accept-Language", ""))):
                    try:
                        return await handle(request)
                    except SignInNeeded as reason:
                        return site.ask_to_sign_in(request, reason)
                    except ServiceError as error:
                        return await site.refusal(request, error)
                    except RequestValidationError:
                        missing = NotFound(gettext("there is no such page"))
                        return await site.refusal(request, missing)

            return answer

    return PageRoute


def sentence(error: ServiceError) -> str:
    """The message of an error as a sentence; names of fields are for programs."""
    text = localised(_WIRE_NAME.sub("", str(error)))
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def safe_redirect_path(address: str, otherwise: str) -> str:
    """An address of this site to continue at; another one could be a phishing site."""
    parts = urlsplit(address)
    is_own = not parts.scheme and not parts.netloc and address.startswith("/")
    if not is_own or address.startswith(("//", "/\\")) or not address.isprintable():
        return otherwise
    return address


PageRoute = tuple[str, str, Callable[..., Any]]
"""Method, path, endpoint."""


@dataclass(frozen=True, slots=True)
class Alike:
    """What runs have in common that are answered together."""

    address: str
    """Page of all that wait for it."""
    question: str
    """What all of them ask."""


def _none() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class PipelinePages:
    """The pages of one pipeline."""

    routes: Callable[[Site], Sequence[PageRoute]]
    templates: Path
    """Folder of its templates; they are named as no other pipeline's are."""
    names: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What its templates use beside the values that are given to them."""
    menu: Sequence[MenuEntry] = ()
    type_titles: Callable[[], Mapping[str, str]] = _none
    """`DocumentType` of its runs to what the inbox calls it."""
    state_titles: Mapping[str, str] = field(default_factory=dict[str, str])
    """`State` of its runs to what the inbox calls it."""
    command: Callable[[str], str] | None = None
    """Workflow id of a run without a page to the command that shows it, for the inbox."""
    alike: Callable[[str, str], Alike] | None = None
    """`DocumentType` of a run and what it asks to what it shares with others; None: none does."""
    reading: Sequence[str] = ()
    """Paths of forms that change nothing: the audit has no entry of them."""
    answer_at: str = ""
    """Part of a run's page where it is answered, as `#answer`."""

"""What all pages share: who looks at them, forms that are really ours, refusals in words."""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from adapters.ports.errors import PortError
from workers.shared.gateway.http.auth import Unauthorised
from workers.shared.gateway.http.hosts import is_own_origin
from workers.shared.gateway.http.requests import csrf_token, csrf_valid, embedded_token
from workers.shared.gateway.http.sessions import Sessions
from workers.shared.gateway.pages.preferences import language_of, preferences_of
from workers.shared.gateway.pages.renderer import (
    MenuEntry,
    Templates,
    gettext,
    is_fragment,
    localised,
    use_locale,
)
from workers.shared.services.errors import (
    Forbidden,
    NotFound,
    Refused,
    ServiceError,
    TooLarge,
)
from workers.shared.services.identity import Identity
from workers.shared.services.run_service import RunDetails
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


class SignInNeeded(Exception):
    """There is no session, or it has expired."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The person who looks at a page."""

    who: Identity
    session: str
    """Value of the session cookie, or the upload token of an embedded importer."""

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
        self, sessions: Sessions, settings: GatewaySettings, templates: Templates, start: str
    ) -> None:
        """Build the context of the pages.

        Args:
            sessions: Who is signed in.
            settings: Of the gateway.
            templates: Of all pages.
            start: Path to continue at after signing in again for a form that was not taken.
        """
        self.sessions = sessions
        self.settings = settings
        self.templates = templates
        self._start = start

    async def visitor(self, request: Request) -> Visitor:
        """Who asks for a page.

        Raises:
            SignInNeeded: There is no valid session.
            PortError: The database is not available.
        """
        try:
            found = await self.sessions.find(request)
        except Unauthorised as error:
            if self.sessions.secret_of(request) is None:
                raise SignInNeeded(gettext("sign in to see this page")) from error
            raise SignInNeeded(gettext("the session has ended; sign in again")) from error
        return Visitor(found.who, found.secret)

    async def form(self, request: Request, visitor: Visitor) -> Form:
        """The form that a page of ours sent.

        Raises:
            Forbidden: Another site sent it, or a page from before a new sign-in.
        """
        form = await read_form(request)
        self.check_csrf(visitor, form.text("csrf"))
        return form

    def is_own_form(self, request: Request) -> bool:
        """Whether a form is of this site, as the browser says; a program says nothing."""
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return False
        origin, host = request.headers.get("Origin"), request.headers.get("Host", "")
        return origin is None or is_own_origin(origin, host, self.settings.public_url)

    def check_csrf(self, visitor: Visitor, token: str | None) -> None:
        """Refuse what no page of this session sent.

        Raises:
            Forbidden: The token is another session's, or none.
        """
        # No other site can make a browser send the token of an embedded importer.
        if visitor.who.upload is None and not csrf_valid(visitor.session, token):
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
        # After a form, its address shows no page.
        back = _place(request) if request.method == "GET" else self._start
        context = {"back": back, **context}
        return self.templates.answer(
            template,
            status,
            headers,
            **context,
            page_frame="embedded.html" if visitor and visitor.who.upload else "base.html",
            here=request.url.path,
            preferences=preferences_of(request),
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
        except (SignInNeeded, PortError):
            visitor = None
        return self.page(request, visitor, "error.html", status, problem=alert)

    def in_place(self, request: Request, alert: Alert, status: int) -> Response:
        """A notice at the top of the page that is open; all else on it stays as it is.

        A page that asks by itself, again and again, gets the same notice each time: merged into
        what is there, it is neither read out nor focused again.
        """
        alert = replace(alert, quiet=request.method == "GET")
        place = {"HX-Retarget": "#problem", "HX-Reswap": "innerMorph"}
        # A page that takes a part of itself would find none in a notice.
        headers = {**place, "HX-Reselect": ".message"}
        return self.templates.answer("problem.html", status, headers, problem=alert)

    def sign_in(self, request: Request, next: str, status: int = 200, **context: Any) -> Response:
        """The sign-in page.

        Args:
            request: Of the visitor.
            next: Path to continue at.
            status: Of the answer.
            **context: `problem`, and its `title` where it is not that nobody is signed in; `link`,
                an address and what it is called; `by_token` where they tried a token.
        """
        unset = dict.fromkeys(("problem", "title", "link", "by_token"))
        # The address of a provider's answer is good once.
        given: dict[str, Any] = {**unset, "back": f"/sign-in?next={quote(next)}", **context}
        providers = self.sessions.providers
        return self.page(
            request, None, "sign_in.html", status, next=next, providers=providers, **given
        )

    def ask_to_sign_in(self, request: Request, reason: SignInNeeded) -> Response:
        """To the sign-in page; an open page with unsaved choices is left as it is.

        An embedded importer gets a new token from the site around it, and repeats the request.
        """
        if embedded_token(request) is not None:
            return Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})
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
            return self.sign_in(request, self._start, 401, problem=sentence_of(str(reason)))
        return RedirectResponse(f"/sign-in?next={quote(_place(request))}", 303)


def _place(request: Request) -> str:
    """Path and query of a page."""
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def page_route(site: Site) -> type[APIRoute]:
    """Routes whose refusals are pages for people."""

    class PageRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # pyright: ignore[reportIncompatibleMethodOverride]
            handle = super().get_route_handler()

            async def answer(request: Request) -> Response:
                with use_locale(language_of(request)):
                    try:
                        return await handle(request)
                    except SignInNeeded as reason:
                        return site.ask_to_sign_in(request, reason)
                    except ServiceError as error:
                        return await site.refusal(request, error)
                    except RequestValidationError as error:
                        return await site.refusal(request, _of_address(error))

            return answer

    return PageRoute


def _of_address(error: RequestValidationError) -> ServiceError:
    """What is wrong with an address: there is no such page, or it asks for what cannot be."""
    places = [each["loc"] for each in error.errors()]
    if any(place[0] == "path" for place in places):
        return NotFound(gettext("there is no such page"))
    fields = ", ".join(sorted({str(place[-1]) for place in places}))
    return Refused(gettext("the address has a value that cannot be: %(fields)s", fields=fields))


def sentence(error: ServiceError) -> str:
    """The message of an error as a sentence; names of fields are for programs."""
    return sentence_of(localised(_WIRE_NAME.sub("", str(error))))


def sentence_of(text: str) -> str:
    """A message as a sentence."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


_FIELD: Final = re.compile(r"^([a-z]+(?:_[a-z]+)*)(?:\.([a-z_]+))?: ")


def field_problem(error: ServiceError | None, known: Collection[str]) -> Mapping[str, str]:
    """The problem of the field that an error names first, as in `project_id: name the project`.

    Args:
        error: The refusal; None: there is none.
        known: Fields that the form has; the error of another one has no place beside a field.
    """
    found = _FIELD.match(f"{error}")
    for name in reversed(found.groups() if found else ()):
        if found is not None and name in known:
            text = localised(f"{error}"[found.end() :])
            return {name: text[:1].upper() + text[1:]}
    return {}


def safe_redirect_path(address: str, otherwise: str) -> str:
    """An address of this site to continue at; another one could be a phishing site."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return otherwise
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


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of a list of facts."""

    name: str
    """Marked for translation."""
    value: str
    address: str | None = None
    """Where it leads; None: it is a text."""


@dataclass(frozen=True, slots=True)
class RunPart:
    """What a pipeline adds to the page of one of its runs."""

    template: str
    """Its part of the page; it finds the context as `part`."""
    context: Mapping[str, Any]
    asks: bool = False
    """It stands beside the reason, above the answers; else below what is known of every run."""


def facts_part(
    title: str, facts: Sequence[Fact], rows: Sequence[tuple[int, Sequence[str]]] = ()
) -> Sequence[RunPart]:
    """A list of facts as a part of the page of a run; none if no fact is known.

    Args:
        title: Its heading, marked for translation.
        facts: Those with a value are shown.
        rows: The first ones of a file, with their line numbers; the header comes first.
    """
    known = [each for each in facts if each.value]
    context = {"title": title, "facts": known, "rows": rows}
    return [RunPart("run_facts.html", context)] if known else []


ShowRun = Callable[[Visitor, RunDetails, Form | None], Awaitable[Sequence[RunPart]]]
"""What a pipeline shows of a run, to a person; with a form of theirs that was not taken."""


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
    alike: Callable[[str, str], Alike] | None = None
    """`DocumentType` of a run and what it asks to what it shares with others; None: none does."""
    reading: Sequence[str] = ()
    """Paths of forms that change nothing: the audit has no entry of them."""
    answer_at: str = ""
    """Part of a run's page where it is answered, as `#answer`."""
    parts: ShowRun | None = None
    """What it adds to the page that every run has; None: nothing."""
    changes_of: Callable[[Form], Mapping[str, Any]] | None = None
    """What a form of its parts changes of a message that is tried again; raises `Refused`."""
    new: Sequence[MenuEntry] = ()
    """Forms that start one of its runs."""
    related: Sequence[MenuEntry] = ()
    """Further pages, linked from the list of its runs."""
    importer: str = ""
    """Page with which an importer begins that is embedded in another site; empty: there is none."""

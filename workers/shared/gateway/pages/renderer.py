"""Templates into answers, in the language that a request asks for.

The language of a page: which one a request asks for, and its catalogue.

A further language is a further file `locale/<language>/LC_MESSAGES/docflow.po`. English is the
language of the source and has none. The language belongs to a request, as a context variable: two
requests that are answered at the same time never see each other's.
"""

import hashlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from babel import Locale
from babel.dates import format_date, format_timedelta
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal
from babel.units import format_unit
from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from workers.shared.gateway.http.requests import quality
from workers.shared.services.identity import Identity
from workers.shared.text import N_ as N_


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A link at the top of every page."""

    address: str
    title: str
    writes: bool = False
    """Only for people who may write."""
    operators: bool = False
    """Only for operators."""
    key: str = ""
    """With `g` before it, it leads there."""

    def is_for(self, who: Identity) -> bool:
        """Whether a person sees it."""
        return (who.may_write or not self.writes) and (who.is_operator or not self.operators)


LOCALE: Final = Path(__file__).parent / "locale"
CATALOGUE: Final = Path("LC_MESSAGES", "docflow.po")
_LONGEST: Final = 1_000
"""Characters of an `Accept-Language` that are read."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language that pages can have.

    Attributes:
        code: As HTML and HTTP call it (BCP 47).
        locale: How it writes numbers and dates.
        catalogue: Its messages.
    """

    code: str
    locale: Locale
    catalogue: NullTranslations


# Numbers and dates as the sentences around them: 12,345 and 23 Nov 2026.
ENGLISH: Final = Language("en", Locale("en", "GB"), NullTranslations())
_CURRENT: Final[ContextVar[Language]] = ContextVar("language", default=ENGLISH)


@cache
def languages() -> Mapping[str, Language]:
    """Every language by its code in lower case; read once."""
    found = {ENGLISH.code: ENGLISH}
    for path in sorted(LOCALE.glob(f"*/{CATALOGUE}")):
        name = path.relative_to(LOCALE).parts[0]
        locale = Locale.parse(name)
        code = name.replace("_", "-")
        found[code.lower()] = Language(code, locale, _read(path))
    return found


def _read(path: Path) -> GNUTranslations:
    compiled = BytesIO()
    with path.open("rb") as file:
        write_mo(compiled, read_po(file, abort_invalid=True))
    compiled.seek(0)
    return GNUTranslations(compiled)


def negotiated(header: str) -> Language:
    """The language of pages that a browser likes best; English where it likes none of ours.

    Args:
        header: `Accept-Language` (RFC 9110, 12.5.4): `de-AT, de;q=0.9, en;q=0.5`.
    """
    known = languages()
    wanted: list[tuple[float, str]] = []
    for item in header[:_LONGEST].split(","):
        tag, _, parameter = item.partition(";")
        wanted.append((quality(parameter), tag.strip().lower()))
    for weight, tag in sorted(wanted, key=lambda each: -each[0]):
        if weight <= 0:
            break
        if tag == "*":
            return ENGLISH
        while tag:
            if tag in known:
                return known[tag]
            tag = tag.rpartition("-")[0]
    return ENGLISH


@contextmanager
def use_locale(language: Language) -> Generator[None]:
    """Answer in a language, for as long as the block takes."""
    token = _CURRENT.set(language)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def language() -> Language:
    """The language of the request that is being answered."""
    return _CURRENT.get()


def localised(text: str) -> str:
    """A text from a declaration in the language of the request; as it is where none has it."""
    # The catalogue's own header stands under the empty message.
    return language().catalogue.gettext(text) if text else text


def gettext(message: str, **values: object) -> str:
    """A message in the language of the request.

    Args:
        message: In English, as a literal, with `%(name)s` for each value.
        values: Of its placeholders.
    """
    text = language().catalogue.gettext(message)
    return text % values if values else text


def pgettext(context: str, message: str, **values: object) -> str:
    """A message whose words depend on what it is about, as the event of a race or of a queue.

    Args:
        context: What tells it from the same message elsewhere; translators see it.
        message: As for `gettext`.
        values: Of its placeholders.
    """
    text = language().catalogue.pgettext(context, message)
    return text % values if values else text


def counted(one: str, many: str, count: int, **values: object) -> str:
    """A message about a number of things; `%(count)s` is written as the language writes numbers."""
    text = language().catalogue.ngettext(one, many, count)
    return text % {"count": number(count), **values}


def number(value: int | None) -> str:
    """Digits in groups of three, as in 12,345."""
    if value is None:
        return "–"  # noqa: RUF001 - a dash for "not known yet"
    symbol = language().locale.number_symbols["latn"]["group"]
    return f"{value:,}".replace(",", symbol)


def template_names() -> Mapping[str, Any]:
    """What templates use: values are escaped, messages are ours and may hold markup."""

    def translate(message: str, **values: object) -> Markup:
        text = Markup(language().catalogue.gettext(message))  # noqa: S704 - literals of templates
        return text % values if values else text

    def translate_of(context: str, message: str, **values: object) -> Markup:
        text = Markup(language().catalogue.pgettext(context, message))  # noqa: S704
        return text % values if values else text

    def count(one: str, many: str, count: int, **values: object) -> Markup:
        text = Markup(language().catalogue.ngettext(one, many, count))  # noqa: S704
        return text % {"count": number(count), **values}

    return {
        "_": translate,
        "pgettext": translate_of,
        "counted": count,
        "language": language,
        "languages": languages,
    }


_HERE: Final = Path(__file__).parent
STATIC: Final = _HERE / "static"
TEMPLATES: Final = _HERE / "templates"

_STEPS: Final = (
    (timedelta(days=1), "duration-day"),
    (timedelta(hours=1), "duration-hour"),
    (timedelta(minutes=1), "duration-minute"),
)
"""With the units of CLDR."""
_SIZES: Final = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def size(count: int) -> str:
    """A number of bytes in the largest unit of which it has one, as 1.5 MB."""
    unit, name = next(((each, name) for each, name in _SIZES if count >= each), (1, "B"))
    shown = format_decimal(count / unit, "#,##0.#", locale=language().locale)
    return f"{shown}\N{NARROW NO-BREAK SPACE}{name}"


def percent(score: float) -> str:
    """A score from 0 to 1 in whole percent."""
    return f"{round(score * 100)}\N{NARROW NO-BREAK SPACE}%"


def ago(then: datetime, now: datetime | None = None) -> str:
    """How long something has been so, in the largest suitable unit: 3 days."""
    passed = (now or datetime.now(UTC)) - then
    for step, unit in _STEPS:
        if passed >= step:
            return format_unit(passed // step, unit, locale=language().locale)
    return gettext("less than a minute")


def before_now(then: datetime, now: datetime | None = None) -> str:
    """How long ago something was: 3 days ago."""
    passed = (now or datetime.now(UTC)) - then
    for step, _ in _STEPS:
        if passed >= step:
            whole = passed // step * step
            return format_timedelta(
                -whole, threshold=1, add_direction=True, locale=language().locale
            )
    return gettext("less than a minute ago")


def stamp(then: datetime) -> str:
    """A moment in UTC, with the word; a script shows it in the viewer's own zone."""
    moment = then.astimezone(UTC)
    return f"{format_date(moment, locale=language().locale)}, {moment:%H:%M} UTC"


def is_fragment(request: Request) -> bool:
    """Whether a script asks for a part of a page."""
    return request.headers.get("HX-Request") == "true"


class Templates:
    """Renders pages and parts of them; whatever comes from outside is escaped.

    Args:
        menu: Links at the top of every page, after the inbox.
        folders: Of the templates of pipelines, beside those that all share.
        names: What they use beside the values that are given to them.
    """

    def __init__(
        self, menu: Sequence[MenuEntry], folders: Sequence[Path], names: Mapping[str, Any]
    ) -> None:
        self._environment = Environment(
            loader=FileSystemLoader([TEMPLATES, *folders]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.i18n"],
        )
        languages()
        self._environment.filters |= {
            "number": number,
            "percent": percent,
            "size": size,
            "ago": ago,
            "stamp": stamp,
            "localised": localised,
        }
        shared: dict[str, Any] = {"static": _addresses(), "menu": menu}
        self._environment.globals.update(shared | dict(template_names()) | dict(names))

    def answer(
        self,
        template: str,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **context: Any,
    ) -> Response:
        """Render a template in the language of the request; no cache may store it."""
        html = self.render(template, **context)
        own = {
            "Cache-Control": "no-store",
            "Content-Language": language().code,
            "Vary": "Accept-Language, Cookie",
        }
        return HTMLResponse(html, status, own | dict(headers or {}))

    def render(self, template: str, **context: Any) -> str:
        """A template as text, for an answer that holds more than HTML."""
        return self._environment.get_template(template).render(context)


def _addresses() -> Mapping[str, str]:
    """Address of each static file; it changes with the content, so caches need no expiry."""
    return {
        str(file.relative_to(STATIC)): (
            f"/static/{file.relative_to(STATIC)}"
            f"?v={hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"
        )
        for file in sorted(STATIC.rglob("*"))
        if file.is_file()
    }

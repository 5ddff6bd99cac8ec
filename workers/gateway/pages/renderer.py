"""Templates into answers."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from babel.dates import format_date, format_timedelta
from babel.units import format_unit
from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from workers.gateway.pages.language import (
    gettext,
    language,
    languages,
    localised,
    number,
    template_names,
)
from workers.gateway.pages.menu import MenuEntry

_HERE: Final = Path(__file__).parent
STATIC: Final = _HERE / "static"
TEMPLATES: Final = _HERE / "templates"

_STEPS: Final = (
    (timedelta(days=1), "duration-day"),
    (timedelta(hours=1), "duration-hour"),
    (timedelta(minutes=1), "duration-minute"),
)
"""With the units of CLDR."""


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


def plural(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


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
            "ago": ago,
            "stamp": stamp,
            "localised": localised,
        }
        shared: dict[str, Any] = {"plural": plural, "static": _addresses(), "menu": menu}
        self._environment.globals.update(shared | dict(template_names()) | dict(names))

    def answer(
        self,
        template: str,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **context: Any,
    ) -> Response:
        """Render a template in the language of the request; no cache may store it."""
        html = self._environment.get_template(template).render(context)
        own = {
            "Cache-Control": "no-store",
            "Content-Language": language().code,
            "Vary": "Accept-Language",
        }
        return HTMLResponse(html, status, own | dict(headers or {}))


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

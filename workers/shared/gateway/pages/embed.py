"""The importer inside other sites' pages: the frame that they show, its look, and its element.

The frame holds no secret and sets no cookie. Its script asks the page around it for a token, keeps
the token in memory, and shows the pages that people see on docflow's own site.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Final

from fastapi import APIRouter, Path, Request, Response

from workers.shared.gateway.http.answers import framed_by
from workers.shared.gateway.pages.inbox import static_file
from workers.shared.gateway.pages.renderer import gettext, languages, use_locale
from workers.shared.gateway.pages.renderer import language as current_language
from workers.shared.gateway.pages.site import PipelinePages, Site, page_route
from workers.shared.services.access import ApiTokenService
from workers.shared.services.errors import NotFound

_LIGHT: Final = "light"
_MIXED: Final = {
    "accent-strong": "color-mix(in srgb, var(--accent) 82%, var(--text))",
    "accent-soft": "color-mix(in srgb, var(--accent) 12%, var(--surface))",
}
"""Colours that follow the one that a theme gives."""
_EVERYWHERE: Final = {"Cross-Origin-Resource-Policy": "cross-origin"}


Session = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{16}$")]


class EmbedPages:
    """What a site that embeds the importer loads from us.

    Args:
        site: The context of the pages.
        tokens: Upload tokens.
        start: Page with which an importer begins.
    """

    def __init__(self, site: Site, tokens: ApiTokenService, start: str) -> None:
        self._site = site
        self._tokens = tokens
        self._start = start

    async def frame(self, request: Request, session: Session, language: str = "") -> Response:
        """The frame, for pages of the sites that the token names."""
        grant = await self._tokens.embedding(session)
        if grant is None:
            raise NotFound(gettext("no upload token of this session is valid; make another one"))
        setup = {
            "session": session,
            "origins": json.dumps(grant.origins),
            "start": self._start,
            "language": language if language in languages() else grant.language or "",
        }
        with use_locale(languages().get(setup["language"], current_language())):
            return self._site.page(
                request,
                None,
                "embed.html",
                200,
                framed_by(grant.origins),
                setup=setup,
                scheme=grant.theme.get("scheme", _LIGHT),
                theme=f"/embed/{session}/theme.css",
            )

    async def theme(self, session: Session) -> Response:
        """The look that a token asks for, over that of our own pages."""
        grant = await self._tokens.embedding(session)
        rules = "" if grant is None else _rules(grant.theme)
        return Response(rules, media_type="text/css")

    async def element(self, request: Request) -> Response:
        """The script that makes `<docflow-importer>` known, at an address that stays."""
        answer = await static_file(request, "embed.js")
        answer.headers.update(_EVERYWHERE)
        return answer


def _rules(theme: Mapping[str, str]) -> str:
    """A stylesheet; the values are checked when a token is made."""
    names = {name.replace("_", "-"): value for name, value in theme.items() if name != "scheme"}
    font = names.pop("font", None)
    colours = {**(_MIXED if "accent" in names else {}), **names}
    variables = "".join(f"  --{name}: {value};\n" for name, value in sorted(colours.items()))
    family = f"body {{\n  font-family: {font};\n}}\n" if font else ""
    return f":root:root {{\n{variables}}}\n{family}"


def embed_router(
    site: Site, pages: Mapping[str, PipelinePages], tokens: ApiTokenService
) -> APIRouter:
    """What a site that embeds an importer loads from us; it needs no session.

    Args:
        site: What all pages share.
        pages: Those of each pipeline that has some; one of them has an importer.
        tokens: Upload tokens.
    """
    router = APIRouter(route_class=page_route(site), include_in_schema=False)
    for start in (each.importer for each in pages.values() if each.importer):
        embed = EmbedPages(site, tokens, start)
        for path, endpoint in (
            ("/embed.js", embed.element),
            ("/embed/{session}", embed.frame),
            ("/embed/{session}/theme.css", embed.theme),
        ):
            router.add_api_route(path, endpoint, methods=["GET"], response_model=None)
    return router

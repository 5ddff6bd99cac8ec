"""What the endpoints share: the service, which version callers saw, which page they want."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, cast
from urllib.parse import urlencode

from fastapi import Depends, Header, Path, Query, Request, Response
from pydantic import AfterValidator

from workers.pipelines.spreadsheets import NAME
from workers.services.errors import Conflict
from workers.services.identity import Identity
from workers.services.spreadsheets.service import SpreadsheetService
from workers.services.spreadsheets.statuses import LARGEST_PAGE

_STRONG_TAG: Final = re.compile(r'"(\d{1,15})"')
_LAST_PAGE: Final = 1_000_000


def _service_of(request: Request) -> SpreadsheetService:
    return cast("SpreadsheetService", request.app.state.services[NAME])


TheService = Annotated[SpreadsheetService, Depends(_service_of)]
ImportId = Annotated[
    str,
    # A UUID is the same in capitals (RFC 9562, section 4).
    AfterValidator(str.lower),
    Path(
        alias="uuid",
        max_length=100,
        description="Identifier of an import.",
        examples=["0d2f8a52-6c1e-4d4e-9d8f-5b1a7f0c2b11"],
    ),
]
PageNumber = Annotated[int, Query(alias="page", ge=0, le=_LAST_PAGE, description="From 0.")]
PageSize = Annotated[int, Query(alias="size", ge=1, le=LARGEST_PAGE, description="Items a page.")]
IfMatch = Annotated[
    str | None,
    Header(
        max_length=1000,
        description="ETag of the mappings that the answer is based on; 412 when they have changed.",
        examples=['"3"'],
    ),
]


VERSIONED: Final[dict[str, Any]] = {
    "ETag": {
        "schema": {"type": "string"},
        "description": "Version of the mappings, for If-Match",
        "example": '"3"',
    }
}
"""Header of answers about mappings."""
PAGED: Final[dict[str, Any]] = {
    "X-Total-Count": {
        "schema": {"type": "integer"},
        "description": "Items on all pages; left out where there are too many to count",
        "example": 137,
    },
    "Link": {
        "schema": {"type": "string"},
        "description": "Addresses of the other pages (RFC 8288)",
        "example": '</api/imports?page=1&size=20>; rel="next"',
    },
}
"""Headers of answers that are a page of many."""


def answers_with(status: int, *headers: Mapping[str, Any]) -> dict[int | str, dict[str, Any]]:
    """An entry of an OpenAPI document for the headers of an answer."""
    named = {name: value for each in headers for name, value in each.items()}
    return {status: {"description": "Successful Response", "headers": named}}


def etag(version: int) -> str:
    """The ETag of a version of the mappings."""
    return f'"{version}"'


async def expected_version(
    service: SpreadsheetService, who: Identity, uuid: str, header: str | None
) -> int | None:
    """The version that an answer is based on.

    Tags compare strongly (RFC 9110, section 13.1.1): a weak one never matches. Of several, the
    one that is current counts.

    Raises:
        Conflict: None of the tags can be current.
    """
    if header is None or header.strip() == "*":
        return None
    versions = [
        int(tag[1]) for part in header.split(",") if (tag := _STRONG_TAG.fullmatch(part.strip()))
    ]
    if len(versions) == 1:
        return versions[0]
    current = (await service.get(who, uuid)).version
    if current in versions:
        return current
    raise Conflict(
        f"If-Match holds none of the current tags: the mappings are at version {current}", current
    )


def describe_page(request: Request, response: Response, total: int, page: int, size: int) -> None:
    """Add the total and links to the other pages (RFC 8288)."""
    last = max(0, (total - 1) // size)
    pages = {"first": 0, "last": last}
    if page > 0:
        pages["prev"] = min(page - 1, last)
    if page < last:
        pages["next"] = page + 1
    response.headers["x-total-count"] = str(total)
    _link(request, response, pages, size)


def describe_uncounted_page(
    request: Request, response: Response, items: int, page: int, size: int
) -> None:
    """Add links to the other pages where it is not known how many there are.

    A total that is too small would be taken for all there are, so there is none, and no last page.

    Args:
        request: For a page.
        response: Gets the header.
        items: Items on this page; fewer than `size` are the end.
        page: From 0.
        size: Items of a full page.
    """
    pages = {"first": 0}
    if page > 0:
        pages["prev"] = page - 1
    if items == size:
        pages["next"] = page + 1
    _link(request, response, pages, size)


def _link(request: Request, response: Response, pages: Mapping[str, int], size: int) -> None:
    response.headers["link"] = ", ".join(
        f'<{_address(request, {"page": number, "size": size})}>; rel="{name}"'
        for name, number in pages.items()
    )


def _address(request: Request, changes: Mapping[str, int]) -> str:
    query = {**dict(request.query_params), **changes}
    return f"{request.url.path}?{urlencode(query)}"

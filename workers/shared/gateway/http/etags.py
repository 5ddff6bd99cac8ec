"""ETags of what two people may change, and the header `If-Match`."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Header

_STRONG_TAG: Final = re.compile(r'"([^"]*)"')

IfMatch = Annotated[
    str | None,
    Header(
        max_length=1000,
        description="ETag of what the change is based on; 412 if it was changed meanwhile.",
        examples=['"5f0c2c7be1a04b7d"'],
    ),
]
TAGGED: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "headers": {"ETag": {"schema": {"type": "string"}, "description": "For If-Match"}},
    }
}
"""The header of an answer, for the OpenAPI document."""


def etag(version: object) -> str:
    """The ETag of a version."""
    return f'"{version}"'


def versions_of(header: str | None) -> Sequence[str] | None:
    """The versions that a caller has seen; None: it may be any.

    Tags compare strongly (RFC 9110, section 13.1.1): a weak one never matches.

    Args:
        header: `If-Match`.
    """
    if header is None or header.strip() == "*":
        return None
    parts = (each.strip() for each in header.split(","))
    return [tag[1] for part in parts if (tag := _STRONG_TAG.fullmatch(part))]

"""The files of assets, as clients of STAC read them: whole, or in ranges, as COGs are made for.

Follows RFC 9110: ranges (14), conditions (13).
"""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from fastapi import HTTPException, Request, Response
from fastapi.responses import StreamingResponse

from adapters.ports import BlobNotFound, Blobs

_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_OCTETS: Final = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class _Part:
    """Bytes of a file, from the first to the one behind the last."""

    begin: int
    end: int


class AssetFiles:
    """Serves the files that jobs have made.

    Args:
        tiers: Containers whose files are served, by name: `silver` of `silver://name`.
    """

    def __init__(self, tiers: Mapping[str, Blobs]) -> None:
        self._tiers = tiers

    def serves(self, href: str) -> bool:
        """Whether an address of the catalogue is that of a file that is served."""
        tier, separator, name = href.partition("://")
        return bool(separator and name) and tier in self._tiers

    async def answer(self, request: Request, asset: Mapping[str, Any]) -> Response:
        """The file of an asset, or the part of it that is asked for.

        Raises:
            HTTPException: It has been removed, or has not the part.
        """
        tier, _, name = str(asset["href"]).partition("://")
        blobs = self._tiers[tier]
        try:
            found = await blobs.stat(name)
        except BlobNotFound as error:
            raise HTTPException(404, "the file of this asset has been removed") from error
        tag = _quoted(found.etag)
        headers = {
            "accept-ranges": "bytes",
            "content-disposition": f"attachment; filename*=utf-8''{quote(name.rsplit('/', 1)[-1])}",
            **({"etag": tag} if tag else {}),
        }
        if tag is not None and _is_known(tag, request.headers.get("if-none-match")):
            return Response(status_code=304, headers=headers)
        part = _asked(request, found.size, tag)
        status = 200 if part is None else 206
        part = part or _Part(0, found.size)
        length = part.end - part.begin
        headers["content-length"] = f"{length}"
        if status == 206:
            headers["content-range"] = f"bytes {part.begin}-{part.end - 1}/{found.size}"
        media_type = str(asset.get("type") or _OCTETS)
        if request.method == "HEAD" or length == 0:
            return Response(status_code=status, headers=headers, media_type=media_type)
        content = _content(blobs, name, part.begin, length)
        return StreamingResponse(content, status, headers, media_type)


async def _content(blobs: Blobs, name: str, begin: int, length: int) -> AsyncGenerator[bytes]:
    async with aclosing(blobs.read(name, start=begin, length=length)) as pieces:
        async for piece in pieces:
            yield piece


def _asked(request: Request, size: int, tag: str | None) -> _Part | None:
    """The part that is asked for; None: all, also where several parts or other units are.

    Raises:
        HTTPException: The file ends before it.
    """
    unless = request.headers.get("if-range")
    found = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if found is None or (unless is not None and unless != tag):
        return None
    first, last = found.groups()
    if first and last and int(last) < int(first):
        return None
    if first:
        part = _Part(int(first), min(int(last) + 1, size) if last else size)
    elif last:
        part = _Part(max(size - int(last), 0), size)
    else:
        return None
    if part.begin >= size:
        text = f"the file has {size:,} bytes, and none where the range begins"
        raise HTTPException(416, text, {"content-range": f"bytes */{size}"})
    return part


def _is_known(tag: str, header: str | None) -> bool:
    """Whether a client names the tag of a file as one that it has."""
    if header is None:
        return False
    given = {each.strip().removeprefix("W/") for each in header.split(",")}
    return "*" in given or tag in given


def _quoted(etag: str | None) -> str | None:
    if etag is None:
        return None
    return etag if etag.startswith('"') else f'"{etag}"'

"""The committed OpenAPI document: written anew, unless a client of today would break.

`python -m tests.openapi` writes docs/reference/openapi.json. If the document takes something away
that clients use, it says what and writes nothing; `--breaking` writes it all the same.
"""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from temporalio.client import Client

from adapters.database.engine import open_database
from adapters.database.records import SqlRejectedMessages
from adapters.files.blobs import FolderBlobs
from tests.support.gateway import build_app
from workers.shared.resources import Resources
from workflows.shared.notifications import NotificationPolicies

COMMITTED: Final = Path(__file__).parents[1] / "docs" / "reference" / "openapi.json"
Part = Mapping[str, Any]


async def document() -> dict[str, Any]:
    """The document of a gateway that has declared no types; nothing is connected."""
    with TemporaryDirectory() as folder:
        database = open_database("postgresql://localhost/none")
        resources = Resources(
            database=database,
            rejected=SqlRejectedMessages(database),
            blobs=FolderBlobs(Path(folder)),
            notices={},
            policies=NotificationPolicies(),
            scratch=Path(folder) / "scratch",
        )
        client = await Client.connect("localhost:1", lazy=True)
        return build_app(client, resources)[0].openapi()


def text_of(found: Part) -> str:
    """A document as it is committed."""
    return json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def breaking(old: Part, new: Part) -> Iterator[str]:
    """What a client of the old document no longer finds, or has to send now.

    Args:
        old: The document that clients know.
        new: The document that takes its place.
    """
    for path, operations in old["paths"].items():
        for method, before in operations.items():
            where = f"{method.upper()} {path}"
            after = new["paths"].get(path, {}).get(method)
            if after is None:
                yield f"{where}: is gone"
                continue
            if before["operationId"] != after["operationId"]:
                yield f"{where}: was {before['operationId']}, and is {after['operationId']}"
            yield from _parameters(before, after, where)
            yield from _bodies(old, before, new, after, where)


def _parameters(before: Part, after: Part, where: str) -> Iterator[str]:
    known = {(each["in"], each["name"]): each for each in before.get("parameters", ())}
    there = {(each["in"], each["name"]): each for each in after.get("parameters", ())}
    for place, name in known.keys() - there.keys():
        yield f"{where}: takes no {place} parameter {name} any more"
    for key, each in there.items():
        if each.get("required") and not known.get(key, {}).get("required"):
            yield f"{where}: needs the {key[0]} parameter {key[1]}"


def _bodies(old: Part, before: Part, new: Part, after: Part, where: str) -> Iterator[str]:
    sent, taken = before.get("requestBody", {}), after.get("requestBody", {})
    if taken.get("required") and not sent.get("required"):
        yield f"{where}: needs a body"
    for media, each in sent.get("content", {}).items():
        if (now := taken.get("content", {}).get(media)) is None:
            yield f"{where}: takes no {media} any more"
        else:
            yield from _Shapes(old, new, sent=True).lost(each, now, f"{where} takes")
    for status, answer in before["responses"].items():
        if not status.startswith("2"):
            continue
        now = after["responses"].get(status)
        if now is None:
            yield f"{where}: answers no {status} any more"
            continue
        for media, each in answer.get("content", {}).items():
            gives = now.get("content", {}).get(media)
            if gives is None:
                yield f"{where}: answers no {media} any more"
            else:
                yield from _Shapes(old, new, sent=False).lost(each, gives, f"{where} answers")


class _Shapes:
    """Compares what is sent, or answered.

    Args:
        old: The document that clients know.
        new: The document that takes its place.
        sent: Whether clients send it; else they read it.
    """

    def __init__(self, old: Part, new: Part, *, sent: bool) -> None:
        self._old = old
        self._new = new
        self._sent = sent
        self._seen = set[str]()

    def lost(self, before: Part, after: Part, where: str) -> Iterator[str]:
        """What the new one has no more, or needs now."""
        if (ref := before.get("$ref")) is not None:
            if ref in self._seen:
                return
            self._seen.add(ref)
            before = _resolved(self._old, before)
        after = _resolved(self._new, after)
        if "type" in before and before["type"] != after.get("type"):
            yield f"{where}: was {before['type']}, and is {after.get('type', 'of several types')}"
        values, now = set(before.get("enum", ())), set(after.get("enum", ()))
        if self._sent and now and (gone := sorted(map(str, values - now))):
            yield f"{where}: no {', '.join(gone)} any more"
        known, there = before.get("properties", {}), after.get("properties", {})
        for name in known.keys() - there.keys():
            yield f"{where}: no {name} any more"
        required, needed = set(before.get("required", ())), set(after.get("required", ()))
        for name in sorted(needed - required if self._sent else (required - needed) & set(there)):
            yield f"{where}: {name} is {'needed now' if self._sent else 'not always there now'}"
        for name in known.keys() & there.keys():
            yield from self.lost(known[name], there[name], f"{where} {name}")
        for inner in ("schema", "items", "additionalProperties"):
            if isinstance(before.get(inner), Mapping) and isinstance(after.get(inner), Mapping):
                yield from self.lost(before[inner], after[inner], where)
        for kind in ("anyOf", "oneOf", "allOf"):
            pairs = zip(before.get(kind, ()), after.get(kind, ()), strict=False)
            for each, other in pairs:
                yield from self.lost(each, other, where)


def _resolved(document: Part, part: Part) -> Part:
    ref = part.get("$ref")
    return part if ref is None else document["components"]["schemas"][ref.rsplit("/", 1)[-1]]


def main() -> int:
    """Write the document; 1: it would break clients."""
    found = asyncio.run(document())
    if COMMITTED.exists() and "--breaking" not in sys.argv:
        lost = sorted(breaking(json.loads(COMMITTED.read_text()), found))
        if lost:
            sys.stderr.write("\n".join((*lost, "not written: pass --breaking", "")))
            return 1
    COMMITTED.write_text(text_of(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())

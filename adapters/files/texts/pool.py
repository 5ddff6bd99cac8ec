"""Reads documents in processes that are kept ready for the next one."""

import asyncio
from pathlib import Path
from typing import Final, Self

from pydantic import ValidationError

from adapters.files.failures import Wording
from adapters.files.forks import Bounds, ForkRequest, Forks
from adapters.files.texts.findings import Answer, ReadRequest
from adapters.ports.documents import Extracted
from adapters.ports.errors import UnreadableDocument

_CHILD: Final = "adapters.files.texts.child"
_OFFICE_CHILD: Final = "adapters.files.texts.office_child"
READ_AT_ONCE: Final = 4
_WORDING: Final = Wording(
    when_slow="print it to a new PDF, or split it",
    when_damaged="save it again and send the new file",
)


class FileTexts:
    """Reads text and metadata out of documents, by what they hold.

    An async context manager: it ends its processes. One that is never closed leaves none behind
    either, since they end with the process that asks them.

    Args:
        bounds: What reading one document may cost.
        at_once: Documents read side by side; the others wait.
    """

    def __init__(self, bounds: Bounds | None = None, at_once: int = READ_AT_ONCE) -> None:
        self._bounds = bounds or Bounds()
        # One for both: a document needs the second process after the first is done with it.
        self._room = asyncio.Semaphore(at_once)
        self._forks = Forks(_CHILD, at_once, wording=_WORDING)
        self._office = Forks(_OFFICE_CHILD, at_once, wording=_WORDING)

    async def extract(self, path: Path, filename: str | None, folder: Path) -> Extracted:
        """Read a document by what it holds; the name is a hint.

        Time and memory are bounded, whatever the file.

        Args:
            path: The file.
            filename: The name its owner knows it by.
            folder: Empty; takes the files found inside.

        Raises:
            UnreadableDocument: It is empty, damaged, encrypted, hostile or too large; the message
                says which. One of a kind that is not read has no text, and a note says why.
        """
        order = ReadRequest(
            path=path.absolute(), filename=filename, folder=folder.absolute(), bounds=self._bounds
        )
        async with self._room:
            answer = await _ask(self._forks, order)
            if answer.needs_library:
                answer = await _ask(self._office, order)
        return _checked(_found(answer), order.folder)

    async def aclose(self) -> None:
        """End the processes; no document is being read any more."""
        await self._forks.aclose()
        await self._office.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _as_order(order: ReadRequest) -> ForkRequest:
    return ForkRequest(
        body=order.model_dump_json(),
        bounds=order.bounds,
        readable=(order.path,),
        writable=(order.folder,),
    )


async def _ask(forks: Forks, order: ReadRequest) -> Answer:
    body = b"".join([piece async for piece in forks.answer(_as_order(order))])
    try:
        return Answer.model_validate_json(body)
    except ValidationError as error:
        raise UnreadableDocument(
            "the document could not be read: its reader process returned invalid data;"
            " save it again and send the new file"
        ) from error


def _found(answer: Answer) -> Extracted:
    if answer.extracted is None:
        raise UnreadableDocument(answer.unreadable or "the document cannot be read")
    return answer.extracted


def _checked(extracted: Extracted, folder: Path) -> Extracted:
    """Refuse files elsewhere than in the folder: a document may have taken its reader over."""
    for found in extracted.files:
        if found.path.parent != folder or found.path.is_symlink() or not found.path.is_file():
            raise UnreadableDocument(
                "the document could not be read: its reader process named files of others;"
                " it was rejected"
            )
    return extracted

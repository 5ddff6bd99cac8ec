"""Partners of kinds that installed packages bring: how such a kind is written, and opened.

An entry point of the group `docflow.partner_kinds` names a subclass of `PartnerFiles`; the record
of a partner names the entry point: `kind: custom`, `custom: NAME`.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import EntryPoint
from types import TracebackType
from typing import Any, Final, Self

from adapters.installed import Installed, installed
from adapters.places.base import BasePlace, Credentials, Pace, no_bytes, probe_name
from adapters.places.writing import (
    WholeWrites,
    WriteRequest,
    checked,
    checked_pattern,
    sha256_of,
    taken,
)
from adapters.ports.errors import Denied
from adapters.ports.places import Entry, Written
from workflows.transfers.partners import Partner, Rename, ServerProfile
from workflows.transfers.paths import join, matcher, split

GROUP: Final = "docflow.partner_kinds"
"""Entry points that name a kind of partner."""


class PartnerFiles(ABC):
    """Base of kinds of partners: the files of one partner, connected for one step.

    Paths have segments joined by `/`; docflow has checked them. Methods raise `PartnerAway` if the
    partner cannot be reached, `Throttled` if it asks for fewer requests, `Denied` if it refuses for
    good, and `PlaceError` for one file.

    Args:
        partner: Its record; the fields mean what the kind says.
        credentials: The secrets that the record refers to.
    """

    def __init__(self, partner: Partner, credentials: Credentials) -> None:
        self.partner, self.credentials = partner, credentials

    async def __aenter__(self) -> Self:
        """Connect; a kind that keeps a connection overrides it."""
        return self

    async def __aexit__(  # noqa: B027 - a kind that keeps no connection has nothing to do
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Disconnect."""

    @classmethod
    def problems(cls, partner: Partner) -> Iterable[str]:
        """What is missing or wrong in a record, a sentence each."""
        return ()

    @abstractmethod
    async def entry(self, path: str) -> Entry | None:
        """A file; None: there is none."""

    @abstractmethod
    async def list(self, folder: str) -> Sequence[Entry]:
        """The files of a folder, without those of folders in it.

        Raises:
            FileMissing: The partner has folders, and none of that name.
        """

    @abstractmethod
    def read(self, path: str, offset: int) -> AsyncIterator[bytes]:
        """The bytes of a file from an offset on.

        Raises:
            FileMissing: There is none.
        """

    @abstractmethod
    async def put(
        self, path: str, chunks: AsyncIterator[bytes], size: int, *, replaces: bool
    ) -> None:
        """Store a file, which appears when all of its bytes are there; `chunks` may raise.

        Raises:
            NameTaken: There is one of that name, and `replaces` is false.
        """

    @abstractmethod
    async def remove(self, path: str) -> bool:
        """Remove a file; False: it was gone."""


class CustomPlace(BasePlace):
    """A partner of such a kind, as transfers use it.

    Args:
        partner: Whose it is.
        files: Connected.
        pace: Of its bytes.
    """

    def __init__(self, partner: Partner, files: PartnerFiles, pace: Pace) -> None:
        super().__init__(partner, pace)
        self._files = files

    @property
    def profile(self) -> ServerProfile | None:
        """A file appears whole."""
        return self._partner.profile or ServerProfile(rename=Rename.ATOMIC_REPLACE)

    @property
    def server_hash(self) -> str | None:
        """What was written is read back."""
        return None

    async def probe(self, folder: str = "") -> ServerProfile:
        """Store an empty file of our own, and remove it."""
        path = self._path(probe_name(folder))
        await self._files.put(path, no_bytes(), 0, replaces=True)
        await self._files.remove(path)
        return ServerProfile(
            rename=Rename.ATOMIC_REPLACE, probed_at=datetime.now(UTC), probed_with=(path,)
        )

    async def entry(self, path: str) -> Entry | None:
        """A file; None: there is none."""
        found = await self._files.entry(self._path(checked(path)))
        return found and Entry(path, found.size, found.changed, found.tag)

    async def list(self, pattern: str, most: int) -> Sequence[Entry]:
        """Files that a pattern names."""
        folder, name = split(checked_pattern(pattern))
        match = matcher(name).match
        named = ((split(each.path)[1], each) for each in await self._files.list(self._path(folder)))
        found = [
            Entry(join(folder, last), each.size, each.changed, each.tag)
            for last, each in named
            if match(last)
        ]
        return sorted(found, key=lambda each: each.path)[: most + 1]

    async def _blocks(self, entry: Entry, offset: int) -> AsyncGenerator[bytes]:
        async for block in self._files.read(self._path(entry.path), offset):
            await self._pace(len(block))
            yield block

    async def _written(self, chunks: AsyncIterator[bytes], order: WriteRequest) -> Written:
        return await WholeWrites(self).write(self._pace.of(chunks), order)

    async def put(
        self, path: str, blocks: AsyncIterator[bytes], size: int, *, replaces: bool
    ) -> None:
        """Store a file."""
        await self._files.put(self._path(path), blocks, size, replaces=replaces)

    async def move(self, entry: Entry, path: str) -> None:
        """Copy a file, and delete it."""
        now = await self.stat(entry.path)
        self._check_same(entry, now)
        there = await self.entry(checked(path))
        if there is None:
            await self.put(path, self.content(entry.path), now.size, replaces=False)
        elif await sha256_of(self.content(path)) != await sha256_of(self.content(entry.path)):
            raise taken(path)
        await self.delete(now)

    async def remove(self, path: str) -> bool:
        """Remove a file."""
        return await self._files.remove(self._path(path))

    def _path(self, path: str) -> str:
        root = self._partner.root or ""
        return join(root, path) if path else root


@asynccontextmanager
async def custom(
    partner: Partner,
    credentials: Credentials,
    pace: Pace,
    kinds: "Installed[type[PartnerFiles]] | None" = None,
) -> AsyncGenerator[CustomPlace]:
    """Connect to a partner of such a kind.

    Args:
        partner: Whose it is.
        credentials: Secrets that were looked up.
        pace: Of its bytes.
        kinds: By name; None: those of installed packages.

    Raises:
        Denied: No package brings the kind, or it refuses the record.
    """
    every = installed_kinds() if kinds is None else kinds
    kind = every.found.get(partner.custom or "")
    if kind is None:
        known = ", ".join(sorted(every.found)) or "none"
        text = (
            f"{partner.name} is of the kind {partner.custom!r}, which this worker has not; "
            f"installed are: {known}. Install its package where the worker runs, then retry"
        )
        raise Denied("; ".join((text, *every.problems)))
    if problems := "; ".join(kind.problems(partner)):
        raise Denied(f"the record of {partner.name}: {problems}")
    async with kind(partner, credentials) as files:
        yield CustomPlace(partner, files, pace)


@cache
def installed_kinds() -> Installed[type[PartnerFiles]]:
    """Kinds of installed packages."""

    def brought(point: EntryPoint) -> list[tuple[str, type[PartnerFiles]]]:
        found: Any = point.load()
        if not (isinstance(found, type) and issubclass(found, PartnerFiles)):
            raise TypeError(f"{point.value} is no class that derives from PartnerFiles")
        return [(point.name, found)]

    return installed(GROUP, brought)

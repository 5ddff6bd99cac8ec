"""What an installation needs before anything works: how to see it, and how to make it."""

import asyncio
import math
import os
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from activities.shared.scratch import scratch_folder
from adapters.aws.blobs import Bucket, S3Blobs
from adapters.azure.blobs import AzureBlobs
from adapters.database.engine import Database
from adapters.database.schema import SchemaBehind, SchemaUnknown, current, require_current, upgrade
from adapters.ports.errors import PortError, Unavailable
from workers.shared.errors import SettingsError, TemporalUnreachable
from workers.shared.services.errors import ServiceError
from workers.shared.settings.common import BlobSettings, DatabaseSettings
from workflows.shared.dependencies import Dependency

SELDOM_SECONDS: Final = 60.0
"""How long a good answer holds where questions are not to be asked often."""
CHECK_SECONDS: Final = 10.0
"""How long a check may take before what it asks counts as unavailable."""
_FAILURES: Final = (PortError, SchemaBehind, ServiceError, TemporalUnreachable)


class State(StrEnum):
    """What was found out about a requirement."""

    OK = "ok"
    MADE = "made"
    MISSING = "missing"
    DIFFERS = "differs"
    """It exists in another form; nothing is changed."""
    UNAVAILABLE = "unavailable"
    """What would answer does not, or refuses us."""
    UNKNOWN = "cannot be checked"
    """For want of a right, or because the check itself would change something."""
    LEFT_OUT = "left out"
    """No setting asks for it."""


_THERE: Final = frozenset({State.OK, State.MADE, State.LEFT_OUT})
_IN_THE_WAY: Final = frozenset({State.MISSING, State.DIFFERS, State.UNAVAILABLE})


@dataclass(frozen=True)
class Finding:
    """The answer of a check, or of an attempt to make what was missing."""

    state: State
    says: str
    """What was found, in one sentence."""
    cure: str | None = None
    """What to do, where it is not that of the requirement."""


Ask = Callable[[], Awaitable[Finding]]
"""Raises an error of a port or a service when what would answer does not."""


@dataclass(frozen=True)
class Requirement:
    """One thing that an installation needs."""

    name: str
    check: Ask
    """Looks, and changes nothing."""
    consequence: str
    """What happens without it, as the end of a sentence."""
    cure: str
    """What an operator does when docflow cannot make it: a command, or where to look."""
    make: Ask | None = None
    """Makes what is missing; None: docflow cannot."""
    watch: Ask | None = None
    """Checks again, at little cost, while a process works; None: it is not checked again."""
    needed: bool = True
    """Nothing is received without it. False: a warning is all."""

    async def found(self) -> "Result":
        """Check, once and in bounded time.

        Raises:
            SettingsError: A setting cannot be used.
        """
        return Result(self, await _asked(self.check))

    async def made(self) -> "Result":
        """Check, and make what is missing."""
        result = await self.found()
        if result.finding.state is not State.MISSING or self.make is None:
            return result
        return Result(self, await _asked(self.make, limited=False))

    async def watched(self) -> "Result | None":
        """Check again while a process works; None: nothing to look at."""
        return None if self.watch is None else Result(self, await _asked(self.watch))


@dataclass(frozen=True)
class Result:
    """A requirement and what was found."""

    requirement: Requirement
    finding: Finding

    @property
    def is_there(self) -> bool:
        """Whether nothing is left to do."""
        return self.finding.state in _THERE

    @property
    def problem(self) -> str | None:
        """Why nothing may be received, in one sentence; None: it may.

        What cannot be checked for want of a right is no reason: processes need fewer rights than
        those who set an installation up.
        """
        if self.finding.state not in _IN_THE_WAY or not self.requirement.needed:
            return None
        return f"{self.requirement.name}: {self.details}"

    @property
    def details(self) -> str:
        """What was found, what follows from it, and what to do."""
        finding, requirement = self.finding, self.requirement
        if self.is_there or finding.state is State.UNAVAILABLE:
            return finding.says
        return f"{finding.says}; {requirement.consequence}; {finding.cure or requirement.cure}"


def there(name: str, says: str) -> Result:
    """The result of what is seen in the settings alone."""
    return Result(_unasked(name), Finding(State.OK, says))


def left_out(name: str, why: str) -> Result:
    """The result of what no setting asks for."""
    finding = Finding(State.LEFT_OUT, why)
    return Result(_unasked(name), finding)


def unreadable(name: str, error: SettingsError) -> Result:
    """The result of what cannot be checked, because a setting is missing or wrong."""
    return unavailable(name, "; ".join(error.problems))


def unavailable(name: str, says: str) -> Result:
    """The result of what was asked outside of a requirement, and did not answer."""
    return Result(_unasked(name), Finding(State.UNAVAILABLE, says))


def _unasked(name: str) -> Requirement:
    async def check() -> Finding:
        raise AssertionError("there is nothing to check")

    return Requirement(name, check, consequence="", cure="")


async def all_of(requirements: Iterable[Requirement], *, only_check: bool) -> AsyncIterator[Result]:
    """Check requirements one after the other; make what is missing, unless `only_check` is set."""
    for requirement in requirements:
        yield await (requirement.found() if only_check else requirement.made())


def seldom(check: Ask, seconds: float = SELDOM_SECONDS) -> Ask:
    """A check whose good answer holds for a while: each one is billed, or counts to a limit."""
    seen, answer = -math.inf, Finding(State.UNKNOWN, "")

    async def asked() -> Finding:
        nonlocal seen, answer
        time = asyncio.get_running_loop().time
        if time() - seen > seconds:
            answer = await check()
            seen = time() if answer.state is State.OK else -math.inf
        return answer

    return asked


def not_tried(requirement: Requirement, why: str) -> Requirement:
    """A requirement whose check would change something, and is not made."""

    async def check() -> Finding:
        return Finding(State.UNKNOWN, why)

    return replace(requirement, check=check)


async def _asked(ask: Ask, *, limited: bool = True) -> Finding:
    try:
        async with asyncio.timeout(CHECK_SECONDS if limited else None):
            return await ask()
    except TimeoutError:
        return Finding(State.UNAVAILABLE, f"there is no answer within {CHECK_SECONDS:.0f} s")
    except _FAILURES as error:
        return Finding(State.UNAVAILABLE, " ".join(str(error).split()))


_PROBED_BYTES: Final = 1 << 16
"""Written while a process works, every few seconds."""


def schema_of(database: Database, settings: DatabaseSettings) -> Requirement:
    """The schema of this release.

    Args:
        database: Looked at.
        settings: Of the same, to upgrade it.
    """

    async def check() -> Finding:
        try:
            await require_current(database)
        except SchemaUnknown as error:
            return Finding(State.DIFFERS, str(error), "see the runbook, 'The schema is behind'")
        except SchemaBehind as error:
            return Finding(State.MISSING, str(error))
        return Finding(State.OK, f"of this release, {database.place}")

    async def make() -> Finding:
        before = await upgrade(settings.url, settings.options)
        after = await current(settings.url, settings.options)
        return Finding(State.MADE, f"at {after}, was {before or 'empty'}")

    async def watch() -> Finding:
        await database.probe()
        return Finding(State.OK, database.place)

    return Requirement(
        "database schema",
        check,
        consequence="no run can write its rows",
        cure="run `docflow setup` or `docflow db upgrade`",
        make=make,
        watch=watch,
    )


def container_of(settings: BlobSettings, of: str = "blob") -> Requirement:
    """Where documents are: a container of Azure Storage, a bucket of S3, or a folder.

    Args:
        settings: Where.
        of: What it holds, as its requirement is called.
    """
    if settings.folder is not None:
        return _folder(settings, of)
    if (bucket := settings.bucket) is not None:
        return _bucket(bucket, settings.container, of)
    return _container(settings, of)


def _bucket(bucket: Bucket, folder: str, of: str) -> Requirement:
    """The owner of the account makes it, who decides about its region, encryption and rights."""
    blobs = S3Blobs(bucket, folder)

    async def check() -> Finding:
        try:
            await blobs.probe()
        except Unavailable as error:
            if not error.misconfigured:
                raise
            return Finding(State.MISSING, str(error))
        return Finding(State.OK, f"{bucket.name}/{folder}")

    return Requirement(
        f"{of} bucket",
        check,
        consequence="no document can be read or kept",
        cure=f"make the bucket {bucket.name}, or correct DOCFLOW_BLOB_BUCKET",
        watch=check,
    )


def _folder(settings: BlobSettings, of: str) -> Requirement:
    folder = settings.folder
    assert folder is not None
    place = f"the folder {folder} of DOCFLOW_BLOB_FOLDER"

    async def check() -> Finding:
        if not await asyncio.to_thread(folder.is_dir):
            return Finding(State.MISSING, f"{place} is missing")
        if not await asyncio.to_thread(os.access, folder, os.W_OK | os.X_OK):
            cure = "let the user that docflow runs as write there"
            return Finding(State.DIFFERS, f"{place} cannot be written to", cure)
        return Finding(State.OK, str(folder))

    async def make() -> Finding:
        try:
            await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        except OSError as error:
            problem = f"{place} cannot be made: {error.strerror}"
            return Finding(State.MISSING, problem, "correct DOCFLOW_BLOB_FOLDER")
        return Finding(State.MADE, str(folder))

    return Requirement(
        f"{of} folder",
        check,
        consequence="no document can be read or kept",
        cure="run `docflow setup`",
        make=make,
        watch=check,
    )


def scratch_of(folder: Path) -> Requirement:
    """Room on the scratch disk of this machine."""

    async def check() -> Finding:
        await asyncio.to_thread(_write_to, folder)
        return Finding(State.OK, str(folder))

    return Requirement(
        "scratch disk",
        check,
        consequence="no document can be read",
        cure="make room there, or correct DOCFLOW_SCRATCH",
        watch=check,
    )


def _write_to(folder: Path) -> None:
    place = f"the folder {folder} of DOCFLOW_SCRATCH"
    try:
        with scratch_folder(folder) as own:
            (own / "probe").write_bytes(bytes(_PROBED_BYTES))
    except Unavailable as error:
        text = f"{place}: {error}; make room there, or correct it"
        raise Unavailable(text, Dependency.SCRATCH_DISK) from error
    except OSError as error:
        text = f"{place} cannot be written to: {error.strerror}"
        raise Unavailable(text, Dependency.SCRATCH_DISK) from error


def _container(settings: BlobSettings, of: str) -> Requirement:
    assert settings.connection_string is not None
    blobs = AzureBlobs(settings.connection_string, settings.container)

    async def check() -> Finding:
        if await blobs.has_container():
            return Finding(State.OK, settings.container)
        return Finding(State.MISSING, f"there is no container {settings.container!r}")

    async def make() -> Finding:
        await blobs.create_container()
        return Finding(State.MADE, settings.container)

    name = shlex.quote(settings.container)
    return Requirement(
        f"{of} container",
        check,
        consequence="no document can be read or kept",
        cure=f"run `docflow setup`, or `az storage container create --name {name}`",
        make=make,
        watch=check,
    )

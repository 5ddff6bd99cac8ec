"""What actions at endpoints have in common: partners, staged files, notes, the receipt's step."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from activities.heartbeat import Heartbeater
from adapters.ports import Denied
from adapters.ports.places import Naming, PartnerAway, Place, Places, UnknownHostKey
from adapters.ports.transfers import Notes, PartnerStore, Staging
from contracts.transfers import Partner
from contracts.transfers.progress import NamingNote, TransferProgress
from domain.errors import RuleViolation


def now_utc() -> datetime:
    """The time."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class EndpointPorts:
    """What actions at endpoints are given."""

    places: Places
    partners: PartnerStore
    staging: Staging
    notes: Notes
    probing: Places
    """Connects whatever is known of a partner, for the probe of an outage."""
    now: Callable[[], datetime] = now_utc
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Between two looks at a file that may still be written."""


async def partner_of(partners: PartnerStore, name: str) -> Partner:
    """The record of a partner, as it is now.

    Raises:
        RuleViolation: There is none.
    """
    partner = await partners.get(name)
    if partner is None:
        raise RuleViolation(f"there is no partner {name}; `docflow partners add {name}` makes one")
    return partner


@asynccontextmanager
async def opened(
    places: Places, partners: PartnerStore, name: str
) -> AsyncGenerator[tuple[Partner, Place]]:
    """A partner's endpoint, for the length of the block.

    A server that shows an unknown host key stops the partner: every run that needs it waits, with
    one outage and one notice for all of them, until a person accepts the key.

    Raises:
        RuleViolation: There is no such partner.
        PartnerAway: It cannot be reached, is stopped or disabled, or its record cannot be used.
    """
    partner = await partner_of(partners, name)
    async with _place(places, partners, partner) as place:
        yield partner, place
        if partner.profile is None and place.profile is not None:
            await _keep_profile(partners, partner, place)


@asynccontextmanager
async def _place(places: Places, partners: PartnerStore, partner: Partner) -> AsyncGenerator[Place]:
    async with AsyncExitStack() as stack:
        try:
            place = await stack.enter_async_context(places.open(partner))
        except UnknownHostKey as error:
            raise await stopped_by(partners, partner, error) from None
        except Denied as error:
            # Of its record, a secret or its address: no file has anything to do with it.
            raise PartnerAway(partner.name, str(error)) from None
        yield place


async def stopped_by(
    partners: PartnerStore, partner: Partner, error: UnknownHostKey
) -> PartnerAway:
    """Stop a partner whose server shows an unknown key; the failure of the step that saw it."""
    name = partner.name
    sentence = f"{error}; if that is right: docflow partners keys accept {name}"[:500]
    # Refused where another run was faster, or a person has changed the record: the next attempt
    # sees it.
    with suppress(RuleViolation):
        await partners.put(
            partner.model_copy(update={"stopped": sentence}), expected=partner.revision
        )
    return PartnerAway(name, f"{name} is stopped: {sentence}")


async def _keep_profile(partners: PartnerStore, partner: Partner, place: Place) -> None:
    # Refused where it was changed meanwhile: it is probed again.
    with suppress(RuleViolation):
        await partners.put(
            partner.model_copy(update={"profile": place.profile}), expected=partner.revision
        )


async def partner_probe(places: Places, partners: PartnerStore, name: str) -> int | None:
    """See whether a partner can be used: what those ask who wait for it.

    Returns:
        Bytes that can be written; None: it does not report it.

    Raises:
        PartnerAway: It cannot.
    """
    try:
        async with opened(places, partners, name) as (_, place):
            await place.ping()
            return await place.room()
    except RuleViolation:
        # Removed by a person: nothing is to be waited for, and the step of the run says so.
        return None


class NotedNamings:
    """Keeps what attempts at one file came to with the notes of its run.

    Args:
        notes: Where.
        run: The transfer.
        name: Of the note, one for each file.
    """

    def __init__(self, notes: Notes, run: str, name: str) -> None:
        self._notes, self._run, self._name = notes, run, name

    async def last(self) -> Naming | None:
        """What was noted last."""
        text = await self._notes.read(self._run, self._name)
        note = None if text is None else NamingNote.model_validate_json(text)
        if note is None or not note.path:
            return None
        return Naming(note.wanted, note.path, note.sha256, note.done)

    async def note(self, naming: Naming | None) -> None:
        """Note it."""
        note = NamingNote(**asdict(naming or Naming("", "", "")))
        await self._notes.write(self._run, self._name, note.model_dump_json().encode())


def progress_of(beats: Heartbeater, done: int) -> Callable[[int], None]:
    """Tells in heartbeats how far a file is."""

    def tell(size: int) -> None:
        beats.beat(TransferProgress(files=done, bytes=size))

    return tell


def shown(partner: Partner, path: str) -> str:
    """Where a file is, for the receipt: nothing of it is secret."""
    return f"{partner.kind}:{partner.name}/{path}"


def digest_of(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()

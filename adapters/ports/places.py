"""Endpoints that files are read from and written to."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from adapters.ports.errors import NotYet, PortError, Unavailable
from workflows.shared.dependencies import Dependency
from workflows.transfers.partners import Partner, ServerProfile
from workflows.transfers.settings import Guarantee, Overwrite

Progress = Callable[[int], None]
"""Called with the bytes so far, at least once per 8 MB."""


class PartnerAway(Unavailable):
    """A partner cannot be reached at all: the run waits, and no retry is used up."""

    def __init__(self, partner: str, message: str) -> None:
        super().__init__(message, Dependency.PARTNER, name=partner)
        self.partner = partner


class LoginRefused(PartnerAway):
    """A partner refuses the login, as with a password that has expired: no file's failure.

    It is asked rarely: servers lock accounts and addresses out.
    """


class PartnerFull(PartnerAway):
    """A partner has no room for a file, and answers: whatever needs less continues meanwhile."""

    def __init__(self, partner: str, message: str, room: int) -> None:
        super().__init__(partner, message)
        self.room = room


class Busy(NotYet):
    """All sessions or new connections that a partner bears are in use."""


class PlaceError(PortError):
    """A failure of one file at an endpoint: another attempt may succeed, as its settings say."""


class FileMissing(PlaceError):
    """There is no such file at the partner."""


class FileChanged(PlaceError):
    """It is not the file any more that was listed or read before, or grew while it was read."""


class NameTaken(PlaceError):
    """The destination holds another file of that name, and may not be replaced."""


class NameRefused(PlaceError):
    """The endpoint cannot hold such a name, or the name would leave its folder."""


class UnknownHostKey(PortError):
    """The server shows a key that is not one of the partner's: nothing was sent to it.

    Attributes:
        shown: Fingerprint of the key that it shows.
        known: Fingerprints of the keys that are pinned.
        key: The key that it shows, as in `known_hosts`: algorithm and base64.
        pinned: Which keys are pinned, and which of them do not count today, for people.
    """

    def __init__(
        self, message: str, shown: str, known: Sequence[str], key: str = "", pinned: str = ""
    ) -> None:
        super().__init__(message)
        self.pinned = pinned
        self.shown = shown
        self.known = tuple(known)
        self.key = key


@dataclass(frozen=True, slots=True)
class Entry:
    """One file at an endpoint."""

    path: str
    """From the partner's root, segments joined by `/`."""
    size: int
    changed: datetime | None = None
    tag: str | None = None
    """Etag, where the protocol has one."""


@dataclass(frozen=True, slots=True)
class Naming:
    """That a file is about to get its name at an endpoint, or has it."""

    wanted: str
    """The path that was asked for."""
    path: str
    """The path that it gets: another one where the name was taken and a number was added."""
    sha256: str
    done: bool = False
    """The endpoint has confirmed it."""


class Namings(Protocol):
    """What earlier attempts at writing one file came to; a killed worker loses nothing of it.

    A file that has left its temporary name, and is not there, was picked up: without this record
    it would be written a second time.
    """

    async def last(self) -> Naming | None:
        """What was noted last; None: no attempt got as far."""
        ...

    async def note(self, naming: Naming | None) -> None:
        """Note it, before the next step is taken; None: the name was not given after all."""
        ...


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a file that was written."""

    entry: Entry
    guarantee: str
    """What was verified, in words: `hash of the server`, `read back`, `size`."""
    existed: bool = False
    """The same bytes stood there before; nothing was written."""
    picked_up: bool = False
    """It had its name, and was gone when it was looked at: the partner has taken it."""
    remarks: Sequence[str] = ()


class Place(Protocol):
    """One endpoint, connected.

    Every method raises `PartnerAway` when it cannot be reached, `Throttled` when it asks for
    fewer requests, `Denied` when it refuses for good, `NameRefused` for a name that it cannot hold.
    """

    async def probe(self, folder: str = "") -> ServerProfile:
        """See what it can do, with small files of our own that are removed.

        Args:
            folder: Where to try; the root.
        """
        ...

    @property
    def profile(self) -> ServerProfile | None:
        """What is known of it: as its record says, or as it was probed for the first write."""
        ...

    async def ping(self) -> None:
        """See that it answers, whatever it says; to have opened it need not have reached it.

        Raises:
            PartnerAway: It does not.
        """
        ...

    async def room(self) -> int | None:
        """Bytes that can be written; None: it does not report it."""
        ...

    async def stat(self, path: str) -> Entry:
        """One file.

        Raises:
            FileMissing: There is none.
        """
        ...

    async def list(self, pattern: str, most: int) -> Sequence[Entry]:
        """Files whose path matches, by path; wildcards stand in the last segment only.

        Links that lead out of the root are left out. A name that could not be read or written is
        listed all the same: `path_problem` of the domain says what is wrong with it.

        Args:
            pattern: Path with `*`, `?` and `[...]`.
            most: No more than one beyond this number are listed.

        Raises:
            FileMissing: The endpoint has folders, and there is none of that name.
        """
        ...

    def read(self, entry: Entry, offset: int = 0) -> AsyncIterator[bytes]:
        """The bytes of a file; the last step sees that it is still the one that was listed.

        Raises:
            FileChanged: It is another one now, or it grew or shrank meanwhile.
            FileMissing: It is gone.
        """
        ...

    async def write(
        self,
        chunks: AsyncIterator[bytes],
        path: str,
        *,
        size: int,
        sha256: str,
        overwrite: Overwrite,
        verify: Guarantee,
        owner: str,
        mode: int | None = None,
        changed: datetime | None = None,
        progress: Progress | None = None,
        namings: Namings | None = None,
    ) -> Written:
        """Write a file so that no reader ever sees half of it; done again, it changes nothing.

        Args:
            chunks: Its bytes.
            path: Where; missing folders are made where the endpoint has folders.
            size: In bytes.
            sha256: Of all bytes; others are never given the name.
            overwrite: What happens when the name is taken by other bytes.
            verify: What is compared before it gets its name.
            owner: Names the temporary file, so that another try of the same run finds its own.
            mode: Rights to ask for.
            changed: Time to give it.
            progress: Told the bytes so far.
            namings: What earlier attempts came to; None: there were none.

        Raises:
            NameTaken: By other bytes, and `overwrite` refuses.
            PartnerFull: It failed, and there is less room than the file needs.
        """
        ...

    async def move(self, entry: Entry, path: str) -> None:
        """Move a file within the endpoint, if it is still that one.

        Raises:
            FileChanged: It is another one now.
            FileMissing: It is gone.
            NameTaken: There is another file of that name.
        """
        ...

    async def delete(self, entry: Entry) -> bool:
        """Delete a file, if it is still that one; False: it is gone already.

        Raises:
            FileChanged: It is another one now.
        """
        ...


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server answered to a call."""

    status: int
    text: str
    """The beginning of its body."""


class Calls(Protocol):
    """An endpoint that can be called: HTTPS servers are."""

    async def call(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: AsyncIterator[bytes] | None = None,
        size: int = 0,
    ) -> HttpAnswer:
        """Send one request; whatever the server answers is not a failure.

        Args:
            method: Of HTTP.
            path: With its query.
            headers: Beside those of the partner's credentials.
            body: Bytes to send.
            size: How many they are.

        Raises:
            PartnerAway: It cannot be reached.
            Throttled: It asks for fewer requests.
        """
        ...


class Places(Protocol):
    """Opens endpoints within the limits, windows and pinned keys of their partners."""

    def open(self, partner: Partner) -> AbstractAsyncContextManager[Place]:
        """Connect; sessions are counted over all workers and given back at the end.

        Raises:
            PartnerAway: It cannot be reached, refuses the login, or is stopped or disabled: the
                run waits until a person has put that right.
            Denied: Its record cannot be used, or its address is one that nothing is sent to.
            UnknownHostKey: It is not the server that it was.
            Busy: All of its sessions are in use.
            NotYet: Outside of its windows.
        """
        ...

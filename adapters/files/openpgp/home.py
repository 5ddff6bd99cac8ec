"""Homes of GnuPG that last for one step, and what GnuPG says of a message.

What GnuPG says of a message, line by line.

Source: doc/DETAILS of GnuPG, "Format of the --status-fd output".
"""

import asyncio
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from adapters.ports.errors import Denied, NotInstalled, PortError, Unavailable, UnreadableDocument
from adapters.ports.transfers import Signature
from workflows.shared.dependencies import Dependency

T = TypeVar("T")
PREFIX: Final = "docflow-pgp-"
_MEMORY: Final = Path("/dev/shm")  # noqa: S108
_AGENT: Final = """\
allow-loopback-pinentry
allow-preset-passphrase
s2k-count 65536
"""
"""The last line is about the copy in the home alone: without it the agent measures the machine for
seconds, and each use of a key takes as long again."""
SHORT_SECONDS: Final = 10.0
"""For what programs ask the agent."""
_LONGEST: Final = 70
"""Characters of a home: paths of sockets end after 107."""


def environment() -> Mapping[str, str]:
    """What programs of GnuPG are given of the worker's environment, which holds secrets."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


@asynccontextmanager
async def gnupg_home(
    folder: Path | None = None, seconds: float = SHORT_SECONDS
) -> AsyncGenerator[Path]:
    """A home for the length of the block; its agent is ended and all of it removed.

    Homes of killed workers are removed on the way: each is locked by its process, and an agent
    whose home is gone ends by itself.

    Args:
        folder: Where homes are made; None: in memory, else in the folder for temporary files.
        seconds: That its agent may take to end; then it is killed.

    Raises:
        Unavailable: No folder can be made.
    """
    where = folder or _folder()
    try:
        await asyncio.to_thread(_sweep, where)
        home = Path(tempfile.mkdtemp(prefix=PREFIX, dir=where))
        lock = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (home / "gpg-agent.conf").write_text(_AGENT)
    except OSError as error:
        raise Unavailable(
            f"no keyring can be made in {where}: {error.strerror}", Dependency.SCRATCH_DISK
        ) from error
    try:
        yield home
    finally:
        await asyncio.shield(_end(home, lock, seconds))


async def _end(home: Path, lock: int, seconds: float) -> None:
    try:
        await run("gpgconf", "--homedir", str(home), "--kill", "gpg-agent", seconds=seconds)
    except Unavailable:
        await asyncio.to_thread(end_programs, home)
    await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)
    os.close(lock)


async def run(
    program: str, *arguments: str, given: bytes = b"", seconds: float = SHORT_SECONDS
) -> None:
    """Run a program of GnuPG that asks the agent for something small.

    Args:
        program: Its name.
        arguments: Without secrets: every process of the machine can read them.
        given: Its standard input.
        seconds: That it may take.

    Raises:
        NotInstalled: It is not.
        Unavailable: It hangs.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment(),
        )
    except FileNotFoundError as error:
        raise missing() from error
    try:
        async with asyncio.timeout(seconds):
            await process.communicate(given)
    except TimeoutError:
        raise hanging() from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def answered(home: Path, seconds: float, call: Callable[[], T]) -> T:
    """Call GnuPG in a thread; where it hangs, its programs are ended, and so is the thread.

    Raises:
        Unavailable: It hung.
    """
    running = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.shield(running)
    except TimeoutError:
        await asyncio.to_thread(end_programs, home)
        await asyncio.gather(running, return_exceptions=True)
        raise hanging() from None


@asynccontextmanager
async def watched(home: Path, seconds: float, moved: Callable[[], object]) -> AsyncGenerator[None]:
    """End the programs of a home that move nothing for a while inside the block.

    Args:
        home: Theirs.
        seconds: How long they may take over nothing.
        moved: How far they are; anything that changes.

    Raises:
        Unavailable: They were ended, in place of the failure that followed from it.
    """
    has_hung = False

    async def watch() -> None:
        nonlocal has_hung
        while True:
            before = moved()
            await asyncio.sleep(seconds)
            if moved() == before:
                has_hung = True
                await asyncio.to_thread(end_programs, home)

    watching = asyncio.create_task(watch())
    try:
        yield
    except (PortError, OSError) as error:
        if has_hung:
            raise hanging() from error
        raise
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def end_programs(home: Path) -> None:
    """Kill what works in a home: the command lines of all its programs name it."""
    name = os.fsencode(home)
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if name in command.read_bytes().split(b"\0"):
                os.kill(int(command.parent.name), signal.SIGKILL)


def hanging() -> Unavailable:
    """The failure of a step whose programs do not answer; the next attempt has others."""
    return Unavailable("GnuPG hung: gpg or its agent did nothing for too long, and was ended")


def missing() -> NotInstalled:
    """The failure of a machine without GnuPG."""
    return NotInstalled("GnuPG is not installed on this machine: OpenPGP needs the program gpg")


def _folder() -> Path:
    if os.access(_MEMORY, os.W_OK | os.X_OK):
        return _MEMORY
    usual = Path(tempfile.gettempdir())
    return usual if len(str(usual)) < _LONGEST - len(PREFIX) else Path("/tmp")  # noqa: S108


def _sweep(where: Path) -> None:
    for home in where.glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if home.stat().st_uid == os.getuid() and (home / "gpg-agent.conf").exists():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(home, ignore_errors=True)
            finally:
                os.close(lock)


_MARK: Final = "[GNUPG:] "
_UNKNOWN: Final = "of an unknown key"
_JUDGED: Final[Mapping[str, str]] = {
    "GOODSIG": "good",
    "BADSIG": "bad",
    "EXPSIG": "expired",
    "EXPKEYSIG": "of a key that has expired",
    "REVKEYSIG": "of a key that was revoked",
    "ERRSIG": _UNKNOWN,
}
_CANCELLED: Final = 99
"""Code of a question that was refused."""
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Signed:
    """One signature."""

    verdict: str
    key: str
    """Fingerprint of the primary key; of one that is unknown, whatever the message says."""
    signed_at: datetime | None = None


class Statuses:
    """The lines of one call.

    Args:
        printed: What it printed to the descriptor of statuses.
    """

    def __init__(self, printed: str) -> None:
        self.lines: list[Sequence[str]] = [
            line.removeprefix(_MARK).split()
            for line in printed.splitlines()
            if line.startswith(_MARK) and line != _MARK
        ]

    def __contains__(self, keyword: str) -> bool:
        return any(words[0] == keyword for words in self.lines if words)

    def of(self, keyword: str) -> Sequence[Sequence[str]]:
        """What stands behind a keyword, in each of its lines."""
        return [words[1:] for words in self.lines if words and words[0] == keyword]

    def signatures(self) -> Sequence[Signed]:
        """All signatures, in order."""
        found: list[Signed] = []
        for words in self.lines:
            if not words:
                continue
            keyword, *rest = words
            if keyword in _JUDGED:
                key = rest[6] if keyword == "ERRSIG" and len(rest) > 6 else (rest or ["?"])[0]
                found.append(Signed(_JUDGED[keyword], key))
            elif keyword == "VALIDSIG" and found and len(rest) > 2:
                when = int(rest[2]) if rest[2].isdecimal() else None
                found[-1] = Signed(
                    found[-1].verdict,
                    rest[9] if len(rest) > 9 else rest[0],
                    None if when is None else datetime.fromtimestamp(when, UTC),
                )
        return found

    def expected_signature(
        self, signers: Sequence[str], *, required: bool = True
    ) -> Signature | None:
        """The signature of one of the signers; None: there is none, and none is required.

        Raises:
            UnreadableDocument: One is bad: the bytes are not those that were signed.
            Denied: None is good and of an expected key.
        """
        signatures = self.signatures()
        if any(each.verdict == "bad" for each in signatures):
            raise UnreadableDocument("its signature is bad: it was changed after it was signed")
        for each in signatures:
            if each.verdict == "good" and each.signed_at is not None and each.key in signers:
                return Signature(each.key, each.signed_at)
        if not required:
            return None
        if not signatures:
            raise Denied("it is not signed, and a signature is required (RequireSignature)")
        seen = "; ".join(f"{each.key}: {each.verdict}" for each in signatures[:_SHOWN])
        raise Denied(f"it is not signed by an expected key with a valid signature ({seen})")

    def require_known_signers(self) -> None:
        """See that beside the expected signature there is none of a key that is not known.

        Raises:
            Denied: There is one, which GnuPG calls a failure of the whole message.
        """
        unknown = [each.key for each in self.signatures() if each.verdict == _UNKNOWN]
        if unknown:
            raise Denied(
                f"it is also signed by {', '.join(unknown[:_SHOWN])}, whose key is not known: add "
                "it to the keys of the partner; Signers says whose signature is required"
            )

    def require_unlocked(self) -> None:
        """See that GnuPG asked for no passphrase beyond those that it was given.

        Raises:
            Denied: It did.
        """
        for words in (*self.of("ERROR"), *self.of("FAILURE")):
            if len(words) > 1 and words[1].isdecimal() and int(words[1]) & 0xFFFF == _CANCELLED:
                raise Denied("the passphrase of a private key of ours is wrong or missing")

    def require_decrypted(self, lacking: Collection[str] = ()) -> None:
        """See that a message was decrypted with a key of ours and is as it was encrypted.

        Args:
            lacking: Ids of sub-keys of ours whose private part is missing.

        Raises:
            UnreadableDocument: It is not; the message says why.
        """
        if not {"DECRYPTION_OKAY", "END_DECRYPTION"} <= {words[0] for words in self.lines if words}:
            raise UnreadableDocument(self._why_not_decrypted(lacking))
        if "DECRYPTION_FAILED" in self or "BADMDC" in self:
            raise UnreadableDocument(_CHANGED)
        if not self.of("DECRYPTION_KEY"):
            raise UnreadableDocument(_SYMMETRIC)
        if len(self.of("PLAINTEXT")) != 1:
            raise UnreadableDocument("it holds several messages, and one is expected")
        aead = [info for info in self.of("DECRYPTION_INFO") if len(info) > 2 and info[2] != "0"]
        if "GOODMDC" not in self and not aead:
            raise UnreadableDocument(_UNPROTECTED)

    def require_signed_message(self) -> None:
        """See that it is one message that holds its signature and is not encrypted.

        Raises:
            UnreadableDocument: It is not; the message says why.
        """
        if "BEGIN_DECRYPTION" in self or "ENC_TO" in self or "NEED_PASSPHRASE_SYM" in self:
            raise UnreadableDocument("it is encrypted: Decrypt reads it, and requires a signature")
        if not self.signatures() or not self.of("PLAINTEXT"):
            raise UnreadableDocument(
                "it has no signature beside it, and is not a signed message itself"
            )
        if len(self.of("PLAINTEXT")) != 1:
            raise UnreadableDocument("it holds several messages, and one is expected")

    def _why_not_decrypted(self, lacking: Collection[str]) -> str:
        if "DECRYPTION_INFO" in self:
            unprotected = any(info[:1] == ["0"] for info in self.of("DECRYPTION_INFO"))
            return _UNPROTECTED if unprotected and "BADMDC" not in self else _CHANGED
        if recipients := [words[0] for words in self.of("ENC_TO") if words]:
            if ours := [each for each in recipients if each in lacking]:
                return (
                    f"it is encrypted to a key of ours whose text lacks the private part of "
                    f"{', '.join(ours[:_SHOWN])}: export that key whole"
                )
            return (
                "it is encrypted to other keys than ours: "
                f"{', '.join(recipients[:_SHOWN])} (ids of sub-keys)"
            )
        if "NEED_PASSPHRASE_SYM" in self:
            return _SYMMETRIC
        if "NEWSIG" in self or "GOODSIG" in self or "ERRSIG" in self or "PLAINTEXT" in self:
            return "it is not encrypted"
        return "it is not an OpenPGP message, or a damaged one"


_CHANGED: Final = "it was changed or cut off after it was encrypted (the integrity check failed)"
_UNPROTECTED: Final = (
    "it has no integrity protection, so that a change would not show; have it encrypted with MDC "
    "or AEAD"
)
_SYMMETRIC: Final = "it is encrypted with a passphrase, and not to a key of ours"

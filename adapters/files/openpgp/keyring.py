"""One keyring of GnuPG, and what is done with it."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from copy import copy
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final, TypeVar

from gnupg import GPG

from adapters.files.openpgp.home import (
    SHORT_SECONDS,
    Statuses,
    answered,
    environment,
    gnupg_home,
    missing,
    run,
    watched,
)
from adapters.ports.errors import Denied, UnreadableDocument
from adapters.ports.transfers import KeyInfo, Secrets, Signature, Sink, WrongKey
from adapters.threads import BlockingStream, PulledBytes
from workflows.transfers.partners import OpenPgpKey

T = TypeVar("T")
GpgCalls = Any
"""`gnupg.GPG`, whose methods have no types."""
_OPTIONS: Final = (
    "--no-options",
    "--no-auto-key-locate",
    "--no-auto-key-import",
    "--disable-dirmngr",
    "--no-auto-check-trustdb",
    "--no-symkey-cache",
    "--trust-model",
    "always",
)
_PROMPTS: Final = ("--pinentry-mode", "cancel")
"""Whatever asks for a passphrase is refused: those of our keys are known to the agent."""
_PLAIN: Final = ("--compress-algo", "none", "--set-filename", "", "--no-encrypt-to")
PATIENCE_SECONDS: Final = 300.0
_SLOWEST: Final = 1 << 20
"""Bytes a second at which a file is read, however slow a disk is."""
_PIECE: Final = 1 << 20
_SIGNATURE_BYTES: Final = 1 << 20
_TOO_LARGE: Final = "exceeded --max-output limit"
_ABSENT: Final = "#"
"""Stands for the private part of a key or sub-key that is not there."""
_DEAD: Final = frozenset("eridn")
"""Validity of keys that cannot be used: expired, revoked, invalid, disabled, not valid."""

# What the library logs of its calls holds the beginning of keys and messages.
logging.getLogger("gnupg").setLevel(logging.CRITICAL + 1)


class GnuPg:
    """Opens keyrings; errors name neither passphrases nor plaintext.

    Args:
        secrets: Private keys and passphrases.
        folder: Where homes are made; None: in memory where possible.
        patience: Seconds that GnuPG may do nothing; what hangs is ended.
    """

    def __init__(
        self,
        secrets: Secrets,
        folder: Path | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._secrets = secrets
        self._folder = folder
        self._patience = patience

    @asynccontextmanager
    async def open(self, keys: Sequence[OpenPgpKey]) -> "AsyncGenerator[GnuPgKeyring]":
        """A keyring of its own with these keys, removed at the end of the block.

        Raises:
            Denied: A key is not the one that its fingerprint names.
        """
        async with gnupg_home(self._folder, min(self._patience, SHORT_SECONDS)) as home:
            gpg = await asyncio.to_thread(_gpg, home)
            facts = [await self._add(gpg, home, key) for key in keys]
            yield GnuPgKeyring(gpg, facts, home, self._patience)

    async def _add(self, gpg: GpgCalls, home: Path, key: OpenPgpKey) -> KeyInfo:
        private = await self._secrets.secret(key.private) if key.private else None
        passphrase = await self._passphrase(key) if private and key.passphrase else None
        texts = [text for text in (key.public, private) if text]
        if not texts:
            raise Denied(f"there is no text of the key {key.fingerprint}")
        for text in texts:
            secret = passphrase if text is private else None
            load = partial(gpg.import_keys, text.encode(), passphrase=secret)
            result = await answered(home, self._patience, load)
            _require_imported(key, result, secret=text is private)
        listed = await answered(home, self._patience, partial(gpg.list_keys, private is not None))
        entry = next((each for each in listed if each["fingerprint"] == key.fingerprint), None)
        if entry is None:
            raise WrongKey(f"the text of the key {key.fingerprint} holds another key")
        if passphrase is not None:
            await _preset(home, _keygrips(entry), passphrase)
        return _facts(entry, secret=private is not None)

    async def _passphrase(self, key: OpenPgpKey) -> str:
        """As the library writes it: byte by byte."""
        found = (await self._secrets.secret(key.passphrase or "")).rstrip("\r\n")
        if not found or any(mark in found for mark in "\r\n\0"):
            raise Denied(f"{key.passphrase} holds no passphrase: it takes one line")
        return found.encode().decode("latin-1")


class GnuPgKeyring:
    """Keys in a home of their own, for the length of one step.

    Everything is streamed. What is read is neither complete nor authentic before the end, so the
    sink sees an error instead of the end where it is not. Every method raises `UnreadableDocument`
    for what is damaged, tampered with or no OpenPGP message, `Denied` for keys that may not be
    used.

    Args:
        gpg: Calls GnuPG.
        keys: What was imported.
        home: Theirs.
        patience: Seconds that GnuPG may do nothing.
    """

    def __init__(self, gpg: GpgCalls, keys: Sequence[KeyInfo], home: Path, patience: float) -> None:
        self._gpg = gpg
        self.keys = keys
        self._home, self._patience = home, patience

    async def encrypt(
        self,
        source: AsyncIterator[bytes],
        sink: Sink[T],
        recipients: Sequence[str],
        signer: str | None = None,
        *,
        armour: bool = False,
    ) -> T:
        """Encrypt to keys, by fingerprint; nothing is compressed.

        Raises:
            Denied: A recipient has expired or was revoked.
        """
        for fingerprint in recipients:
            self._require_recipient(fingerprint)
        if not recipients:
            raise Denied("there is no key to encrypt to")
        more = [*_PLAIN, *self._signer(signer)]

        def call(gpg: GpgCalls, given: PulledBytes) -> Any:
            return gpg.encrypt_file(
                given, list(recipients), sign=signer is not None, armor=armour, extra_args=more
            )

        def check(result: Any) -> None:
            statuses = Statuses(result.stderr)
            statuses.require_unlocked()
            if not result.ok or result.returncode or "INV_RECP" in statuses:
                raise Denied(f"GnuPG does not encrypt to {', '.join(recipients)}")
            if signer is not None and "SIG_CREATED" not in statuses:
                raise _cannot_sign(signer)

        return await self._streamed(source, sink, call, check)

    async def decrypt(
        self,
        source: AsyncIterator[bytes],
        sink: Sink[T],
        signers: Sequence[str],
        *,
        most: int,
        signed: bool = True,
    ) -> tuple[T, Signature | None]:
        """Decrypt a message that is encrypted to a key of ours; None: none of `signers` signed it.

        Args:
            source: Binary or armoured.
            sink: Takes the plain bytes.
            signers: Fingerprints of those who may have signed it.
            most: Plain bytes that are allowed.
            signed: One of them must have.

        Raises:
            UnreadableDocument: It is not encrypted with integrity protection, is damaged, or
                unpacks to more than `most` bytes.
            Denied: It must be signed, and is by none of `signers` with a valid key.
        """
        signature: list[Signature | None] = []

        def call(gpg: GpgCalls, given: PulledBytes) -> Any:
            # One more than is allowed, so that our own limit is the one that is met.
            limit = ["--max-output", str(most + 1), *_PROMPTS]
            return gpg.decrypt_file(given, extra_args=limit)

        def check(result: Any) -> None:
            statuses = Statuses(result.stderr)
            if _TOO_LARGE in result.stderr:
                raise _too_large(most)
            statuses.require_unlocked()
            statuses.require_decrypted([each for key in self.keys for each in key.lacking])
            signature.append(statuses.expected_signature(signers, required=signed))
            # An unknown signer is a failure to GnuPG.
            if result.returncode and (signed or "ERRSIG" not in statuses):
                statuses.require_known_signers()
                # It calls a message good although it could not write all of it.
                raise UnreadableDocument("GnuPG did not read it to its end")

        taken = await self._streamed(source, sink, call, check, most=most)
        return taken, signature[0]

    async def sign(
        self, source: AsyncIterator[bytes], sink: Sink[T], signer: str, *, armour: bool
    ) -> T:
        """Make a detached signature."""
        more = self._signer(signer)

        def call(gpg: GpgCalls, given: PulledBytes) -> Any:
            return gpg.sign_file(
                given, clearsign=False, detach=True, binary=not armour, extra_args=more
            )

        def check(result: Any) -> None:
            statuses = Statuses(result.stderr)
            statuses.require_unlocked()
            if result.returncode or "SIG_CREATED" not in statuses:
                raise _cannot_sign(signer)

        return await self._streamed(source, sink, call, check)

    async def read_signed(
        self, source: AsyncIterator[bytes], sink: Sink[T], signers: Sequence[str], *, most: int
    ) -> tuple[T, Signature]:
        """Read a message that is signed and not encrypted, also one that is clear-signed.

        Args:
            source: Binary, armoured or clear-signed.
            sink: Takes what was signed.
            signers: Fingerprints of those who may have signed it.
            most: Bytes of it that are allowed.

        Raises:
            Denied: None of them signed it.
        """
        signature: list[Signature] = []

        def call(gpg: GpgCalls, given: PulledBytes) -> Any:
            limit = ["--max-output", str(most + 1), *_PROMPTS]
            return gpg.decrypt_file(given, extra_args=limit)

        def check(result: Any) -> None:
            statuses = Statuses(result.stderr)
            if _TOO_LARGE in result.stderr:
                raise _too_large(most)
            statuses.require_signed_message()
            found = statuses.expected_signature(signers)
            if result.returncode or found is None:
                statuses.require_known_signers()
                raise UnreadableDocument("GnuPG did not read it to its end")
            signature.append(found)

        taken = await self._streamed(source, sink, call, check, most=most)
        return taken, signature[0]

    async def verify(self, source: Path, signature: bytes, signers: Sequence[str]) -> Signature:
        """Require a good detached signature of one of the signers.

        Raises:
            Denied: None of them signed it.
        """
        if len(signature) > _SIGNATURE_BYTES:
            raise UnreadableDocument(f"it has {len(signature):,} bytes: it is not a signature")
        given = BytesIO(signature)
        call = partial(self._gpg.verify_file, given, str(source), extra_args=list(_PROMPTS))
        # It reads the whole file, and shows nothing meanwhile.
        longest = self._patience + source.stat().st_size / _SLOWEST
        result = await answered(self._home, longest, call)
        statuses = Statuses(result.stderr)
        if not statuses.signatures():
            raise UnreadableDocument(
                "it is not a detached signature of this file, or a damaged one"
            )
        found = statuses.expected_signature(signers)
        if found is None or result.returncode:
            raise UnreadableDocument(
                "it is not a detached signature of this file, or a damaged one"
            )
        return found

    async def _streamed(
        self,
        source: AsyncIterator[bytes],
        sink: Sink[T],
        call: Callable[[GpgCalls, PulledBytes], Any],
        check: Callable[[Any], None],
        most: int | None = None,
    ) -> T:
        """Let a sink take what GnuPG makes of a source; it sees an error where `check` raises."""
        given, size = PulledBytes(source), 0

        def work(take: Callable[[bytes], object]) -> Any:
            gpg = copy(self._gpg)
            gpg.on_data = take
            return call(gpg, given)

        async def made() -> AsyncGenerator[bytes]:
            nonlocal size
            stream = BlockingStream(work, given.stop)
            async with aclosing(stream.run()) as pieces:
                async for piece in pieces:
                    size += len(piece)
                    if most is not None and size > most:
                        raise _too_large(most)
                    yield piece
            if given.failure is not None:
                raise given.failure
            check(stream.result)

        async with (
            watched(self._home, self._patience, lambda: (given.size, size)),
            aclosing(made()) as pieces,
        ):
            return await sink(pieces)

    def _require_recipient(self, fingerprint: str) -> None:
        facts = self._facts(fingerprint)
        if facts.revoked:
            raise Denied(f"the key {fingerprint} was revoked: nothing is encrypted to it")
        if not facts.encrypts:
            when = f" on {facts.expires:%Y-%m-%d}" if facts.expires else ""
            raise Denied(
                f"nothing is encrypted to the key {fingerprint}: it has expired{when}"
                if facts.expires and facts.expires <= datetime.now(UTC)
                else f"the key {fingerprint} is not for encryption"
            )

    def _signer(self, fingerprint: str | None) -> Sequence[str]:
        if fingerprint is None:
            return _PROMPTS
        if not self._facts(fingerprint).secret:
            raise Denied(f"the key {fingerprint} cannot sign: its private part is not ours")
        return (*_PROMPTS, "--local-user", fingerprint)

    def _facts(self, fingerprint: str) -> KeyInfo:
        for facts in self.keys:
            if facts.fingerprint == fingerprint:
                return facts
        raise Denied(f"there is no key {fingerprint}")


def _gpg(home: Path) -> GpgCalls:
    try:
        gpg: Any = GPG(
            gnupghome=str(home), options=list(_OPTIONS), env={**environment(), "HOME": str(home)}
        )
    except OSError as error:
        raise missing() from error
    gpg.buffer_size = _PIECE
    return gpg


def _require_imported(key: OpenPgpKey, result: Any, *, secret: bool) -> None:
    """See that a text held the key that it is said to hold, and no other."""
    found = {each for each in result.fingerprints if each}
    if found - {key.fingerprint}:
        raise WrongKey(
            f"the text of the key {key.fingerprint} holds another key, {', '.join(sorted(found))}"
        )
    if not found or (secret and not result.sec_read):
        part = "private" if secret else "public"
        raise WrongKey(f"the text of the key {key.fingerprint} is not a {part} key")


async def _preset(home: Path, keygrips: Iterable[str], passphrase: str) -> None:
    """Let the agent of a home know a passphrase, by its standard input."""
    digits = passphrase.encode("latin-1").hex().upper()
    lines = "".join(f"PRESET_PASSPHRASE {grip} -1 {digits}\n" for grip in keygrips)
    await run("gpg-connect-agent", "--homedir", str(home), given=lines.encode())


def _keygrips(entry: Mapping[str, Any]) -> Sequence[str]:
    parts = (entry, *entry.get("subkey_info", {}).values())
    return [part["keygrip"] for part in parts if part.get("keygrip")]


def _facts(entry: Mapping[str, Any], *, secret: bool) -> KeyInfo:
    now = datetime.now(UTC)
    whole = _expiry(entry)
    parts = [part for part in (entry, *entry.get("subkey_info", {}).values()) if _encrypts(part)]
    ends = [_expiry(part) for part in parts if part["trust"] != "r"]
    latest = None if not ends or None in ends else max(end for end in ends if end)
    expires = min((each for each in (whole, latest) if each), default=None)
    dead = entry["trust"] in _DEAD
    lacking = [part for part in parts if secret and part.get("token") == _ABSENT]
    usable = any(
        part["trust"] not in _DEAD and ((end := _expiry(part)) is None or end > now)
        for part in parts
    )
    return KeyInfo(
        fingerprint=entry["fingerprint"],
        encrypts=usable and not dead and (whole is None or whole > now),
        expires=expires,
        revoked=entry["trust"] == "r",
        secret=secret,
        decrypts=secret and len(lacking) < len(parts),
        lacking=tuple(part["keyid"] for part in lacking),
    )


def _encrypts(part: Mapping[str, Any]) -> bool:
    """Whether a part of a key is for encryption; capitals are about the key as a whole."""
    return "e" in part["cap"]


def _expiry(part: Mapping[str, Any]) -> datetime | None:
    when = part.get("expires") or ""
    return datetime.fromtimestamp(int(when), UTC) if when.isdecimal() else None


def _too_large(most: int) -> UnreadableDocument:
    return UnreadableDocument(f"it unpacks to more than {most:,} bytes")


def _cannot_sign(fingerprint: str) -> Denied:
    return Denied(
        f"the key {fingerprint} cannot sign: it has expired, is not for signatures, or its text "
        "lacks the private part for them"
    )

"""OpenPGP with the keys of a partner, and checksums that came with files."""

import asyncio
import hashlib
import hmac
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from temporalio import activity

from activities.shared.failures import translate_failures
from activities.shared.scratch import scratch_folder
from activities.transfers.endpoints import (
    StepFiles,
    content_of,
    line_of,
    once,
    partner_of,
    remarks_of_empty,
    staged_path,
)
from adapters.files.openpgp.keyring import GnuPg, GnuPgKeyring
from adapters.ports.errors import Denied, UnreadableDocument
from adapters.ports.transfers import KeyInfo, PartnerStore
from adapters.staging import BlobStaging
from workflows.shared.errors import InvalidDocument, RuleViolation
from workflows.transfers.partners import OpenPgpKey, Partner
from workflows.transfers.receipts import ReceiptFile
from workflows.transfers.runs import ActionInput, ActionResult, StagedFile
from workflows.transfers.settings import Checksum, Decrypt, Encrypt, Sign, Verify, fill_name


def pairs_of(
    files: Sequence[StagedFile], suffixes: Sequence[str], what: str
) -> Sequence[tuple[StagedFile, StagedFile]]:
    """Each file with the one beside it, in order.

    Args:
        files: All of them.
        suffixes: Of those beside.
        what: They are called so.

    Raises:
        InvalidDocument: One has none, or one belongs to none.
    """
    named = {file.name: file for file in files}
    found: dict[str, StagedFile] = {}
    beside: set[str] = set()
    for file in files:
        owner = next((o for o in _owners(file.name, suffixes) if o in named), None)
        if owner is not None:
            if owner in found:
                raise InvalidDocument(f"{owner!r} has more than one {what} beside it")
            found[owner] = file
            beside.add(file.name)
        elif any(_owners(file.name, suffixes)):
            raise InvalidDocument(f"the {what} {file.name!r} belongs to no file beside it")
    for file in files:
        if file.name not in beside and file.name not in found:
            raise InvalidDocument(f"{file.name!r} has no {what} beside it ({', '.join(suffixes)})")
    return [(file, found[file.name]) for file in files if file.name not in beside]


def alone(files: Sequence[StagedFile], suffixes: Sequence[str]) -> Sequence[StagedFile]:
    """Files that have none beside them and belong to none: a signature may be within."""
    names = {file.name for file in files}
    owners = {file.name: set(_owners(file.name, suffixes)) & names for file in files}
    paired = {owner for each in owners.values() for owner in each}
    return [file for file in files if not owners[file.name] and file.name not in paired]


def _owners(name: str, suffixes: Sequence[str]) -> Sequence[str]:
    lower = name.lower()
    return [name[: -len(suffix)] for suffix in suffixes if lower.endswith(suffix.lower())]


_FREE_BYTES: Final = 64 << 20
_SIGNATURE_BYTES: Final = 1 << 20
_MESSAGES: Final = (".pgp", ".gpg")
"""What names of signed messages may end in, beside the suffixes of signatures."""


@dataclass(frozen=True)
class CryptoPorts:
    """What actions with keys are given."""

    openpgp: GnuPg
    partners: PartnerStore
    staging: BlobStaging
    scratch: Path


class Crypto:
    """Encrypts, decrypts, signs and verifies; plain bytes are staged once they are verified.

    Args:
        ports: Keys, partners and staged bytes.
    """

    def __init__(self, ports: CryptoPorts) -> None:
        self._ports = ports

    @activity.defn(name="transfers.encrypt")
    @translate_failures
    async def encrypt(self, order: ActionInput) -> ActionResult:
        """Encrypt every file to keys of a partner.

        Raises:
            Denied: A key that is named, or all of them, cannot be encrypted to: none that has
                expired is.
        """
        action = order.action
        assert isinstance(action, Encrypt), "the activity is that of the action"
        async with StepFiles(self._ports.staging, order) as step:
            partner = await partner_of(self._ports.partners, action.partner)
            signer = _key_of(partner, action.sign_with) if action.sign_with else None
            theirs = [key for key in partner.keys if not key.own]
            if action.recipients:
                theirs = [_key_of(partner, each) for each in action.recipients]
            async with self._ports.openpgp.open(_distinct(theirs, signer)) as ring:
                to = _recipients(ring, partner, action.recipients)
                after: list[StagedFile] = []
                lines: list[ReceiptFile] = []
                for number, file in enumerate(await step.given()):
                    blob = await ring.encrypt(
                        step.staging.read(file.blob),
                        partial(step.stage, number),
                        to,
                        action.sign_with,
                        armour=action.armour,
                    )
                    after.append(_derived(file, file.name + action.suffix, blob=blob))
                    lines.append(line_of(file, after[-1], f"encrypted to {', '.join(to)}"))
                remarks = _passed_over(ring, theirs, to)
            return await step.result(await step.manifest(after), lines, remarks=remarks)

    @activity.defn(name="transfers.decrypt")
    @translate_failures
    async def decrypt(self, order: ActionInput) -> ActionResult:
        """Decrypt every file, and require the signature of a partner.

        Raises:
            UnreadableDocument: One is damaged, changed, not encrypted to us, or too large.
            Denied: One is not signed by an expected key.
        """
        action = order.action
        assert isinstance(action, Decrypt), "the activity is that of the action"
        async with StepFiles(self._ports.staging, order) as step:
            partner = await partner_of(self._ports.partners, action.partner)
            own = [key for key in partner.keys if key.own]
            if not own:
                raise Denied(f"partner {partner.name} has no key of ours: nothing can be decrypted")
            theirs = _signers(partner, action.signers, required=action.require_signature)
            signers = [key.fingerprint for key in theirs]
            async with self._ports.openpgp.open(_distinct([*own, *theirs])) as ring:
                after: list[StagedFile] = []
                lines: list[ReceiptFile] = []
                for number, file in enumerate(await step.given()):
                    with _about(file):
                        blob, signature = await ring.decrypt(
                            step.staging.read(file.blob),
                            partial(step.stage, number),
                            signers,
                            most=_most(action, file.blob.size),
                            signed=action.require_signature,
                        )
                    by = signature.fingerprint if signature else None
                    name = _without_suffix(file.name, action.suffixes)
                    after.append(_derived(file, name, blob=blob, signed_by=by))
                    verdict = f"signed by {by}" if by else "not signed"
                    lines.append(line_of(file, after[-1], verdict))
            unsigned = sum(file.signed_by is None for file in after)
            remarks = [f"files not signed by {partner.name}: {unsigned:,}"] if unsigned else []
            remarks += remarks_of_empty(after)
            return await step.result(await step.manifest(after), lines, remarks=remarks)

    @activity.defn(name="transfers.sign")
    @translate_failures
    async def sign(self, order: ActionInput) -> ActionResult:
        """Add a detached signature of ours beside every file.

        Raises:
            Denied: The key cannot sign, as one that has expired.
        """
        action = order.action
        assert isinstance(action, Sign), "the activity is that of the action"
        async with StepFiles(self._ports.staging, order) as step:
            partner = await partner_of(self._ports.partners, action.partner)
            key = _key_of(partner, action.sign_with)
            async with self._ports.openpgp.open([key]) as ring:
                after: list[StagedFile] = []
                lines: list[ReceiptFile] = []
                for number, file in enumerate(await step.given()):
                    blob = await ring.sign(
                        step.staging.read(file.blob),
                        partial(step.stage, number),
                        key.fingerprint,
                        armour=action.armour,
                    )
                    signature = StagedFile(name=file.name + action.suffix, blob=blob)
                    after += [file, signature]
                    lines.append(line_of(file, file, f"signed by {key.fingerprint}"))
                    lines.append(line_of(None, signature))
            return await step.result(await step.manifest(after), lines)

    @activity.defn(name="transfers.verify")
    @translate_failures
    async def verify(self, order: ActionInput) -> ActionResult:
        """Require that every file has a detached signature of a partner beside it, or within.

        A message that holds its signature, also one that is clear-signed, becomes what was signed.

        Raises:
            InvalidDocument: A file has more than one signature.
            UnreadableDocument: A file was changed after it was signed, or has no signature.
            Denied: A signature is of no expected key.
        """
        action = order.action
        assert isinstance(action, Verify), "the activity is that of the action"
        async with StepFiles(self._ports.staging, order) as step:
            partner = await partner_of(self._ports.partners, action.partner)
            theirs = _signers(partner, action.signers, required=True)
            signers = [key.fingerprint for key in theirs]
            after: list[StagedFile] = []
            lines: list[ReceiptFile] = []
            async with self._ports.openpgp.open(theirs) as ring:
                given = await step.given()
                messages = alone(given, action.suffixes)
                beside = [file for file in given if file not in messages]
                for number, file in enumerate(messages):
                    with _about(file):
                        blob, by = await ring.read_signed(
                            step.staging.read(file.blob),
                            partial(step.stage, number),
                            signers,
                            most=_most(Decrypt(partner=action.partner), file.blob.size),
                        )
                    name = _without_suffix(file.name, (*action.suffixes, *_MESSAGES))
                    after.append(_derived(file, name, blob=blob, signed_by=by.fingerprint))
                    lines.append(line_of(file, after[-1], f"signed by {by.fingerprint}"))
                for file, signature in pairs_of(beside, action.suffixes, "signature"):
                    with _about(file):
                        by = await self._verified(step.staging, ring, file, signature, signers)
                    after.append(_derived(file, file.name, signed_by=by))
                    after += [signature] if action.keep_signatures else []
                    lines.append(line_of(file, file, f"signed by {by}"))
                    kept = signature if action.keep_signatures else None
                    lines.append(line_of(signature, kept))
            return await step.result(await step.manifest(after), lines)

    async def _verified(
        self,
        staging: BlobStaging,
        ring: GnuPgKeyring,
        file: StagedFile,
        signature: StagedFile,
        signers: Sequence[str],
    ) -> str:
        if signature.blob.size > _SIGNATURE_BYTES:
            raise UnreadableDocument(f"{signature.name!r} is too long for a signature")
        content = await content_of(staging, signature.blob)
        with scratch_folder(self._ports.scratch) as folder:
            path = await staged_path(staging, file, folder)
            return (await ring.verify(path, content, signers)).fingerprint


@contextmanager
def _about(file: StagedFile) -> Generator[None]:
    """Failures name the file."""
    try:
        yield
    except UnreadableDocument as error:
        raise UnreadableDocument(f"{file.name!r}: {error}") from error
    except Denied as error:
        raise Denied(f"{file.name!r}: {error}") from error


def _key_of(partner: Partner, fingerprint: str) -> OpenPgpKey:
    for key in partner.keys:
        if key.fingerprint == fingerprint:
            return key
    raise Denied(f"partner {partner.name} has no key {fingerprint}")


def _distinct(keys: Sequence[OpenPgpKey], more: OpenPgpKey | None = None) -> Sequence[OpenPgpKey]:
    """Each key once; of two that are one, ours, whose private part we have."""
    every = [*keys, *([more] if more else [])]
    ours_last = [key for key in every if not key.own] + [key for key in every if key.own]
    return list({key.fingerprint: key for key in ours_last}.values())


def _recipients(ring: GnuPgKeyring, partner: Partner, named: Sequence[str]) -> Sequence[str]:
    """Those that are named; else every key of the partner that can be encrypted to now."""
    if named:
        return named
    own = {key.fingerprint for key in partner.keys if key.own}
    usable = [
        facts.fingerprint
        for facts in ring.keys
        if facts.encrypts and not facts.revoked and facts.fingerprint not in own
    ]
    if not usable:
        why = "".join(
            f"; {facts.fingerprint}: {_why_not(facts)}"
            for facts in ring.keys
            if facts.fingerprint not in own
        )
        raise Denied(
            f"partner {partner.name} has no key that can be encrypted to and is valid{why}"
        )
    return usable


def _passed_over(
    ring: GnuPgKeyring, theirs: Sequence[OpenPgpKey], to: Sequence[str]
) -> Sequence[str]:
    """Keys of a partner to which nothing was encrypted, because that cannot be done now."""
    left_out = {key.fingerprint for key in theirs} - set(to)
    return [
        f"nothing is encrypted to the key {facts.fingerprint}: {_why_not(facts)}"
        for facts in ring.keys
        if facts.fingerprint in left_out
    ]


def _why_not(key: KeyInfo) -> str:
    if key.revoked:
        return "it was revoked"
    if key.expires is not None and key.expires <= datetime.now(UTC):
        return f"it has expired on {key.expires:%Y-%m-%d}"
    return "it is not for encryption"


def _signers(partner: Partner, named: Sequence[str], *, required: bool) -> Sequence[OpenPgpKey]:
    if named:
        return [_key_of(partner, fingerprint) for fingerprint in named]
    keys = [key for key in partner.keys if not key.own]
    if required and not keys:
        raise Denied(f"partner {partner.name} has no key by which a signature could be known")
    return keys


def _most(action: Decrypt, size: int) -> int:
    return min(action.bytes_at_most, max(_FREE_BYTES, action.ratio_at_most * size))


def _without_suffix(name: str, suffixes: Sequence[str]) -> str:
    for suffix in suffixes:
        if name.lower().endswith(suffix.lower()) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name


def _derived(file: StagedFile, name: str, **changes: object) -> StagedFile:
    """The file that was made of another one; where that came from stays known."""
    return file.model_copy(update={"name": name, **changes})


_SIDECAR_BYTES: Final = 64 * 1024
_DIGITS: Final = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}


class Checksums:
    """Compares and writes checksums.

    Args:
        staging: Where the files are.
    """

    def __init__(self, staging: BlobStaging) -> None:
        self._staging = staging

    @activity.defn(name="transfers.checksum")
    @translate_failures
    async def checksum(self, order: ActionInput) -> ActionResult:
        """Compare every file with its checksum, or write one beside it.

        Raises:
            InvalidDocument: One is not that of its file, is missing, or belongs to no file.
        """
        action = order.action
        assert isinstance(action, Checksum), "the activity is that of the action"
        async with StepFiles(self._staging, order) as step:
            files = await step.given()
            if action.write:
                after, lines = await self._written(step, action, files)
            elif "expected" in order.names:
                after, lines = await self._expected(action, files, order.names["expected"])
            else:
                after, lines = await self._beside(action, files)
            return await step.result(await step.manifest(after), lines)

    async def _written(
        self, step: StepFiles, action: Checksum, files: Sequence[StagedFile]
    ) -> tuple[list[StagedFile], list[ReceiptFile]]:
        after: list[StagedFile] = []
        lines: list[ReceiptFile] = []
        for number, file in enumerate(files):
            digest = await self._digest(action, file)
            text = f"{digest}  {file.name.rpartition('/')[2]}\n"
            blob = await step.stage(number, once(text.encode()))
            beside = StagedFile(name=file.name + _suffix(action), blob=blob)
            after += [file, beside]
            lines += [line_of(file, file, f"{action.algorithm} {digest}"), line_of(None, beside)]
        return after, lines

    async def _expected(
        self, action: Checksum, files: Sequence[StagedFile], template: str
    ) -> tuple[list[StagedFile], list[ReceiptFile]]:
        expected = {fill_name(template, file.name) for file in files}
        if len(files) > 1 and len(expected) == 1:
            raise RuleViolation(f"one checksum is expected, and there are {len(files):,} files")
        lines = [await self._compared(action, f, fill_name(template, f.name)) for f in files]
        return list(files), lines

    async def _beside(
        self, action: Checksum, files: Sequence[StagedFile]
    ) -> tuple[list[StagedFile], list[ReceiptFile]]:
        after: list[StagedFile] = []
        lines: list[ReceiptFile] = []
        for file, beside in pairs_of(files, [_suffix(action)], "checksum"):
            if beside.blob.size > _SIDECAR_BYTES:
                raise InvalidDocument(f"{beside.name!r} is too long for a checksum")
            text = (await content_of(self._staging, beside.blob)).decode("utf-8", "replace")
            stated = _stated(text, file.name.rpartition("/")[2], _DIGITS[action.algorithm])
            if stated is None:
                what = f"{action.algorithm} of {file.name!r}"
                raise InvalidDocument(f"{beside.name!r} holds no {what}")
            after.append(file)
            lines += [await self._compared(action, file, stated), line_of(beside, None)]
        return after, lines

    async def _compared(self, action: Checksum, file: StagedFile, expected: str) -> ReceiptFile:
        stated = expected.strip().lower()
        if not re.fullmatch(f"[0-9a-f]{{{_DIGITS[action.algorithm]}}}", stated):
            raise InvalidDocument(f"{expected[:130]!r} is not {action.algorithm}")
        found = await self._digest(action, file)
        if not hmac.compare_digest(found, stated):
            raise InvalidDocument(
                f"{file.name!r} was changed: its {action.algorithm} is {found}, and {stated} is "
                "expected"
            )
        return line_of(file, file, f"{action.algorithm} {found} as expected")

    async def _digest(self, action: Checksum, file: StagedFile) -> str:
        if action.algorithm == "sha256" and file.blob.sha256:
            return file.blob.sha256
        digest = hashlib.new(action.algorithm, usedforsecurity=False)
        async for piece in self._staging.read(file.blob):
            await asyncio.to_thread(digest.update, piece)
        return digest.hexdigest()


def _suffix(action: Checksum) -> str:
    return action.sidecar or f".{action.algorithm}"


def _stated(text: str, name: str, digits: int) -> str | None:
    """The checksum of a file in the text of `sha256sum`, of BSD's tools, or alone."""
    found = [
        (match[1] or match[4], match[2] or match[3])
        for match in re.finditer(
            rf"^(?:([0-9a-fA-F]{{{digits}}})(?:\s+\*?(\S.*?))?"
            rf"|[A-Z0-9]+ ?\((.+)\) ?= ?([0-9a-fA-F]{{{digits}}}))\s*$",
            text,
            re.MULTILINE,
        )
    ]
    if len(found) == 1:
        return found[0][0]
    named = [digest for digest, of in found if of and of.rpartition("/")[2] == name]
    return named[0] if len(named) == 1 else None

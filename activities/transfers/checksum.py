"""`transfers.checksum`: files are compared with the checksums that came with them, or get one."""

import asyncio
import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Final

from temporalio import activity

from activities.failures import translate_failures
from activities.transfers.pairs import pairs_of
from activities.transfers.step_files import StepFiles, content_of, line_of, once
from adapters.ports.transfers import Staging
from contracts.transfers import ActionOrder, ActionResult, Checksum, ReceiptFile, StagedFile
from domain.errors import InvalidDocument, RuleViolation
from domain.transfers.templates import filled

_SIDECAR_BYTES: Final = 64 * 1024
_DIGITS: Final = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}


class Checksums:
    """Compares and writes checksums.

    Args:
        staging: Where the files are.
    """

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    @activity.defn(name="transfers.checksum")
    @translate_failures
    async def checksum(self, order: ActionOrder) -> ActionResult:
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
        expected = {filled(template, file.name) for file in files}
        if len(files) > 1 and len(expected) == 1:
            raise RuleViolation(f"one checksum is expected, and there are {len(files):,} files")
        lines = [await self._compared(action, f, filled(template, f.name)) for f in files]
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

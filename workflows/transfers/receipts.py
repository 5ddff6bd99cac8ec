"""Receipts: what was done with the files of a transfer, chained by hash.

Receipts: each step holds the hash of the step before it, so that a change shows where it is.

The hash of a step is the SHA-256 of its canonical JSON (RFC 8785) without the field `sha256`.
Verification reads the JSON and not the contract: fields of a newer release count as well.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

from pydantic import Field

from workflows.shared.contracts import BlobRef, Contract, Person
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import Sentence, TransferId

LINES: Final = 10_000


def _is_absent(value: object) -> bool:
    return value is None


class ReceiptFile(Contract):
    """One file in one step."""

    name: str = Field(max_length=1_024)
    place: str = Field(default="", max_length=2_048)
    """Where it was read from or written to, without any secret."""
    size: int
    sha256_before: str | None = Field(default=None, max_length=64)
    sha256_after: str | None = Field(default=None, max_length=64)
    verdict: Sentence | None = None
    """Of a signature or a scan."""
    guarantee: str | None = Field(default=None, max_length=100)


class ReceiptStep(Contract):
    """One action."""

    transfer_id: TransferId
    index: int
    action: str = Field(max_length=50)
    configured_by: Person | None = None
    """Who wrote the settings, as far as they say."""
    at: datetime
    files: tuple[ReceiptFile, ...] = Field(default=(), max_length=LINES)
    remarks: tuple[Sentence, ...] = Field(default=(), max_length=10)
    # Left out where there is none, so that hashes of earlier releases stay what they were.
    outcome: str | None = Field(default=None, max_length=20, exclude_if=_is_absent)
    """`skipped`, `failed` or `done before`; None: it was carried out."""
    reason: Sentence | None = Field(default=None, exclude_if=_is_absent)
    """Why it was not carried out."""
    decided_by: Person | None = Field(default=None, exclude_if=_is_absent)
    """Who has decided that; None: no person."""
    previous: str = Field(max_length=64)
    """SHA-256 of the step before it; of the first one, of the event."""
    sha256: str = Field(max_length=64)
    """Of this step: of its canonical JSON without this field."""


class Receipt(Contract):
    """All steps of a transfer, in order.

    The hashes of the steps cover `transfer_id`, `event` and `steps`; other fields are covered by
    the SHA-256 of the whole receipt, which the row of the transfer keeps.
    """

    transfer_id: TransferId
    event: str = Field(max_length=64)
    """SHA-256 of the canonical event."""
    resent_from: TransferId | None = None
    resent_from_sha256: str | None = Field(default=None, max_length=64)
    """Of the last step of that transfer's receipt."""
    redriven_from: TransferId | None = Field(default=None, exclude_if=_is_absent)
    """The failed transfer that this one has carried out anew."""
    redriven_from_sha256: str | None = Field(default=None, max_length=64, exclude_if=_is_absent)
    """Of the last step of that transfer's receipt."""
    kept: BlobRef | None = None
    """Files of the kept copy, lines of `StagedFile`; None: none was kept."""
    steps: tuple[ReceiptStep, ...] = Field(default=(), max_length=100)
    sha256: str = Field(max_length=64)
    """Of the last step."""


SEAL: Final = "sha256"
CHAINED: Final = frozenset({"transfer_id", "event", "steps", SEAL})
"""Fields of a receipt that its chain covers; the row of the transfer covers the others as well."""
_HASH_DIGITS: Final = 64


@dataclass(frozen=True, slots=True)
class Finding:
    """What a verification found."""

    problem: str | None = None
    """None: the receipt is as it was written."""
    index: int | None = None
    """Place of the step at fault in the receipt, from 0; None: it is none of them."""

    @property
    def whole(self) -> bool:
        """Nothing was changed."""
        return self.problem is None


def canonical(value: Any) -> bytes:
    """Canonical JSON: keys in order, no white space, UTF-8.

    Args:
        value: A contract, or what JSON can say. Numbers are whole ones.
    """
    plain = value.model_dump(mode="json") if isinstance(value, Contract) else value
    return json.dumps(
        plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def step_hash(step: Mapping[str, Any]) -> str:
    """Hash of a step, whether or not it holds one already."""
    return hashlib.sha256(
        canonical({name: value for name, value in step.items() if name != SEAL})
    ).hexdigest()


def seal_step(step: ReceiptStep) -> ReceiptStep:
    """The step with its hash."""
    return step.model_copy(update={SEAL: step_hash(step.model_dump(mode="json"))})


def read_digest(files: Iterable[ReceiptFile]) -> str:
    """SHA-256 of what was read: names, places, sizes and hashes, in any order."""
    lines = sorted(
        canonical([each.name, each.place, each.size, each.sha256_after]) for each in files
    )
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


def in_order(event: str, steps: Sequence[ReceiptStep]) -> Sequence[ReceiptStep]:
    """Steps, each behind the one whose hash it names; those that follow none stand at the end."""
    following = {step.previous: step for step in steps}
    ordered: list[ReceiptStep] = []
    previous = event
    while (step := following.pop(previous, None)) is not None:
        ordered.append(step)
        previous = step.sha256
    return [*ordered, *(step for step in steps if step not in ordered)]


def assemble_receipt(
    transfer_id: str,
    event: str,
    steps: Sequence[ReceiptStep],
    *,
    resent_from: str | None = None,
    resent_from_sha256: str | None = None,
) -> Receipt:
    """The receipt of a transfer.

    Args:
        transfer_id: Whose it is.
        event: SHA-256 of the canonical event, which the first step follows.
        steps: In the order in which they were done.
        resent_from: The transfer whose kept copy was sent.
        resent_from_sha256: Hash of the last step of that one's receipt.

    Raises:
        RuleViolation: The steps are not a chain.
    """
    receipt = Receipt(
        transfer_id=transfer_id,
        event=event,
        resent_from=resent_from,
        resent_from_sha256=resent_from_sha256,
        steps=tuple(steps),
        sha256=steps[-1].sha256 if steps else event,
    )
    finding = verify(receipt.model_dump(mode="json"))
    if not finding.whole:
        raise RuleViolation(f"the receipt cannot be put together: {finding.problem}")
    return receipt


def verify(receipt: object, *, expected: str | None = None) -> Finding:
    """See whether a receipt is as it was written, and else which step is not.

    Args:
        receipt: Its JSON.
        expected: Hash of the last step as another source states it, as the row of the transfer
            does: a change of a step and of all hashes behind it cannot change that one.
    """
    whole = _receipt_of(receipt)
    if whole is None:
        return Finding("this is not a receipt: a field is missing or of another type")
    steps: list[dict[str, Any]] = whole["steps"]
    previous: str = whole["event"]
    before = "the event"
    for index, step in enumerate(steps):
        name = _named(index, step)
        if step["transfer_id"] != whole["transfer_id"]:
            return Finding(f"{name} is of another transfer, {step['transfer_id']}", index)
        if not _has_its_seal(step):
            return Finding(f"{name} was changed: its content does not have its hash", index)
        if step["previous"] != previous:
            return Finding(
                f"{name} does not follow {before}: a step between them was removed, added, "
                "moved or changed together with its hash",
                index,
            )
        previous, before = step[SEAL], name
    if whole[SEAL] != previous:
        return Finding(f"the end is missing: the last step ({before}) is not the one it names")
    if expected is not None and expected != previous:
        return Finding(
            f"the receipt holds together and is not the one of this transfer: it ends with hash "
            f"{previous}, and {expected} was recorded"
        )
    return Finding()


def unhashed_fields(receipt: Mapping[str, Any]) -> Sequence[str]:
    """Fields of a receipt that say something and that its chain does not cover."""
    present = (name for name, value in receipt.items() if value is not None)
    return sorted(name for name in present if name not in CHAINED)


def _has_its_seal(step: Mapping[str, Any]) -> bool:
    try:
        return step_hash(step) == step[SEAL]
    except ValueError:
        # It holds what no canonical JSON can say: half a character, a number that is none.
        return False


def _named(index: int, step: Mapping[str, Any]) -> str:
    return f"step {index + 1} ({step['action']})"


def _receipt_of(value: object) -> Mapping[str, Any] | None:
    """The value, if it has every field that a verification reads."""
    receipt = _object_of(value)
    if receipt is None:
        return None
    steps = receipt.get("steps")
    if not isinstance(steps, list) or not all(map(_is_step, cast(list[object], steps))):
        return None
    return receipt if _has_hashes(receipt, "transfer_id", "event", SEAL) else None


def _is_step(value: object) -> bool:
    step = _object_of(value)
    return (
        step is not None
        and isinstance(step.get("action"), str)
        and _has_hashes(step, "transfer_id", "previous", SEAL)
    )


def _object_of(value: object) -> Mapping[str, Any] | None:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else None


def _has_hashes(value: Mapping[str, Any], *names: str) -> bool:
    found = [value.get(name) for name in names]
    return all(isinstance(each, str) and len(each) == _HASH_DIGITS for each in found)

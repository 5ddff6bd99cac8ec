"""What the order of a job's actions means: which files an action works on, and which are lost."""

from collections.abc import Iterator, Sequence
from typing import Final

from contracts.transfers import (
    Action,
    AfterSource,
    CallHttp,
    Checksum,
    FireEvent,
    ReadFile,
    Scan,
    WriteFile,
)
from domain.errors import RuleViolation
from domain.transfers.event_facts import ACCOUNT

_NEEDS_NO_FILE: Final = (ReadFile, FireEvent, CallHttp)
_LEAVES_FILES: Final = (Scan, FireEvent, CallHttp, WriteFile)
"""The files after such an action are those before it."""
_SENDS: Final = (WriteFile, FireEvent, CallHttp)


def refuse_order(actions: Sequence[Action], *, has_files: bool = False) -> None:
    """Refuse actions that have no file to work on, contradict themselves, or lose files.

    Args:
        actions: Of a job.
        has_files: It begins with files that are there.

    Raises:
        RuleViolation: Which of them, and what to do.
    """
    if problem := next(problems_of_order(actions, has_files=has_files), None):
        raise RuleViolation(problem)


def problems_of_order(actions: Sequence[Action], *, has_files: bool = False) -> Iterator[str]:
    """Everything for which `refuse_order` refuses actions."""
    if not has_files and not isinstance(actions[0], _NEEDS_NO_FILE):
        yield f"{actions[0].action} comes first, and no ReadFile before it"
    for index, action in enumerate(actions):
        if isinstance(action, ReadFile):
            yield from _contradictions(index, action)
            yield from _losses(index, action, actions[index + 1 :])
        if isinstance(action, FireEvent) and ACCOUNT in action.data:
            yield (
                f"{_named(index, action)}: {ACCOUNT} of Data would be replaced by AccountId; "
                "set AccountId instead"
            )
        if isinstance(action, CallHttp) and (name := _replaced_header(action)) is not None:
            yield (
                f"{_named(index, action)}: the header {name} would be replaced by the idempotency "
                "key; name another IdempotencyHeader, or null"
            )
        if isinstance(action, Checksum) and action.write and action.expected is not None:
            yield (
                f"{_named(index, action)}: Write adds a checksum, and Expected compares with one; "
                "use two actions"
            )


def _contradictions(index: int, action: ReadFile) -> Iterator[str]:
    if (action.after is AfterSource.MOVE) != (action.move_to is not None):
        yield (
            f"{_named(index, action)}: `After: move` and `MoveTo` belong together, and only one "
            "of them is set"
        )
    if action.at_least > action.at_most:
        yield f"{_named(index, action)}: AtLeast is {action.at_least}, and AtMost {action.at_most}"


def _losses(index: int, action: ReadFile, behind: Sequence[Action]) -> Iterator[str]:
    """Files that are sent nowhere before others take their place, or they are deleted."""
    following = next((n for n, each in enumerate(behind) if isinstance(each, ReadFile)), None)
    own = behind[:following]
    if following is not None and not any(isinstance(each, _SENDS) for each in own):
        yield (
            f"{_named(index + following + 1, behind[following])} replaces the files of "
            f"{_named(index, action)}, which no action has sent before: send them first, read all "
            "with one pattern, or use two jobs"
        )
    if action.after is AfterSource.DELETE and not any(map(_takes_files, own)):
        yield (
            f"{_named(index, action)}: `After: delete` deletes files that no WriteFile and no "
            "CallHttp with `Body: file` has sent"
        )


def _replaced_header(action: CallHttp) -> str | None:
    """The header of its settings that has the name of the one with the idempotency key."""
    own = (action.idempotency_header or "").lower()
    return next((name for name in sorted(action.headers) if name.lower() == own), None)


def _takes_files(action: Action) -> bool:
    if isinstance(action, CallHttp):
        return action.body == "file"
    return isinstance(action, WriteFile)


def writes_at_end(actions: Sequence[Action]) -> tuple[Sequence[WriteFile], Sequence[WriteFile]]:
    """The actions that write the files as they are at the end, and those that wrote other ones.

    What is kept of a transfer are its files at the end: an earlier WriteFile sent what they were
    made of, or files of another ReadFile.
    """
    changes = [n for n, each in enumerate(actions) if not isinstance(each, _LEAVES_FILES)]
    end = changes[-1] + 1 if changes else 0
    writes = [(n, each) for n, each in enumerate(actions) if isinstance(each, WriteFile)]
    return [each for n, each in writes if n >= end], [each for n, each in writes if n < end]


def _named(index: int, action: Action) -> str:
    return f"action {index + 1} ({action.action})"

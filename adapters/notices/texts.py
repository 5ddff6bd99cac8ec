"""Subject and body of a notice."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from contracts.notices import Notice, NoticeKind
from domain.notices import clean

_SUBJECTS: Final[Mapping[NoticeKind, str]] = {
    NoticeKind.NEEDS_YOU: "waits for you",
    NoticeKind.REMINDER: "still waits for you",
    NoticeKind.ESCALATION: "has been waiting for long",
    NoticeKind.PARKED: "is parked and needs a decision",
    NoticeKind.ABANDONED: "was cancelled, because it had no answer",
    NoticeKind.FAILED: "has failed",
    NoticeKind.UNDONE: "was undone",
}
_WHY: Final[Mapping[NoticeKind, str]] = {
    NoticeKind.NEEDS_YOU: "It pauses until you answer. Nothing is lost in the meantime.",
    NoticeKind.REMINDER: "It pauses until you answer. Nothing is lost in the meantime.",
    NoticeKind.ESCALATION: "It has had no answer so far. You get this mail because you are "
    "responsible for it, or because reminders to others had no answer.",
    NoticeKind.PARKED: "A step failed. Remove the cause, then retry the step.",
    NoticeKind.ABANDONED: "It waited for an answer for as long as it may. Send the document again "
    "to start over.",
}
_TITLE_CHARACTERS: Final = 150
_LINE_CHARACTERS: Final = 2_000


def subject_of(notice: Notice) -> str:
    """One line that names the run and what is the matter."""
    summary = _SUBJECTS.get(notice.kind, f"is {clean(notice.state, 100)}")
    return f"{clean(notice.title, _TITLE_CHARACTERS)} {summary}"


def body_of(notice: Notice) -> str:
    """A few lines of plain text; no line is made by what comes from outside."""
    return "\n".join(line.rstrip() for line in _lines(notice)) + "\n"


def _lines(notice: Notice) -> Iterator[str]:
    yield subject_of(notice)
    yield ""
    yield clean(notice.reason, _LINE_CHARACTERS)
    yield ""
    yield f"Run:       {clean(notice.workflow_id, _LINE_CHARACTERS)}"
    yield f"State:     {clean(notice.state, 100)}"
    if notice.assignee is not None:
        yield f"Waits for: {clean(notice.assignee, 200)}"
    if notice.waiting_since is not None:
        yield f"Since:     {_moment(notice.waiting_since)}"
    if notice.gives_up_at is not None:
        yield f"Gives up:  {_moment(notice.gives_up_at)}, by itself, without an answer"
    if notice.link is not None:
        yield f"Look:      {clean(notice.link, _LINE_CHARACTERS)}"
    yield ""
    for step in notice.steps:
        yield f"To {clean(step.does, 200)}:"
        yield f"    {clean(step.command, _LINE_CHARACTERS)}"
    if notice.steps:
        yield ""
    yield _WHY.get(notice.kind, "")


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} {at.tzname() or ''}".rstrip()

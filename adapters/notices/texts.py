"""Subject and body of a notice."""

from collections.abc import Mapping
from typing import Final

from contracts.spreadsheets import Notice

_SUBJECTS: Final[Mapping[str, str]] = {
    "reminder": "waits for you",
    "escalation": "has been waiting for long",
    "abandoned": "was cancelled, because it had no answer",
    "parked": "needs an operator",
}
_WHY: Final[Mapping[str, str]] = {
    "reminder": "This import pauses until you answer. Nothing is lost in the meantime.",
    "escalation": "This import has had no answer so far. You get this mail because you are "
    "responsible for it, or because reminders to others had no answer.",
    "abandoned": "This import waited for an answer for as long as it may, and was cancelled. "
    "Upload the file again to start over.",
    "parked": "A step of this import failed. Remove the cause, then retry the step.",
}
_SUBJECT_CHARACTERS: Final = 150


def subject_of(notice: Notice) -> str:
    """One line that names the file and what is the matter."""
    summary = _SUBJECTS.get(notice.kind, "has news")
    return f"{_one_line(notice.filename)[:_SUBJECT_CHARACTERS]} {summary}"


def body_of(notice: Notice) -> str:
    """A few lines of plain text."""
    lines = [
        subject_of(notice),
        "",
        _one_line(notice.open),
        "",
        f"Import:    {notice.uuid} ({notice.import_type})",
        f"State:     {notice.state}",
        f"Waits for: {_one_line(notice.assignee)}",
        f"Since:     {notice.waiting_since:%Y-%m-%d %H:%M} {notice.waiting_since.tzname() or ''}",
    ]
    if notice.link:
        lines.append(f"Continue:   {_one_line(notice.link)}")
    lines += ["", _WHY.get(notice.kind, "")]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _one_line(text: str) -> str:
    """Text from outside without line ends and control characters, which could forge a line."""
    line = " ".join(text.split())
    return "".join(character if character.isprintable() else "?" for character in line)

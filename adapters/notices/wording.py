"""What a notice says to people."""

from collections.abc import Mapping
from typing import Final

from contracts.spreadsheets import Notice

_SUBJECTS: Final[Mapping[str, str]] = {
    "reminder": "waits for you",
    "escalation": "has been waiting for long",
    "abandoned": "was closed, because nobody answered",
    "parked": "needs an operator",
}
_WHY: Final[Mapping[str, str]] = {
    "reminder": "This import pauses until you answer. Nothing is lost in the meantime.",
    "escalation": "Nobody has answered this import so far. You get this mail because you look "
    "after it, or are asked to when others do not.",
    "abandoned": "This import waited for an answer for as long as it may, and was cancelled. "
    "Upload the file again to start anew.",
    "parked": "A step of this import could not be done. Put the cause right, then have it tried "
    "again.",
}
_SUBJECT_CHARACTERS: Final = 150


def subject_of(notice: Notice) -> str:
    """One line that names the file and what is the matter."""
    says = _SUBJECTS.get(notice.kind, "has news")
    return f"{_one_line(notice.filename)[:_SUBJECT_CHARACTERS]} {says}"


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
        lines.append(f"Go on at:  {_one_line(notice.link)}")
    lines += ["", _WHY.get(notice.kind, "")]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _one_line(text: str) -> str:
    """Text from outside without line ends and control characters, which could forge a line."""
    line = " ".join(text.split())
    return "".join(character if character.isprintable() else "?" for character in line)

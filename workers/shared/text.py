"""Text for people: what states are called, and text from outside, made safe for a terminal."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Label:
    """A state, for people."""

    text: str
    tone: str = ""


def N_(message: str) -> str:
    """Mark a message that the pages translate where they show it."""
    return message


def visible(text: str) -> str:
    r"""Show control and direction characters as escapes (`\x1b`); line ends and tabs stay.

    File contents and message bodies end up on the operator's terminal: what they hold must not
    be able to steer it.
    """
    return "".join(
        character if character.isprintable() or character in "\n\t" else _escape(character)
        for character in text
    )


def one_line(text: str) -> str:
    """The same, with every stretch of white space as one blank."""
    return visible(" ".join(text.split()))


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")

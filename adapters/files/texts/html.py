"""Text from outside, made fit to be stored and shown."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Final

from adapters.files import limits

_BREAKS = dict.fromkeys(map(ord, "\r\v\f\x85\u2028\u2029"), "\n")
_CONTROLS: dict[int, str | None] = {code: None for code in (*range(32), *range(127, 160))}
_LETTERS_OF_WINDOWS: Final = {
    code: letter
    for code in range(0x80, 0xA0)
    if (letter := bytes([code]).decode("cp1252", "ignore"))
}
# PDF readers put U+0002 and U+FFFE where a word is divided at the end of a line.
_CLEAN: Final = {
    **_CONTROLS,
    # Western European text of Windows that calls itself Latin-1 has letters and quotes there.
    **_LETTERS_OF_WINDOWS,
    # Where a word may be divided, and was not.
    0xAD: None,
    0xFFFE: None,
    0xFEFF: None,
    **_BREAKS,
    ord("\n"): "\n",
    ord("\t"): "\t",
}
_WHITE: Final = re.compile(r"\s+")
_OPEN: Final = 1_000
"""Elements that may lack their end."""
_NOT_IN_NAMES = '<>:"|?*\\/'
_DEVICES = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)),
}
_LONGEST_EXTENSION = 12


def clean_text(text: str) -> str:
    """Line breaks as `\\n`, no other control characters, nothing that UTF-8 cannot hold."""
    text = text.replace("\r\n", "\n").translate(_CLEAN)
    return text.encode("utf-8", "replace").decode()


def clean_line(text: str, most: int) -> str:
    """The same on one line, cut to `most` characters."""
    return " ".join(clean_text(text[: 4 * most]).split())[:most]


def safe_filename(name: str | None, fallback: str) -> str:
    """The last segment of a name from outside, fit for any file system and for a page.

    Args:
        name: As it came; may be a path of some other machine, or a trick.
        fallback: Where nothing of it is left.
    """
    last = (name or "")[-4096:].replace("\\", "/").rpartition("/")[2]
    visible = (
        "_" if character in _NOT_IN_NAMES else character
        for character in unicodedata.normalize("NFC", clean_line(last, 1_000))
        # Marks that turn the direction of writing make `exe.pdf` of `fdp.exe`.
        if unicodedata.category(character) not in ("Cc", "Cf", "Co", "Cn", "Cs")
    )
    # What was left out may have stood between two blanks.
    safe = " ".join("".join(visible).split()).strip(" .")
    stem, dot, extension = safe.rpartition(".")
    if not dot or len(extension) > _LONGEST_EXTENSION:
        stem, dot, extension = safe, "", ""
    room = limits.FILENAME_BYTES - len(f"{dot}{extension}".encode())
    stem = stem.encode()[:room].decode(errors="ignore").rstrip(" .")
    if stem.casefold() in _DEVICES:
        stem = f"_{stem}"
    return f"{stem}{dot}{extension}" if stem else fallback


def as_utc(moment: datetime | None) -> datetime | None:
    """A moment of a file in UTC; a naive one is taken as UTC, one outside the calendar as None."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return None


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """What a reader of a page would see."""

    text: str
    """A line for each block."""
    title: str


class _Words(HTMLParser):
    """Collects what a reader would see."""

    _UNSEEN = frozenset({"script", "style"})
    _INLINE = frozenset(
        {"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn"}
        | {"em", "font", "i", "img", "input", "ins", "kbd", "label", "mark", "nobr", "q", "rb"}
        | {"rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup"}
        | {"time", "tspan", "tt", "u", "var", "wbr"}
    )
    """Elements within a line; those of programs have a colon in their names."""
    _CELLS = frozenset({"td", "th"})
    _NO_WORDS = frozenset({"hidden", "password", "checkbox", "radio"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.title: list[str] = []
        self._unseen = 0
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # A title that is not closed ends where the page begins.
        # Those within pictures are words like others.
        self._in_title = tag == "title" and not self.title
        if tag in self._UNSEEN:
            self._unseen += 1
        elif tag in self._CELLS:
            self.pieces.append("\t")
        elif self._is_block(tag):
            self.pieces.append("\n")
        if words := self._words_of(tag, dict(attrs)):
            self.pieces.append(f" {_WHITE.sub(' ', words)} ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._UNSEEN:
            self._unseen = max(self._unseen - 1, 0)
        elif tag == "title":
            self._in_title = False
        elif tag not in self._CELLS and self._is_block(tag):
            self.pieces.append("\n")

    def _is_block(self, tag: str) -> bool:
        return tag not in self._INLINE and ":" not in tag

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._unseen:
            self.pieces.append(_WHITE.sub(" ", data))

    def _words_of(self, tag: str, attributes: dict[str, str | None]) -> str | None:
        """What stands in the place of a picture, in the fields of a form, and in a frame."""
        if tag == "img":
            return attributes.get("alt")
        if page := attributes.get("srcdoc"):
            return html_text(page)
        is_field = tag == "input" and attributes.get("type") not in self._NO_WORDS
        return attributes.get("value") if is_field else None


def html_page(html: str) -> HtmlPage:
    """Text and title of an HTML page; all of it is text if it opens far more than it closes."""
    words = _Words()
    if html.count("<") > _OPEN + 2 * html.count(">"):
        # The library looks for the end of each, all through the page.
        words.handle_data(html)
    else:
        words.feed(html)
        words.close()
    lines = (line.strip() for line in "".join(words.pieces).splitlines())
    return HtmlPage("\n".join(line for line in lines if line), "".join(words.title))


def html_text(html: str) -> str:
    """What a reader of an HTML page would see, a line for each block."""
    return html_page(html).text

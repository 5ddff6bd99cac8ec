"""Plain text, and pages of HTML."""

from pathlib import Path

from adapters.files import limits
from adapters.files.encodings import encoding_of, find_encoding, is_nearly_utf_8, page_encoding
from adapters.files.texts.findings import Findings
from adapters.files.texts.html import html_page
from adapters.ports import UnreadableDocument


def read_plain(path: Path, into: Findings) -> None:
    """Read a text in whatever encoding it is in; bytes that mean nothing in it become U+FFFD.

    Raises:
        UnreadableDocument: It is not text.
    """
    encoding = _encoding(path, into)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        while not into.is_cut_off and (piece := file.read(limits.TEXT_BLOCK_CHARACTERS)):
            into.add_text(piece)


def read_page(path: Path, into: Findings) -> None:
    """Read what a reader of an HTML page would see.

    Raises:
        UnreadableDocument: It is not text.
    """
    encoding = _encoding(path, into)
    with path.open("rb") as file:
        content = file.read(limits.TEXT_BYTES)
        if file.read(1):
            into.cut_off("only the beginning of the page was read")
    if not encoding.startswith("utf") and (declared := page_encoding(content)):
        encoding, _ = encoding_of(content, declared)
    page = html_page(content.decode(encoding, "replace"))
    into.title = page.title
    into.add_text(page.text)


def _encoding(path: Path, into: Findings) -> str:
    encoding = find_encoding(path)
    if encoding is None:
        raise UnreadableDocument("the document holds NUL characters, and is not text")
    if not encoding.startswith("utf"):
        with path.open("rb") as file:
            if is_nearly_utf_8(file.read(limits.TEXT_BYTES)):
                encoding = "utf-8"
                into.note(
                    "some bytes of the text are not UTF-8, as the rest is; they became U+FFFD"
                )
    into.describe("encoding", encoding)
    return encoding

"""Where the bytes of a document are, and which encoding a text file is in."""

import codecs
import io
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

import chardet

Content = Path | bytes
"""A file, or its bytes in memory, as those of a small text are."""
_BLOCK = 1 << 20
_SAMPLE = 1 << 16
FALLBACK = "cp1252"
"""What most office programs of the West write."""
_OF_OFFICES = ("cp1252", "cp1250")
_EVIDENCE = 0.08  # what detection reaches on a few words of another script
_LABELS = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "big5": "cp950",
}
"""What programs mean by the name of an encoding: the larger one that it grew to.

Source: Encoding Standard of WHATWG, 4.2.
"""
_FURTHER_NAMES = {
    **dict.fromkeys(("x-sjis", "ms_kanji", "windows-31j"), "cp932"),
    "iso-8859-8-i": "iso8859-8",
    "iso-8859-8-e": "iso8859-8",
    "iso-8859-6-i": "iso8859-6",
    "x-gbk": "gb18030",
    "cn-gb": "gb18030",
    "x-euc-jp": "euc_jp",
    "x-x-big5": "cp950",
    "unicode-1-1-utf-8": "utf-8",
    "utf8mb4": "utf-8",
    "unicode-1-1-utf-7": "utf-7",
    "ks_c_5601": "cp949",
    "x-windows-949": "cp949",
    "windows-950": "cp950",
    "dos-720": "cp720",
    **{f"x-mac-{name}": f"mac_{name}" for name in ("roman", "greek", "cyrillic", "turkish")},
    "x-mac-ce": "mac_latin2",
    "x-mac-icelandic": "mac_iceland",
    "dos-874": "cp874",
    "windows-874": "cp874",
    "x-user-defined": "cp1252",
}
"""Names that Python does not know."""
_CELLS = re.compile(rb"[\t\r\n,;]")
_SCRIPT = re.compile(rb"[\x80-\xff]{4}")
"""Accents stand alone between letters; words of another script are such bytes throughout."""
_OF_ARCHIVES = "cp437"
_OF_NAMES = ("cp932", "gb18030", "cp949", "big5", "cp866", "windows-1251")
_UPPER = bytes(range(128, 256))
_CONTROLS = re.compile("[\x80-\x84\x86-\x9f]")
_DAMAGED = 0.05
"""Part of the letters beyond ASCII that may be damaged in a text whose encoding is named."""
_SHIFT = b"\x1b$"
_JAPANESE = "iso2022_jp_ext"
_IN_PAGE = re.compile(
    rb"<meta\b[^>]{0,500}?\bcharset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE
)
_PAGE_HEAD = 4096
"""Bytes in which a page says its encoding; standards ask for the first 1,024."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def load() -> None:
    """Load what guessing needs, once, before processes are forked that guess."""
    chardet.detect(b"\xfc\xe4")


def find_encoding(content: Content) -> str | None:
    """Find a text's encoding: byte order mark, UTF-8 if all of it is valid, else a guess.

    Args:
        content: The text.

    Returns:
        Name of an encoding; cp1252 where nothing speaks for another. None: the file holds NUL
        characters and is not text in UTF-16 either.
    """
    with opened(content) as file:
        sample = file.read(_SAMPLE)
    return _found(sample, lambda encoding: _decodes(content, encoding), lambda: _telling(content))


def encoding_of(content: bytes, declared: str | None) -> tuple[str, bool]:
    """The encoding of a text that names one itself, which need not be true.

    Args:
        content: The text.
        declared: What it names; None: nothing.

    Returns:
        Name of an encoding, and whether it is the one that was meant. What is declared counts where
        all of the text is valid in it; UTF-8 and a guess come after it. UTF-8 comes before code
        pages of eight bits, in which any bytes are valid.
    """
    meant = _known(declared) if declared else None
    is_valid = partial(_is_valid, content)
    if _SHIFT in content and meant in (None, "cp1252"):
        # Seven bits with shifts between alphabets, which are valid as anything.
        return (_JAPANESE, not declared) if is_valid(_JAPANESE) else (meant or FALLBACK, False)
    if content.isascii() and meant in (None, "cp1252"):
        return "utf-8", meant is not None or not declared
    if not content.isascii() and _may_be_utf_8(meant) and is_valid("utf-8"):
        return "utf-8", not declared
    if meant is not None and _is_text(content, meant):
        return meant, True
    if meant is not None and _is_damaged(content, meant):
        return meant, False
    found = _found(content[:_SAMPLE], is_valid, lambda: _telling(content))
    return found or FALLBACK, not declared


def is_nearly_utf_8(content: bytes) -> bool:
    """Whether a text is in UTF-8 but for a few damaged bytes."""
    return not content.isascii() and _is_damaged(content, "utf-8")


def name_encoding(names: bytes) -> str:
    """The encoding of names of files in an archive that does not say it.

    Programs write UTF-8, or the code page of their system; accents alone are those of DOS.
    """
    if _is_valid(names, "utf-8"):
        return "utf-8"
    if not _SCRIPT.search(names):
        return _OF_ARCHIVES
    name = chardet.detect(names, include_encodings=_OF_NAMES)["encoding"]
    return name.lower() if name and _is_encoding(name) and _is_valid(names, name) else _OF_ARCHIVES


def page_encoding(content: bytes) -> str | None:
    """The encoding that a page of HTML names in itself; None: it names none that is known."""
    found = _IN_PAGE.search(content[:_PAGE_HEAD])
    name = _known(found[1].decode("ascii", "replace")) if found else None
    # A page that was read so far is not in UTF-16, whatever it says.
    return "utf-8" if name and name.startswith(("utf-16", "utf-32")) else name


def label_of(name: str) -> str:
    """The name by which Python knows what programs mean by the name of an encoding."""
    return _known(name) or name


def _known(name: str) -> str | None:
    label = name.strip().lower()
    try:
        found = codecs.lookup(_FURTHER_NAMES.get(label, label)).name
        "".encode(found)
    except (LookupError, ValueError):
        return None
    return _LABELS.get(found, found)


def _telling(content: Content) -> bytes:
    """The first cells that hold more than ASCII: others say nothing about a code page."""
    cells: list[bytes] = []
    size = 0
    with opened(content) as file:
        while size < _SAMPLE and (line := file.readline(_SAMPLE)):
            if not line.isascii():
                found = [cell for cell in _CELLS.split(line) if not cell.isascii()]
                cells += found
                size += sum(map(len, found))
    return b"\n".join(cells)


def _found(
    sample: bytes, is_valid: Callable[[str], bool], telling: Callable[[], bytes]
) -> str | None:
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return encoding
    if unmarked := _unmarked_utf16(sample):
        return unmarked
    if b"\0" in sample:
        return None
    if _SHIFT in sample and is_valid(_JAPANESE):
        return _JAPANESE
    if is_valid("utf-8"):
        return "utf-8"
    other = telling()
    is_script = _SCRIPT.search(other) is not None
    guess = chardet.detect(other if is_script or sample.isascii() else sample)
    if not is_script and guess["confidence"] < _EVIDENCE and is_valid(FALLBACK):
        # A few accents fit dozens of code pages: stay with those of today's office programs.
        guess = chardet.detect(sample, include_encodings=_OF_OFFICES)
    name = guess["encoding"]
    return name.lower() if name and _is_encoding(name) and is_valid(name) else FALLBACK


def _unmarked_utf16(sample: bytes) -> str | None:
    """Latin text in UTF-16 has a zero in nearly every second byte."""
    half = len(sample) // 2
    if half and sample[1::2].count(0) > 0.7 * half and not sample[::2].count(0):
        return "utf-16-le"
    if half and sample[::2].count(0) > 0.7 * half and not sample[1::2].count(0):
        return "utf-16-be"
    return None


def _is_encoding(name: str) -> bool:
    try:
        codecs.lookup(name)
    except LookupError:
        return False
    return True


def _is_valid(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeError:
        return False
    return True


def _may_be_utf_8(meant: str | None) -> bool:
    """Whether nothing is meant, or an encoding in which each byte is a character."""
    return meant is None or (
        meant != "utf-8" and len(_UPPER.decode(meant, "replace")) == len(_UPPER)
    )


def _is_text(content: bytes, encoding: str) -> bool:
    """Whether a text is valid, and holds no control characters that no text holds."""
    try:
        return _CONTROLS.search(content.decode(encoding)) is None
    except UnicodeError:
        return False


def _is_damaged(content: bytes, encoding: str) -> bool:
    """Whether a text is in this encoding, and a few of its letters are not."""
    letters = [letter for letter in content.decode(encoding, "replace") if not letter.isascii()]
    return letters.count("\ufffd") <= _DAMAGED * len(letters)


def _decodes(content: Content, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with opened(content) as file:
            while block := file.read(_BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def opened(content: Content) -> BinaryIO:
    """The bytes from the first on."""
    return content.open("rb") if isinstance(content, Path) else io.BytesIO(content)

"""Which encoding a text file is in."""

import codecs
from pathlib import Path

import chardet

_BLOCK = 1 << 20
_SAMPLE = 1 << 16
_FALLBACK = "cp1252"
_OF_OFFICES = ("cp1252", "cp1250")
_EVIDENCE = 0.08  # what detection reaches on a few words of another script
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


def find_encoding(path: Path) -> str | None:
    """Find a text's encoding: byte order mark, UTF-8 if all of it is valid, else a guess.

    Args:
        path: The file.

    Returns:
        Name of an encoding; cp1252 where nothing speaks for another. None: the file holds NUL
        characters and is not text in UTF-16 either.
    """
    with path.open("rb") as file:
        sample = file.read(_SAMPLE)
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return encoding
    if unmarked := _unmarked_utf16(sample):
        return unmarked
    if b"\0" in sample:
        return None
    if _decodes(path, "utf-8"):
        return "utf-8"
    guess = chardet.detect(sample)
    if guess["confidence"] < _EVIDENCE and _decodes(path, _FALLBACK):
        # A few accents fit dozens of code pages: stay with those of today's office programs.
        guess = chardet.detect(sample, include_encodings=_OF_OFFICES)
    name = guess["encoding"]
    return name.lower() if name and _reads(path, name) else _FALLBACK


def _unmarked_utf16(sample: bytes) -> str | None:
    """Latin text in UTF-16 has a zero in nearly every second byte."""
    half = len(sample) // 2
    if half and sample[1::2].count(0) > 0.7 * half and not sample[::2].count(0):
        return "utf-16-le"
    if half and sample[::2].count(0) > 0.7 * half and not sample[1::2].count(0):
        return "utf-16-be"
    return None


def _reads(path: Path, encoding: str) -> bool:
    try:
        codecs.lookup(encoding)
    except LookupError:
        return False
    return _decodes(path, encoding)


def _decodes(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True

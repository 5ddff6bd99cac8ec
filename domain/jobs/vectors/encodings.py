"""Which encoding the attributes of a Shapefile are in."""

import codecs
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

_PAGES: Final = MappingProxyType(
    {
        "cp437": (0x01, 0x09, 0x0B, 0x0D, 0x0F, 0x11, 0x15, 0x18, 0x19, 0x1B),
        "cp737": (0x6A, 0x86),
        "cp850": (0x02, 0x0A, 0x0E, 0x10, 0x12, 0x14, 0x16, 0x1A, 0x1D, 0x25, 0x37),
        "cp852": (0x1F, 0x22, 0x23, 0x40, 0x64, 0x87),
        "cp857": (0x6B, 0x88),
        "cp860": (0x24,),
        "cp861": (0x67,),
        "cp863": (0x1C,),
        "cp865": (0x08, 0x17, 0x66),
        "cp866": (0x26, 0x65),
        "cp874": (0x50, 0x7C),
        "cp932": (0x13, 0x7B),
        "cp936": (0x4D, 0x7A),
        "cp949": (0x4E, 0x79),
        "cp950": (0x4F, 0x78),
        "cp1250": (0xC8,),
        "cp1251": (0xC9,),
        "cp1252": (0x03, 0x57, 0x58, 0x59),
        "cp1253": (0xCB,),
        "cp1254": (0xCA,),
        "cp1257": (0xCC,),
    }
)
_LANGUAGES: Final = MappingProxyType(
    {number: codec for codec, numbers in _PAGES.items() for number in numbers}
)
"""Language byte of a DBF header to its code page; the list that ESRI's programs go by."""
_PREFIX: Final = re.compile(r"^(ansi|oem|windows|win|cp|ibm|ldid)[ _/-]*(?=\d)")


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding, and what says so."""

    codec: str
    origin: str

    def __str__(self) -> str:
        return f"{self.codec} ({self.origin})"


class UnknownEncoding(Exception):
    """Something names an encoding that does not exist."""


def encoding_of(
    parameter: str | None, cpg: str | None, cst: str | None, language: int
) -> Encoding | None:
    """The encoding by the first of these that says one; None: none does.

    Args:
        parameter: Of the job.
        cpg: Text of the file `.cpg`, as ESRI's programs write it.
        cst: Text of the file `.cst`, as GeoServer and GeoTools write it.
        language: Byte 29 of the DBF header.

    Raises:
        UnknownEncoding: That one does not exist.
    """
    for text, origin in ((parameter, "parameter"), (cpg, ".cpg"), (cst, ".cst")):
        if text is not None and text.strip():
            return Encoding(_codec(text, origin), origin)
    codec = _LANGUAGES.get(language)
    return None if codec is None else Encoding(codec, f"language byte 0x{language:02x}")


def _codec(text: str, origin: str) -> str:
    name = text.strip().splitlines()[0].strip().lower()
    if found := re.fullmatch(r"(?:iso)?[ _-]*8859[ _-]?(\d{1,2})", name):
        name = f"iso8859-{found[1]}"
    elif name == "65001":
        name = "utf-8"
    elif name.startswith("ldid/") and name[5:].isdigit():
        name = _LANGUAGES.get(int(name[5:]), name)
    else:
        number = _PREFIX.sub("", name)
        name = f"cp{number}" if number.isdigit() else name
    try:
        found_codec = codecs.lookup(name)
        "x".encode(found_codec.name)
    except (LookupError, UnicodeError):
        raise UnknownEncoding(
            f"{origin} says {text.strip()[:50]!r}, which is not an encoding"
        ) from None
    return found_codec.name

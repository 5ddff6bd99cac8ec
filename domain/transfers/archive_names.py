"""Names of files in archives: relative paths that leave no folder and meet no other name."""

import re
import unicodedata
from typing import Final

from domain.errors import InvalidDocument

NAME_CHARACTERS: Final = 1_024
SEGMENT_BYTES: Final = 255
_DRIVE: Final = re.compile(r"^[A-Za-z]:")
_SHOWN: Final = 120


class ArchiveNames:
    """The names of one archive.

    Args:
        encoding: Of names that are not marked as UTF-8.
        flatten: Folders are dropped from names.
    """

    def __init__(self, encoding: str = "utf-8", *, flatten: bool = False) -> None:
        self._encoding = encoding
        self._flatten = flatten
        self._seen: dict[str, str] = {}

    def taken(self, raw: bytes, *, is_utf8: bool = False) -> str:
        """The name under which a file is taken out.

        Args:
            raw: As it stands in the archive.
            is_utf8: The archive says that it is UTF-8.

        Raises:
            InvalidDocument: It leads elsewhere, cannot be a name, or there is one like it.
        """
        name = self._relative(self._text(raw, is_utf8=is_utf8))
        if self._flatten:
            name = name.rpartition("/")[2]
        # Endpoints ignore case or compose accents: one of the two would replace the other.
        key = unicodedata.normalize("NFC", name).casefold()
        other = self._seen.get(key)
        if other is not None:
            how = "twice" if other == name else f"and {_shown(other)}, which elsewhere are one file"
            raise InvalidDocument(f"it holds {_shown(name)} {how}")
        self._seen[key] = name
        return name

    def _text(self, raw: bytes, *, is_utf8: bool) -> str:
        encoding = "utf-8" if is_utf8 else self._encoding
        try:
            return raw.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            raise InvalidDocument(
                f"the name {raw[:_SHOWN]!r} is not {encoding}: set the encoding of its names "
                "(NameEncoding), as cp437 or cp1252"
            ) from None

    def _relative(self, name: str) -> str:
        if any(ord(each) < 32 or 127 <= ord(each) < 160 for each in name):
            raise InvalidDocument(f"the name {_shown(name)} holds control characters")
        path = name.replace("\\", "/")
        if path.startswith("/") or _DRIVE.match(path):
            raise InvalidDocument(f"the name {_shown(name)} is an absolute path")
        segments = [segment for segment in path.split("/") if segment not in ("", ".")]
        if ".." in segments:
            raise InvalidDocument(f"the name {_shown(name)} leads out of its folder")
        if not segments:
            raise InvalidDocument("a file in it has no name")
        joined = "/".join(segments)
        if len(joined) > NAME_CHARACTERS or any(
            len(segment.encode()) > SEGMENT_BYTES for segment in segments
        ):
            raise InvalidDocument(f"the name {_shown(name)} is too long")
        return joined


def _shown(name: str) -> str:
    cut = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
    return ascii(cut)

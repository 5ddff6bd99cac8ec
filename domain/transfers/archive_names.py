"""Names of files in archives: relative paths that leave no folder and meet no other name."""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

from domain.errors import InvalidDocument

UTF8: Final = "utf-8"
DOS: Final = "cp437"
NAME_CHARACTERS: Final = 1_024
SEGMENT_BYTES: Final = 255
_DRIVE: Final = re.compile(r"^[A-Za-z]:")
_SHOWN: Final = 120


class ArchiveNames:
    """The names of one archive.

    Args:
        encoding: Of names that are not marked as UTF-8.
        flatten: Folders are dropped from names.

    Attributes:
        guessed: The encoding that was found for names that are in none that is stated.
    """

    def __init__(self, encoding: str = UTF8, *, flatten: bool = False) -> None:
        self._encoding = encoding
        self.guessed: str | None = None
        self._flatten = flatten
        self._seen: dict[str, str] = {}

    def guess(self, raw: bytes, find: Callable[[bytes], str]) -> None:
        """Find the encoding of names that are not UTF-8, unless one is set.

        Args:
            raw: All names that are not marked as UTF-8, a line each.
            find: Finds their encoding.
        """
        if self._encoding != UTF8 or raw.isascii() or (found := find(raw)) == UTF8:
            return
        if found != DOS or _has_accents_alone(raw.decode(DOS)):
            self._encoding = self.guessed = found

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
        encoding = UTF8 if is_utf8 else self._encoding
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


def _has_accents_alone(names: str) -> bool:
    """Whether names are words with a few accents: those of DOS, as ZIP programs write them.

    In other code pages the same bytes are signs, or most of a word.
    """
    stems = (name.rpartition(".")[0] or name for name in names.split("\n"))
    letters = [each for stem in stems for each in stem if each.isalpha() or not each.isascii()]
    accents = [each for each in letters if not each.isascii()]
    is_latin = all(unicodedata.name(each, "").startswith("LATIN ") for each in accents)
    return is_latin and 2 * len(accents) < len(letters)


def _shown(name: str) -> str:
    cut = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
    return ascii(cut)

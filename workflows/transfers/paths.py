"""Paths at endpoints and names in archives: which are safe, and what a pattern means."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from typing import Final

from workflows.shared.errors import InvalidDocument

SEGMENT_BYTES: Final = 255
"""Of one name, in UTF-8; file systems hold no longer ones."""
PATH_BYTES: Final = 1_024
TEMPORARY_PREFIX: Final = ".docflow-"
"""Begins the names of files that are being written, and of those of a probe."""
UNFINISHED: Final = (".part", ".filepart", ".partial", ".tmp")
"""End the names of files that a sender still writes, and renames afterwards."""
NUMBERS: Final = 1_000
"""Numbers that are tried for a name that is taken."""

_WILDCARD: Final = re.compile(r"[*?\[]")
_CASED: Final = re.compile(r"\[!?\]?[^\]]*\]|\w")
"""Letters of a pattern, and its sets of characters, which stay as they are."""
_ESCAPED: Final = re.compile(r"\[([*?\[])\]")


def path_problem(path: str) -> str | None:
    """Why a path cannot be used at any endpoint; None: it can.

    Segments are joined by `/`. A path never begins with one, and no segment is empty, `.` or `..`.
    """
    shown = printable(path)
    if not path:
        return "the path is empty"
    if path.startswith("/"):
        return f"{shown} is an absolute path; paths begin at the partner's root"
    if any(_is_control(character) for character in path):
        return f"{shown} holds a control character"
    if "\\" in path:
        return f"{shown} holds a backslash; folders are separated by `/`"
    segments = path.split("/")
    if ".." in segments:
        return f"{shown} would leave its folder by `..`"
    if any(segment in ("", ".") for segment in segments):
        return f"{shown} has an empty segment or `.`"
    try:
        longest = max(len(segment.encode()) for segment in segments)
        length = len(path.encode())
    except UnicodeEncodeError:
        return f"{shown} is not valid Unicode"
    if longest > SEGMENT_BYTES:
        return f"{shown} has a name of {longest} bytes; {SEGMENT_BYTES} are possible"
    if length > PATH_BYTES:
        return f"{shown} has {length} bytes; {PATH_BYTES} are possible"
    return None


def printable(path: str) -> str:
    """A path for a sentence: quoted, shortened, without what a terminal would obey."""
    return ascii(path if len(path) <= 120 else f"{path[:100]}...")


def has_wildcards(path: str) -> bool:
    """Whether a path is a pattern."""
    return _WILDCARD.search(path) is not None


def escaped(name: str) -> str:
    """A text in which wildcards stand for themselves, as part of a pattern."""
    return _WILDCARD.sub(lambda found: f"[{found[0]}]", name)


def literal(pattern: str) -> str | None:
    """The one path that a pattern means whose wildcards are all escaped; None: it has others."""
    path = _ESCAPED.sub(lambda found: found[1], pattern)
    return None if has_wildcards(_ESCAPED.sub("", pattern)) else path


def split(path: str) -> tuple[str, str]:
    """Folder and last segment; the folder of the root is empty."""
    folder, _, name = path.rpartition("/")
    return folder, name


def join(folder: str, name: str) -> str:
    """The path of a name in a folder."""
    return f"{folder}/{name}" if folder else name


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern cannot be used; None: it can. Wildcards stand in the last segment only."""
    folder, _ = split(pattern)
    if has_wildcards(folder):
        return f"{printable(pattern)} has a wildcard in a folder; only the last segment may"
    return path_problem(pattern)


def matcher(name: str) -> re.Pattern[str]:
    """What the last segment of a pattern matches; upper and lower case differ.

    Names that begin with a dot are matched by patterns that begin with one only, so that no
    pattern takes a file that is being written.
    """
    hidden = "" if name.startswith(".") else r"(?!\.)"
    return re.compile(f"{hidden}{translate(name)}", re.DOTALL)


def widen_pattern(pattern: str) -> str:
    """A pattern that also takes other cases, and accents that are encoded otherwise.

    It takes more than that, which `divided` leaves out. A name without wildcards is a pattern then;
    one that would be too long stays.
    """
    folder, name = split(pattern)
    wide = _CASED.sub(_any_form, _composed(name))
    found = join(folder, re.sub(r"\*+", "*", wide))
    return found if pattern_problem(found) is None else pattern


def _any_form(found: re.Match[str]) -> str:
    letter = found[0]
    if _has_forms(letter):
        return "*"
    either = letter.lower() + letter.upper()
    return f"[{either}]" if len(letter) == 1 and len(set(either)) == 2 else letter


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _has_forms(text: str) -> bool:
    """Whether Unicode has several encodings of it: composed (NFC) and decomposed (NFD)."""
    return not (unicodedata.is_normalized("NFD", text) and unicodedata.is_normalized("NFC", text))


def split_matches(pattern: str, paths: Iterable[str]) -> tuple[list[str], list[str], list[str]]:
    """What a pattern names, what it nearly names, and what a sender still writes.

    Args:
        pattern: Its own suffix is never one of a file that is still written.
        paths: What `widened` of it names; what has another name altogether is left out.
    """
    wanted = split(pattern)[1]
    match, nearly = _match_of(wanted), _match_of(_composed(wanted).casefold())
    named: list[str] = []
    missed: list[str] = []
    unfinished: list[str] = []
    suffixes = tuple(each for each in UNFINISHED if not pattern.lower().endswith(each))
    for path in paths:
        name = split(path)[1]
        if match(name):
            is_unfinished = has_wildcards(pattern) and path.lower().endswith(suffixes)
            (unfinished if is_unfinished else named).append(path)
        elif nearly(_composed(name).casefold()):
            missed.append(path)
    return named, missed, unfinished


def _match_of(name: str) -> Callable[[str], object]:
    return matcher(name).match if has_wildcards(name) else name.__eq__


def nearly_named(pattern: str, missed: Sequence[str]) -> list[str]:
    """Sentences where a pattern would name more files if case or encodings did not count."""
    same_letters = _match_of(split(pattern)[1].casefold())
    by_case = [path for path in missed if same_letters(split(path)[1].casefold())]
    by_form = [path for path in missed if not same_letters(split(path)[1].casefold())]
    found = {
        "upper and lower case alone": by_case,
        "how accents are encoded (NFC or NFD of Unicode)": by_form,
    }
    return [
        f"{printable(paths[0])}{f' and {len(paths) - 1:,} others' if len(paths) > 1 else ''}: left "
        f"out, differs from {printable(pattern)} in {how}"
        for how, paths in found.items()
        if paths
    ]


def numbered(path: str, number: int) -> str:
    """The path with a number before its suffix: `folder/report-2.csv`."""
    folder, name = split(path)
    stem, dot, suffix = name.partition(".") if not name.startswith(".") else (name, "", "")
    ending = f"-{number}{dot}{suffix}"
    room = SEGMENT_BYTES - len(ending.encode())
    return join(folder, stem.encode()[: max(room, 1)].decode(errors="ignore") + ending)


def temporary(path: str, owner: str) -> str:
    """Where a file is written before it gets its name: beside it, the same for the same owner."""
    folder, _ = split(path)
    digest = hashlib.sha256(f"{owner}\0{path}".encode()).hexdigest()
    return join(folder, f"{TEMPORARY_PREFIX}{digest[:24]}.part")


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f" or character in "\u2028\u2029"


UTF8: Final = "utf-8"
DOS: Final = "cp437"
NAME_CHARACTERS: Final = 1_024
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

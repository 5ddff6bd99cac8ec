"""Whether two records of a person are about the same one: never guessed, asked where unclear."""

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum, StrEnum
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Final

from domain.spreadsheets.fields import SheetField, written
from domain.tabular.fields import ColumnKind, normalise

PERSONS_TABLE: Final = "persons"
PEOPLE: Final = "people"
"""Kind of the rows that answers about people refer to."""
PERSON: Final = SheetField(
    "PERSON",
    "Person",
    f"{PERSONS_TABLE}.person_key",
    ColumnKind.ENTITY,
    resolver=PEOPLE,
    creates=True,
)
"""Who a row is about. No column means it: its values are questions about people."""
IDENTITY: Final = "IDENTITY"
"""Name of what distinguishes the people of rows, among their converted columns."""
FILE_ROWS: Final = 2**52
"""Added to its line, a row of the file is a candidate among people."""
_TEXT_CHARACTERS: Final = 180
_SAME_SOUND: Final = (("ae", "a"), ("oe", "o"), ("ue", "u"), ("ss", "s"))


class QuestionKind(StrEnum):
    """What makes it unclear whether two records are about one person."""

    MAIL_MISSING = "MAIL_MISSING"
    MAIL_DIFFERS = "MAIL_DIFFERS"
    BIRTHDATE_MISSING = "BIRTHDATE_MISSING"
    BIRTHDATE_DIFFERS = "BIRTHDATE_DIFFERS"
    NAME_ALONE = "NAME_ALONE"
    SPELLING = "SPELLING"
    LAST_NAME_DIFFERS = "LAST_NAME_DIFFERS"
    SEVERAL = "SEVERAL"


REASONS: Final = MappingProxyType(
    {
        QuestionKind.MAIL_MISSING: "the same name, and one of the two has no mail address",
        QuestionKind.MAIL_DIFFERS: "the same name, and another mail address",
        QuestionKind.BIRTHDATE_MISSING: "the same name, and one of the two has no date of birth",
        QuestionKind.BIRTHDATE_DIFFERS: "the same name, and another date of birth",
        QuestionKind.NAME_ALONE: "the same name, and neither has a mail address or a date of birth",
        QuestionKind.SPELLING: "the names differ only in accents, case or an initial",
        QuestionKind.LAST_NAME_DIFFERS: (
            "the same mail address and first name, and another last name"
        ),
        QuestionKind.SEVERAL: "several people fit equally well",
    }
)
SCORES: Final = MappingProxyType(
    {
        QuestionKind.SPELLING: 0.9,
        QuestionKind.MAIL_MISSING: 0.8,
        QuestionKind.BIRTHDATE_MISSING: 0.8,
        QuestionKind.MAIL_DIFFERS: 0.7,
        QuestionKind.SEVERAL: 0.5,
        QuestionKind.NAME_ALONE: 0.5,
        QuestionKind.LAST_NAME_DIFFERS: 0.5,
        QuestionKind.BIRTHDATE_DIFFERS: 0.4,
    }
)
"""How likely the two are one person; orders candidates."""


class Certain(Enum):
    """Relations of two records that need no question."""

    SAME = "same"
    OTHER = "other"


Relation = Certain | QuestionKind


@dataclass(frozen=True)
class Identity:
    """What distinguishes a person from others.

    Attributes:
        last: Last name, in composed characters and with single spaces.
        first: First name, likewise.
        mail: Mail address in lower case; None: unknown.
        born: Date of birth; None: unknown.
    """

    last: str
    first: str
    mail: str | None = None
    born: date | None = None

    @cached_property
    def key(self) -> str:
        """Key of a person that nothing is known about before."""
        day = self.born.isoformat() if self.born else ""
        return f"{self.last}|{self.first}|{day}|{self.mail or ''}"

    @cached_property
    def name_key(self) -> str:
        """Equal for every two names that may be spellings of one."""
        return f"{_sound(self.last)}|{_sound(self.first)[:1]}"

    @cached_property
    def mail_key(self) -> str | None:
        """Equal for people of one mail address and first name, whatever their last names."""
        return None if self.mail is None else f"{self.mail}|{_sound(self.first).partition(' ')[0]}"

    @cached_property
    def text(self) -> str:
        """As people see it."""
        name = f"{self.first} {self.last}"
        day = self.born.isoformat() if self.born else None
        return ", ".join(filter(None, (name, self.mail, day)))[:_TEXT_CHARACTERS]


@dataclass(frozen=True, slots=True)
class KnownPerson:
    """A person that is in the database."""

    id: int
    key: str
    identity: Identity
    bibs: tuple[str, ...] = ()
    """Those of the query that are the person's."""


@dataclass(frozen=True, slots=True)
class PeopleQuery:
    """What known people are looked up by: a person who fits any of these is found.

    Attributes:
        name_keys: See `Identity`.
        mail_keys: See `Identity`.
        keys: See `Identity`.
        bibs: Bibs of rows; who has one in `bibs_of` is found.
        bibs_of: Table with bibs, and id of the event or race in it.
    """

    name_keys: Sequence[str] = ()
    mail_keys: Sequence[str] = ()
    keys: Sequence[str] = ()
    bibs: Sequence[str] = ()
    bibs_of: tuple[str, int] | None = None


def identity_of(
    last: str | None, first: str | None, mail: str | None, born: Any
) -> Identity | None:
    """What distinguishes a person; None without a name."""
    if not last and not first:
        return None
    return Identity(
        _composed(last or ""), _composed(first or ""), mail.strip().lower() if mail else None, born
    )


def digest_of(question: str) -> str:
    """What a question about a person is remembered by; the name is not kept."""
    return hashlib.sha256(question.encode()).hexdigest()


def compare(one: Identity, other: Identity) -> Relation:
    """Whether two records are about the same person, as far as that is certain.

    The same mail address and another first name are two people: families share addresses.
    """
    mail, born = _evidence(one.mail, other.mail), _evidence(one.born, other.born)
    if (one.last, one.first) == (other.last, other.first):
        return _of_one_name(mail, born)
    if not _first_names_fit(one.first, other.first):
        return Certain.OTHER
    if _spellings(one.last).isdisjoint(_spellings(other.last)):
        unclear = mail is _Evidence.EQUAL and born is not _Evidence.DIFFERENT
        return QuestionKind.LAST_NAME_DIFFERS if unclear else Certain.OTHER
    relation = _of_one_name(mail, born)
    if relation is Certain.OTHER or _Evidence.DIFFERENT in (mail, born):
        return relation
    return QuestionKind.SPELLING


class _Evidence(Enum):
    EQUAL = "equal"
    DIFFERENT = "different"
    MISSING = "missing on one side"
    UNKNOWN = "missing on both"


def _evidence(one: object, other: object) -> _Evidence:
    if one is None or other is None:
        return _Evidence.UNKNOWN if one is other else _Evidence.MISSING
    return _Evidence.EQUAL if one == other else _Evidence.DIFFERENT


def _of_one_name(mail: _Evidence, born: _Evidence) -> Relation:
    match (mail, born):
        case (_Evidence.EQUAL, _Evidence.EQUAL | _Evidence.UNKNOWN) | (
            _Evidence.UNKNOWN,
            _Evidence.EQUAL,
        ):
            return Certain.SAME
        case (_Evidence.DIFFERENT, _Evidence.DIFFERENT | _Evidence.UNKNOWN) | (
            _Evidence.UNKNOWN,
            _Evidence.DIFFERENT,
        ):
            return Certain.OTHER
        case (_, _Evidence.DIFFERENT):
            return QuestionKind.BIRTHDATE_DIFFERS
        case (_Evidence.DIFFERENT, _):
            return QuestionKind.MAIL_DIFFERS
        case (_Evidence.MISSING, _):
            return QuestionKind.MAIL_MISSING
        case (_, _Evidence.MISSING):
            return QuestionKind.BIRTHDATE_MISSING
        case _:
            return QuestionKind.NAME_ALONE


def _first_names_fit(one: str, other: str) -> bool:
    return any(_words_fit(a.split(), b.split()) for a in _spellings(one) for b in _spellings(other))


def _words_fit(one: Sequence[str], other: Sequence[str]) -> bool:
    """Word for word the same, where an initial stands for its word or may be missing."""
    if not one or not other or not _word_fits(one[0], other[0]):
        return one == other
    a, b = list(one[1:]), list(other[1:])
    while a and b:
        if _word_fits(a[0], b[0]):
            a.pop(0)
            b.pop(0)
        elif _is_initial(a[0]):
            a.pop(0)
        elif _is_initial(b[0]):
            b.pop(0)
        else:
            return False
    return all(map(_is_initial, (*a, *b)))


def _word_fits(one: str, other: str) -> bool:
    is_short = _is_initial(one) or _is_initial(other)
    return one == other or (is_short and one[0] == other[0])


def _is_initial(word: str) -> bool:
    return len(word) == 1 and word.isalpha()


@lru_cache(maxsize=20_000)
def _composed(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


@lru_cache(maxsize=20_000)
def _spellings(name: str) -> frozenset[str]:
    return frozenset(_plain(form) for form in written(name))


@lru_cache(maxsize=20_000)
def _sound(name: str) -> str:
    plain = _plain(name)
    for long, short in _SAME_SOUND:
        plain = plain.replace(long, short)
    return plain


def _plain(name: str) -> str:
    return normalise(name) or name.casefold()

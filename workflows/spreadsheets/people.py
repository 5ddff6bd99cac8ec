"""Which person a row is about: never guessed, asked where unclear."""

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import Enum, StrEnum
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from workflows.shared.cells import same_as
from workflows.shared.fields import ColumnKind, FieldSpec, normalise, written
from workflows.spreadsheets.fields import FoundValue
from workflows.spreadsheets.mappings import CellMapping, MappingStatus

PERSONS_TABLE: Final = "persons"
PEOPLE: Final = "people"
"""Kind of the rows that answers about people refer to."""
PERSON: Final = FieldSpec(
    "PERSON",
    ColumnKind.ENTITY,
    title="Person",
    target=f"{PERSONS_TABLE}.person_key",
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


LEFT_OUT: Final = "left out: a person chose not to import this row"
REMEMBERED: Final = 0.9
_ALTERNATIVES: Final = 3


class MetPerson(NamedTuple):
    """A row of the file that came before."""

    line: int
    identity: Identity
    key: str
    """Of its person; for a row that waits for an answer a key that no person has."""


class PeopleOfFile(Protocol):
    """The people of the rows so far, by what they may be met again by."""

    def number(self, texts: Sequence[str], lines: Sequence[int]) -> Sequence[int]:
        """Which occurrence of a text each of the next rows is, from 1."""
        ...

    def earlier(self, blocks: Sequence[str]) -> Sequence[tuple[str, MetPerson]]:
        """Rows that came before, each with the block that it was found by."""
        ...

    def add(self, people: Sequence[tuple[str, MetPerson]]) -> None:
        """Take the next rows, each under its blocks."""
        ...

    def close(self) -> None:
        """Release what they occupy."""
        ...


@dataclass(frozen=True, slots=True)
class PeopleAnswers:
    """What is decided about people.

    Attributes:
        decided: Question to what was answered.
        keys: Id of a person that was chosen to its key; one that is missing was deleted since.
        remembered: Digest of a question to what people answered in earlier imports: id of a
            person, and whether it is the same.
        import_uuid: Makes keys of people who are others than those with the same data.
        bibs: Question about a bib to what was answered.
    """

    import_uuid: str = ""
    decided: Mapping[str, CellMapping] = field(default_factory=dict[str, CellMapping])
    keys: Mapping[int, str] = field(default_factory=dict[int, str])
    remembered: Mapping[str, Mapping[int, bool]] = field(
        default_factory=dict[str, Mapping[int, bool]]
    )
    bibs: Mapping[str, CellMapping] = field(default_factory=dict[str, CellMapping])

    def chosen(self) -> set[int]:
        """Ids of the people that were chosen."""
        ids = {each.target_id for each in self.decided.values() if each.target_id is not None}
        return {id for id in ids if id < FILE_ROWS}


@dataclass(slots=True)
class Resolved:
    """The person of one row.

    Attributes:
        key: Key of the person; None: the row waits for an answer.
        question: Text of the question about it, if there is one.
        left_out: A person decided to leave the row out.
        problem: Why the answer cannot be applied.
    """

    key: str | None = None
    question: str | None = None
    left_out: bool = False
    problem: str | None = None


class _Candidate(NamedTuple):
    kind: QuestionKind
    id: int
    """Of the person, or `FILE_ROWS` + line of a row of the file."""
    key: str
    name: str


def decided(question: FieldSpec, mappings: Iterable[CellMapping]) -> dict[str, CellMapping]:
    """Answers to questions about rows, such as `PERSON`, among all values of an import."""
    return {
        each.value: each
        for each in mappings
        if each.field == question.name and each.status is not MappingStatus.UNMATCHED
    }


class PeopleMatcher:
    """Resolves the people of one file, part by part, in order.

    Args:
        answers: What is decided about people.
        file: The rows before; None: the rows are resolved without them.
    """

    def __init__(self, answers: PeopleAnswers, file: PeopleOfFile | None) -> None:
        self._answers = answers
        self._file = file
        self._found: list[FoundValue] = []

    def query(self, identities: Sequence[Identity | None]) -> PeopleQuery:
        """What to look up in the database before these rows are resolved."""
        there = [each for each in identities if each is not None]
        return PeopleQuery(
            sorted({each.name_key for each in there}),
            sorted({key for each in there if (key := each.mail_key) is not None}),
            sorted({each.key for each in there}),
        )

    def resolve(
        self,
        identities: Sequence[Identity | None],
        lines: Sequence[int],
        counts: Sequence[bool],
        known: Sequence[KnownPerson],
        *,
        counted: bool = False,
    ) -> Sequence[Resolved | None]:
        """Take the next rows.

        Args:
            identities: Of each row; None: it has none that can be read.
            lines: Of each row.
            counts: Whether the row goes in; of one with a problem nothing is asked.
            known: What the query found.
            counted: The rows were taken before a restart: what was asked then is not asked again.

        Returns:
            For each row that goes in its person.
        """
        texts = self._questions(identities, lines)
        people = _Index(known)
        met = self._earlier(identities)
        added: list[tuple[str, MetPerson]] = []
        resolved: list[Resolved | None] = []
        for identity, line, text, counting in zip(identities, lines, texts, counts, strict=True):
            if identity is None or not counting:
                resolved.append(None)
                continue
            blocks = _blocks(identity)
            before = list(dict.fromkeys(each for block in blocks for each in met[block]))
            one = self._one(identity, line, text, before, people, counted=counted)
            resolved.append(one)
            if not one.left_out and one.problem is None:
                person = MetPerson(line, identity, one.key or f"?{line}")
                for block in blocks:
                    met[block].append(person)
                    added.append((block, person))
        if self._file is not None:
            self._file.add(added)
        return resolved

    def parked(
        self, identity: Identity, line: int, question: str | None, key: str | None
    ) -> Resolved | None:
        """The person of a row that was parked; None: it was not resolved by then."""
        if key is not None:
            return Resolved(key)
        if question is None:
            return None
        answer = self._answers.decided.get(question)
        if answer is None:
            return Resolved(None, question)
        return self._answered(answer, identity, line, question, None)

    def take_found(self) -> list[FoundValue]:
        """Questions about people since this was asked last."""
        taken, self._found = self._found, []
        return taken

    def _questions(
        self, identities: Sequence[Identity | None], lines: Sequence[int]
    ) -> Sequence[str]:
        texts = ["" if each is None else each.text for each in identities]
        if self._file is None:
            return texts
        places = [place for place, text in enumerate(texts) if text]
        numbers = self._file.number([texts[n] for n in places], [lines[n] for n in places])
        for place, number in zip(places, numbers, strict=True):
            if number > 1:
                texts[place] += f" ({number})"
        return texts

    def _earlier(self, identities: Sequence[Identity | None]) -> dict[str, list[MetPerson]]:
        met: dict[str, list[MetPerson]] = defaultdict(list)
        if self._file is not None:
            blocks = {block for each in identities if each is not None for block in _blocks(each)}
            for block, person in self._file.earlier(sorted(blocks)):
                met[block].append(person)
        return met

    def _one(
        self,
        identity: Identity,
        line: int,
        text: str,
        before: Sequence[MetPerson],
        people: "_Index",
        *,
        counted: bool,
    ) -> Resolved:
        related = [(compare(identity, each.identity), each) for each in before]
        same = next((each for relation, each in related if relation is Certain.SAME), None)
        if same is not None:
            return Resolved(same.key)
        if (answer := self._answers.decided.get(text)) is not None:
            return self._answered(answer, identity, line, text, before)
        known = [(compare(identity, each.identity), each) for each in people.near(identity)]
        certain = [each for relation, each in known if relation is Certain.SAME]
        if len(certain) == 1:
            return Resolved(certain[0].key)
        taken = {each.key for each in before}
        candidates = [
            *(
                _Candidate(QuestionKind.SEVERAL, each.id, each.key, each.identity.text)
                for each in certain
            ),
            *(
                _Candidate(relation, each.id, each.key, each.identity.text)
                for relation, each in known
                if isinstance(relation, QuestionKind) and each.key not in taken
            ),
            *(
                _Candidate(
                    relation,
                    FILE_ROWS + each.line,
                    each.key,
                    f"row {each.line}: {each.identity.text}",
                )
                for relation, each in related
                if isinstance(relation, QuestionKind)
            ),
        ]
        if counted:
            return Resolved(identity.key)
        return self._decide(identity, line, text, candidates, people)

    def _decide(
        self,
        identity: Identity,
        line: int,
        text: str,
        candidates: Sequence[_Candidate],
        people: "_Index",
    ) -> Resolved:
        memory: Mapping[int, bool] = {}
        if candidates:
            memory = self._answers.remembered.get(digest_of(text), memory)
        same = next((each for each in candidates if memory.get(each.id)), None)
        if same is not None:
            self._note(text, same, candidates)
            return Resolved(same.key, text)
        left = [each for each in candidates if memory.get(each.id) is not False]
        if left:
            self._ask(text, left)
            return Resolved(None, text)
        if candidates:
            self._note(text, None, candidates)
            return Resolved(self._own_key(identity, line), text)
        if identity.key in people.keys:
            return Resolved(self._own_key(identity, line))
        return Resolved(identity.key)

    def _answered(
        self,
        answer: CellMapping,
        identity: Identity,
        line: int,
        text: str,
        before: Sequence[MetPerson] | None,
    ) -> Resolved:
        if answer.status is MappingStatus.IGNORED:
            return Resolved(question=text, left_out=True)
        if answer.target_id is None:
            return Resolved(self._own_key(identity, line), text)
        if answer.target_id < FILE_ROWS:
            key = self._answers.keys.get(answer.target_id)
            gone = f"the person that was chosen for it, {answer.target_name}, was deleted since"
            return Resolved(key, text, problem=None if key else gone)
        first = answer.target_id - FILE_ROWS
        key = next((each.key for each in before or () if each.line == first), None)
        if before is not None and key is None:
            gone = f"is the same person as row {first}, which did not go in; correct that row"
            return Resolved(None, text, problem=gone)
        return Resolved(key, text, problem=None if key else same_as("person", first))

    def _own_key(self, identity: Identity, line: int) -> str:
        """Key of a person who is another one than those with the same data."""
        return f"{identity.key}#{self._answers.import_uuid}:{line}"

    def _ask(self, text: str, candidates: Sequence[_Candidate]) -> None:
        best = sorted(candidates, key=lambda each: (-SCORES[each.kind], each.id))
        self._found.append(
            FoundValue(
                PERSON.name,
                text,
                1,
                alternatives=_alternatives(best),
                question=best[0].kind.value,
                reason=REASONS[best[0].kind],
            )
        )

    def _note(self, text: str, same: _Candidate | None, candidates: Sequence[_Candidate]) -> None:
        """Show what is taken over from an earlier import, so that a person can change it."""
        self._found.append(
            FoundValue(
                PERSON.name,
                text,
                1,
                target_id=None if same is None else same.id,
                target_name=None if same is None else same.name,
                confidence=REMEMBERED,
                alternatives=_alternatives(candidates),
                create=same is None,
                question=candidates[0].kind.value,
                reason=REASONS[candidates[0].kind],
            )
        )


class _Index:
    """Known people by what rows may meet them by."""

    def __init__(self, known: Sequence[KnownPerson]) -> None:
        self.keys = {each.key for each in known}
        self._near: dict[str, list[KnownPerson]] = defaultdict(list)
        for each in known:
            for block in _blocks(each.identity):
                self._near[block].append(each)

    def near(self, identity: Identity) -> Sequence[KnownPerson]:
        """People that the identity may be of."""
        blocks = _blocks(identity)
        return list({each.id: each for block in blocks for each in self._near[block]}.values())


def _blocks(identity: Identity) -> Sequence[str]:
    name, mail = f"n{identity.name_key}", identity.mail_key
    return (name,) if mail is None else (name, f"m{mail}")


def _alternatives(candidates: Sequence[_Candidate]) -> tuple[tuple[int, str, float], ...]:
    return tuple(
        (each.id, each.name[:200], SCORES[each.kind]) for each in candidates[:_ALTERNATIVES]
    )

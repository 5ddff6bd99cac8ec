"""Finds the person of each row: among those in the database and among the rows before it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from contracts.spreadsheets import CellMapping, MappingStatus
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.people import (
    FILE_ROWS,
    PERSON,
    REASONS,
    SCORES,
    Certain,
    Identity,
    KnownPerson,
    PeopleQuery,
    QuestionKind,
    compare,
    digest_of,
)
from domain.spreadsheets.records import FoundValue

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


def decided(question: SheetField, mappings: Iterable[CellMapping]) -> dict[str, CellMapping]:
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
        return Resolved(key, text, problem=None if key else f"duplicate of row {first}")

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

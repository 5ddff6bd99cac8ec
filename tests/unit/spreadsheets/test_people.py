"""Whether two records are about one person."""

from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from activities.spreadsheets.file_people import FilePeople
from workflows.spreadsheets.people import (
    Certain,
    Identity,
    KnownPerson,
    MetPerson,
    PeopleAnswers,
    PeopleMatcher,
    QuestionKind,
    Relation,
    compare,
    identity_of,
)

SAME, OTHER = Certain.SAME, Certain.OTHER
MAIL, LATER = "tom@example.org", "thomas@example.org"
BORN, OTHER_DAY = date(1990, 5, 31), date(2015, 1, 2)


def who(first: str, last: str, mail: str | None = None, born: date | None = None) -> Identity:
    found = identity_of(last, first, mail, born)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("mails", "days", "relation"),
    [
        ((MAIL, MAIL.upper()), (BORN, BORN), SAME),
        ((MAIL, MAIL), (None, None), SAME),
        ((None, None), (BORN, BORN), SAME),
        ((MAIL, MAIL), (BORN, OTHER_DAY), QuestionKind.BIRTHDATE_DIFFERS),
        ((MAIL, MAIL), (BORN, None), QuestionKind.BIRTHDATE_MISSING),
        ((None, None), (BORN, None), QuestionKind.BIRTHDATE_MISSING),
        ((MAIL, None), (BORN, BORN), QuestionKind.MAIL_MISSING),
        ((MAIL, None), (None, None), QuestionKind.MAIL_MISSING),
        ((MAIL, None), (None, BORN), QuestionKind.MAIL_MISSING),
        ((MAIL, None), (BORN, OTHER_DAY), QuestionKind.BIRTHDATE_DIFFERS),
        ((MAIL, LATER), (BORN, BORN), QuestionKind.MAIL_DIFFERS),
        ((MAIL, LATER), (BORN, None), QuestionKind.MAIL_DIFFERS),
        ((None, None), (None, None), QuestionKind.NAME_ALONE),
        ((MAIL, LATER), (None, None), OTHER),
        ((MAIL, LATER), (BORN, OTHER_DAY), OTHER),
        ((None, None), (BORN, OTHER_DAY), OTHER),
    ],
)
def test_people_of_one_name(
    mails: tuple[str | None, str | None],
    days: tuple[date | None, date | None],
    relation: Relation,
) -> None:
    one, other = (who("Tom", "Meier", mail, day) for mail, day in zip(mails, days, strict=True))
    assert compare(one, other) == compare(other, one) == relation


@pytest.mark.parametrize(
    ("first", "last", "relation"),
    [
        ("Jürgen", "Müller", SAME),
        ("Ju\u0308rgen ", "Mu\u0308ller", SAME),
        ("Jurgen", "Muller", QuestionKind.SPELLING),
        ("Juergen", "Mueller", QuestionKind.SPELLING),
        ("JÜRGEN", "MÜLLER", QuestionKind.SPELLING),
        ("J.", "Müller", QuestionKind.SPELLING),
        ("Jürgen K.", "Müller", QuestionKind.SPELLING),
        ("Jürgen 1", "Müller", OTHER),
        ("Jan", "Müller", OTHER),
        ("Lea", "Müller", OTHER),
        ("Jürgen", "Schulz", QuestionKind.LAST_NAME_DIFFERS),
        ("J.", "Schulz", QuestionKind.LAST_NAME_DIFFERS),
    ],
)
def test_people_of_one_mail_address(first: str, last: str, relation: Relation) -> None:
    known = who("Jürgen", "Müller", "family@example.org", BORN)
    assert compare(who(first, last, "Family@example.org", BORN), known) == relation


@pytest.mark.parametrize(
    ("first", "fits"),
    [("Anna B.", True), ("Anna", False), ("A. B.", True), ("Anna Berta", True), ("Anna C.", False)],
)
def test_an_initial_stands_for_a_name(first: str, fits: bool) -> None:
    relation = compare(who(first, "Ek", MAIL), who("Anna Berta", "Ek", MAIL))
    assert (relation is not OTHER) == fits


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[FilePeople]:
    with closing(FilePeople(tmp_path, in_memory=1)) as people:
        yield people


def test_people_of_a_file_beyond_memory_are_found_again(on_disk: FilePeople) -> None:
    met = [MetPerson(n, who("Tom", f"Meier{n}", MAIL, BORN), f"key{n}") for n in range(2, 6)]
    on_disk.add([("n", each) for each in met])
    assert [person for _, person in on_disk.earlier(["n", "other"])] == met
    assert list(on_disk.number(["a", "a", "b"], [2, 3, 4])) == [1, 2, 1]


def test_one_of_two_equal_people_is_not_chosen() -> None:
    tom = who("Tom", "Meier", MAIL)
    known = [KnownPerson(n, f"k{n}", tom) for n in (1, 2)]
    matcher = PeopleMatcher(PeopleAnswers(), None)
    (one,) = matcher.resolve([tom], [2], [True], known)
    assert one is not None and one.key is None
    (asked,) = matcher.take_found()
    assert (asked.question, [id for id, _, _ in asked.alternatives]) == ("SEVERAL", [1, 2])


def test_a_key_that_belongs_to_another_person_is_not_used() -> None:
    tom = who("Tom", "Meier", MAIL, BORN)
    renamed = KnownPerson(7, tom.key, who("Max", "Schulz"))
    (one,) = PeopleMatcher(PeopleAnswers("u-1"), None).resolve([tom], [9], [True], [renamed])
    assert one is not None and one.key == f"{tom.key}#u-1:9"

"""Names at endpoints that a pattern means, and those that it nearly means."""

import unicodedata

import pytest

from workflows.transfers.paths import matcher, nearly_named, split, split_matches, widen_pattern

COMPOSED, DECOMPOSED = "in/Prüfbericht-Ä.csv", unicodedata.normalize("NFD", "in/Prüfbericht-Ä.csv")


@pytest.mark.parametrize("pattern", ["in/Prüf*.csv", "in/*Ä.csv", COMPOSED])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_name_with_other_encodings_of_accents_is_nearly_named(pattern: str, form: str) -> None:
    wanted = unicodedata.normalize(form, pattern)
    match = matcher(split(widen_pattern(wanted))[1]).match
    assert match(split(COMPOSED)[1]) and match(split(DECOMPOSED)[1])
    named, missed, unfinished = split_matches(
        wanted, [COMPOSED, DECOMPOSED, "in/Prufbericht-A.csv"]
    )
    assert len(named) == len(missed) == 1 and not unfinished
    assert {*named, *missed} == {COMPOSED, DECOMPOSED}
    [said] = nearly_named(wanted, missed)
    assert "differs from" in said and "how accents are encoded" in said


def test_case_and_encoding_are_distinguished() -> None:
    paths = ["in/Übung.csv", "in/ÜBUNG.CSV", unicodedata.normalize("NFD", "in/ÜBUNG.CSV")]
    named, missed, _ = split_matches("in/Ü*.csv", paths)
    assert (named, missed) == (paths[:1], paths[1:])
    case, form = nearly_named("in/Ü*.csv", missed)
    assert "'in/\\xdcBUNG.CSV': left out" in case and "upper and lower case alone" in case
    assert "'in/U\\u0308BUNG.CSV': left out" in form and "how accents are encoded" in form


def test_a_name_that_would_be_too_long_as_a_pattern_stays() -> None:
    assert widen_pattern("ü/a-1.csv") == "ü/[aA]-1.[cC][sS][vV]"
    assert widen_pattern("in/ü*.csv") == "in/*.[cC][sS][vV]"
    assert widen_pattern("in/" + "a" * 100) == "in/" + "a" * 100


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [("*.csv", "a.csv", True), ("*.csv", ".a.csv", False), ("*", ".a", False), (".*", ".a", True)],
)
def test_a_pattern_takes_hidden_files_only_if_it_says_so(
    pattern: str, name: str, matches: bool
) -> None:
    assert bool(matcher(pattern).match(name)) is matches

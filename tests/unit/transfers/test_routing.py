"""Which rule takes an event, and what is said of the others."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.transfers import routes
from workflows.transfers.events import RouteKey
from workflows.transfers.routes import RouteRule, RouteTable, can_tie, rank, takes

SEED = [
    RouteRule(
        queue="jobs",
        rule="1",
        type="Succeeded",
        source="FTP.File.ExternalService",
        subject="File Upload",
        account_id="ACCOUNT001",
    ),
    RouteRule(
        queue="jobstmsroute",
        rule="2",
        type="Succeeded",
        source="TMS.Route",
        subject="File Upload",
        account_id="TMS001",
    ),
    RouteRule(
        queue="jobstmsstatus",
        rule="3",
        type="Succeeded",
        source="TMS.Status",
        subject="Status Update",
        account_id="TMS001",
    ),
    RouteRule(
        queue="jobsbylcppricing",
        rule="4",
        type="Succeeded",
        source="Pricing.LCP",
        subject="Price Update",
        account_id="PRICING001",
    ),
]


def key(
    account_id: str = "TMS001",
    source: str = "TMS.Route",
    type: str = "Succeeded",
    subject: str = "File Upload",
) -> RouteKey:
    return RouteKey(account_id=account_id, source=source, type=type, subject=subject)


def rule(name: str, **fields: object) -> RouteRule:
    return RouteRule.model_validate({"queue": "jobs", "rule": name, **fields})


def winner(rules: Sequence[RouteRule], event: RouteKey) -> str | None:
    found = RouteTable(rules).find(event)
    return None if found is None else found.rule


@pytest.mark.parametrize(
    ("event", "queue"),
    [
        (key("ACCOUNT001", "FTP.File.ExternalService"), "jobs"),
        (key(), "jobstmsroute"),
        (key(source="TMS.Status", subject="Status Update"), "jobstmsstatus"),
        (key("PRICING001", "Pricing.LCP", subject="Price Update"), "jobsbylcppricing"),
    ],
)
def test_the_rules_of_the_system_that_is_replaced(event: RouteKey, queue: str) -> None:
    found = RouteTable(SEED).find(event)
    assert found is not None
    assert found.queue == queue


@pytest.mark.parametrize(
    "event",
    [key(account_id="tms001"), key(subject="File Upload "), key(type="Failed"), key("TMS002")],
)
def test_what_differs_in_one_attribute_matches_nothing(event: RouteKey) -> None:
    assert RouteTable(SEED).find(event) is None


def test_the_most_specific_rule_wins_unless_a_priority_says_otherwise() -> None:
    rules = [
        rule("any"),
        rule("source", source="TMS.*"),
        rule("account", account_id="TMS*"),
        rule("exact", account_id="TMS001"),
    ]
    assert winner(rules, key()) == "exact"
    assert winner(rules[:3], key()) == "account"
    assert winner(rules[:2], key()) == "source"
    assert winner([*rules, rule("urgent", priority=1)], key()) == "urgent"


def test_a_disabled_rule_takes_nothing_and_is_named() -> None:
    table = RouteTable([rule("off", enabled=False), rule("other", account_id="X")])
    verdict = table.explain(key())
    assert verdict.winner is None
    assert [(each.rule, each.reason) for each in verdict.others] == [
        ("off", "is disabled"),
        ("other", "accountId is 'TMS001', not 'X'"),
    ]


def test_near_misses_say_what_differs() -> None:
    table = RouteTable(
        [
            rule("case", account_id="tms001"),
            rule("blank", subject="File Upload "),
            rule("low", priority=-1),
            rule("wide", source="TMS.*"),
            rule("best", source="TMS.Route"),
        ]
    )
    verdict = table.explain(key())
    assert verdict.winner is not None
    assert verdict.winner.rule == "best"
    assert {each.rule: each.reason for each in verdict.others} == {
        "wide": "matches too, but its source 'TMS.*' is less specific than 'TMS.Route'",
        "low": "matches too, but its priority is -1, not 0",
        "case": "accountId is 'TMS001', not 'tms001': they differ in upper and lower case",
        "blank": "subject is 'File Upload', not 'File Upload ': they differ in blanks at the ends",
    }
    assert verdict.rules == 5


def test_a_rule_that_differs_in_case_alone_is_the_nearest() -> None:
    others = [rule(str(number), account_id=f"ACME{number}") for number in range(20)]
    table = RouteTable(
        [*others, rule("case", account_id="tms*"), rule("blank", account_id=" TMS*")]
    )
    first, second, *_ = table.explain(key()).others
    assert (first.rule, first.reason) == (
        "blank",
        "accountId is 'TMS001', not ' TMS*': they differ in blanks at the ends",
    )
    assert (second.rule, second.reason) == (
        "case",
        "accountId is 'TMS001', not 'tms*': they differ in upper and lower case",
    )


@pytest.mark.parametrize(
    ("one", "other", "tie"),
    [
        ({"source": "TMS.*"}, {"source": "TMS.*"}, True),
        ({"source": "TMS.*"}, {"source": "*oute"}, True),
        ({"source": "TMS.*"}, {"source": "*Route"}, False),  # the longer one wins
        ({"source": "TMS.*"}, {"source": "FTP.*"}, False),  # no source begins with both
        ({"source": "TMS.*"}, {"subject": "File*"}, False),  # the source decides before it
        ({"source": "TMS.*"}, {"source": "TMS.*", "priority": 1}, False),
        ({"source": "TMS.*"}, {"source": "TMS.*", "enabled": False}, False),
        ({"account_id": "A", "source": "T*"}, {"account_id": "B", "source": "T*"}, False),
    ],
)
def test_ties_are_found_before_they_matter(
    one: dict[str, object], other: dict[str, object], tie: bool
) -> None:
    first, second = rule("first", **one), rule("second", **other)
    assert can_tie(first, second) is tie
    assert bool(RouteTable([first]).ties(second)) is tie


def test_changing_a_rule_is_no_tie_with_itself() -> None:
    assert RouteTable(SEED).ties(SEED[0]) == []


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("IN-{}*", "IN-77-a.csv"),
        ("*.{}", "a.csv.77"),
        ("*File Upload of *-{}-*", "a File Upload of x-77-y"),
        ("File Upload of {}*", "File Upload of 77-y"),
        ("*{}*File Upload*", "77 File Upload"),
    ],
)
def test_a_look_up_looks_at_few_rules_whatever_texts_they_share(
    pattern: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = RouteTable(rule(str(n), subject=pattern.format(n), source="*S*") for n in range(2_000))
    looked_at: list[str] = []

    def counted(one: RouteRule, event: RouteKey) -> bool:
        looked_at.append(one.rule)
        return takes(one, event)

    monkeypatch.setattr(routes, "takes", counted)
    found = table.find(key(source="TMS.Status", subject=value))
    assert found is not None and found.rule == "77"
    assert len(looked_at) <= 3


VALUES = st.sampled_from(["a", "b", "ab", "ba", "*", "a*", "*a", "*a*", "a*b", "**"])
TEXTS = st.sampled_from(["a", "b", "ab", "ba", "aab", "bab"])
RULES = st.lists(
    st.builds(
        RouteRule,
        queue=st.sampled_from(["jobs", "jobstmsroute"]),
        rule=st.integers(0, 999).map(str),
        account_id=VALUES,
        source=VALUES,
        type=VALUES,
        subject=VALUES,
        priority=st.integers(-1, 1),
        enabled=st.booleans(),
        by=st.none(),
        changed_at=st.none(),
    ),
    max_size=30,
    unique_by=lambda each: (each.queue, each.rule),
)
KEYS = st.builds(key, TEXTS, TEXTS, TEXTS, TEXTS)


@given(RULES, KEYS)
def test_the_index_finds_what_a_look_at_every_rule_finds(
    rules: list[RouteRule], event: RouteKey
) -> None:
    matching = [each for each in rules if each.enabled and takes(each, event)]
    matching.sort(key=lambda each: (each.queue, each.rule))
    best = max(matching, key=rank, default=None)
    assert RouteTable(rules).find(event) == best


@given(RULES, KEYS)
def test_only_ties_leave_it_open_which_rule_wins(rules: list[RouteRule], event: RouteKey) -> None:
    table = RouteTable(rules)
    found = table.find(event)
    if found is None:
        return
    equals = [
        each
        for each in rules
        if each is not found and each.enabled and takes(each, event) and rank(each) == rank(found)
    ]
    assert all(each in table.ties(found) for each in equals)
    assert bool(list(table.all_ties())) >= bool(equals)


@given(RULES)
def test_all_ties_are_those_that_a_look_at_every_pair_finds(rules: list[RouteRule]) -> None:
    found = [{one.rule + one.queue, other.rule + other.queue} for one, other in _all_ties(rules)]
    pairs = itertools.combinations(rules, 2)
    expected = [{a.rule + a.queue, b.rule + b.queue} for a, b in pairs if can_tie(a, b)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))


def _all_ties(rules: Sequence[RouteRule]) -> list[tuple[RouteRule, RouteRule]]:
    return list(RouteTable(rules).all_ties())


@pytest.mark.parametrize("pattern", ["IN-{:05}*", "*-{:05}.csv"])
def test_ties_are_looked_for_among_few_pairs(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [rule(str(number), subject=pattern.format(number)) for number in range(2_000)]
    same = rule("same", subject=pattern.format(77))
    looked_at = 0

    def counted(one: RouteRule, other: RouteRule) -> bool:
        nonlocal looked_at
        looked_at += 1
        return can_tie(one, other)

    monkeypatch.setattr(routes, "can_tie", counted)
    (pair,) = _all_ties([*rules, same])
    assert {each.rule for each in pair} == {"77", "same"}
    assert looked_at == 1


@given(RULES, KEYS)
def test_the_nearest_rules_are_explained(rules: list[RouteRule], event: RouteKey) -> None:
    verdict = RouteTable(rules).explain(event)
    explained = len(verdict.others) + (verdict.winner is not None)
    assert explained == min(len(rules), 10 + (verdict.winner is not None))
    assert all(each.reason for each in verdict.others)

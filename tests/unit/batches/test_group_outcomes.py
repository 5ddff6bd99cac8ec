"""What a group returns of each message has an end, however long its failure was."""

from workflows.batches.loads import GroupEnd, GroupOutcome


def test_a_long_reason_is_cut() -> None:
    outcome = GroupOutcome(number=0, end=GroupEnd.SINGLE, reason="a" * 1_000 + "b")
    assert outcome.reason == "a" * 1_000


def test_a_short_reason_stays_as_it_is() -> None:
    assert GroupOutcome(number=0, end=GroupEnd.SINGLE, reason="broken").reason == "broken"

"""A host that fails again and again is left alone for a while."""

from datetime import UTC, datetime, timedelta

from workflows.jobs.webhooks import FAILURES, FIRST_PAUSE, LONGEST_PAUSE, Circuit

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def opened(failures: int = FAILURES) -> Circuit:
    circuit = Circuit()
    for _ in range(failures):
        circuit = circuit.after(NOW, healthy=False)
    return circuit


def test_the_circuit_opens_after_some_failures_in_a_row() -> None:
    assert opened(FAILURES - 1).blocked(NOW) is None
    assert opened().blocked(NOW) == FIRST_PAUSE.total_seconds()
    assert opened().blocked(NOW + FIRST_PAUSE) is None


def test_an_answer_closes_it() -> None:
    assert opened(50).after(NOW, healthy=True) == Circuit()


def test_the_pause_doubles_up_to_a_limit() -> None:
    assert opened(FAILURES + 1).blocked(NOW) == 2 * FIRST_PAUSE.total_seconds()
    assert opened(FAILURES + 500).blocked(NOW) == LONGEST_PAUSE.total_seconds()


def test_one_attempt_is_let_through_when_the_pause_is_over() -> None:
    later = NOW + FIRST_PAUSE
    circuit = opened()
    assert circuit.blocked(later) is None
    probing = circuit.probing(later, lease=30)
    assert probing.blocked(later) == 30
    assert probing.blocked(later + timedelta(seconds=30)) is None

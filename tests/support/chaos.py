"""How hard the suite tries: a little in every run, a lot where `DOCFLOW_CHAOS` is set."""

import os

from hypothesis import settings

CHAOS = bool(os.environ.get("DOCFLOW_CHAOS"))
FAST, DEEP = "fast", "deep"
_MORE_EXAMPLES = 5


def kills(fast: int, deep: int) -> int:
    """How often something is killed, damaged or refused."""
    return deep if CHAOS else fast


def some_of(calls: int, turn: int) -> range:
    """Which of so many calls one error is tried at: every one, or every other one, from 0 or 1 on.

    Errors of an even and of an odd turn meet all calls between them; an only call is met by each.
    """
    return range(calls) if CHAOS or calls == 1 else range(turn % 2, calls, 2)


def load_profile() -> None:
    """Choose how many random examples are tried; `HYPOTHESIS_PROFILE` says otherwise.

    An example may take as long as it takes: a busy machine is not a failure.
    """
    settings.register_profile(FAST, deadline=None, max_examples=50)
    settings.register_profile(DEEP, deadline=None, max_examples=100 * _MORE_EXAMPLES)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or (DEEP if CHAOS else FAST))


def examples(fast: int, deep: int | None = None) -> int:
    """How many random examples the profiles try; `deep` without a number: five times as many."""
    is_deep = settings.get_current_profile_name() == DEEP
    return (deep or fast * _MORE_EXAMPLES) if is_deep else fast

"""How hard the suite tries: a little in every run, a lot where `DOCFLOW_CHAOS` is set."""

import os
import random

from hypothesis import settings

CHAOS = bool(os.environ.get("DOCFLOW_CHAOS"))
FAST, DEEP = "fast", "deep"
_USUAL, _MORE_EXAMPLES = 50, 3


def kills(fast: int, deep: int) -> int:
    """How often something is killed, damaged or refused."""
    return deep if CHAOS else fast


def seed() -> str:
    """The seed of random faults: the same one in `make test` and in CI, else another one each time.

    `DOCFLOW_CRASH_SEED` repeats those of an earlier run.
    """
    explores = CHAOS and not os.environ.get("CI")
    usual = str(random.randrange(10**6)) if explores else "7"
    found = os.environ.get("DOCFLOW_CRASH_SEED") or usual
    print(f"DOCFLOW_CRASH_SEED={found}")
    return found


def some_of(calls: int, turn: int, of: int = 2) -> range:
    """Which of so many calls one error is tried at: every one, or of two every other one.

    Errors of so many turns in a row meet all calls between them; where there are fewer calls, each
    error meets one.
    """
    of = min(of, calls)
    return range(calls) if CHAOS else range(turn % of, calls, of)


def load_profile() -> None:
    """Choose how many random examples are tried; `HYPOTHESIS_PROFILE` says otherwise.

    An example may take as long as it takes: a busy machine is not a failure.
    """
    settings.register_profile(FAST, deadline=None, max_examples=_USUAL)
    settings.register_profile(DEEP, deadline=None, max_examples=_USUAL * _MORE_EXAMPLES)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or (DEEP if CHAOS else FAST))


def examples(fast: int) -> int:
    """How many random examples the profiles try: the deep one so many times as many."""
    return fast * (_MORE_EXAMPLES if settings.get_current_profile_name() == DEEP else 1)

"""One test for several implementations at once: what they all wait for costs its time once."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Test = Callable[..., Awaitable[None]]


def side_by_side(**named: str) -> Callable[[Test], Test]:
    """Runs a coroutine test with every implementation together; each is tried to its end.

    Only for tests that wait much and compute little, and share nothing but servers.

    Args:
        named: The argument in which the test takes one implementation, and the fixture that gives
            all of them by their names. Failures name theirs.
    """
    [(argument, fixture)] = named.items()

    def decorate(test: Test) -> Test:
        async def together(**given: Any) -> None:
            variants: Mapping[str, Any] = given.pop(fixture)
            runs = (test(**given, **{argument: variant}) for variant in variants.values())
            ends = await asyncio.gather(*runs, return_exceptions=True)
            failures = dict(zip(variants, ends, strict=True))
            _raise({name: error for name, error in failures.items() if error is not None})

        together.__name__, together.__doc__ = test.__name__, test.__doc__
        together.__module__ = test.__module__
        # pytest reads the fixtures from here.
        signature = inspect.signature(test)
        parameters = [
            each.replace(name=fixture) if name == argument else each
            for name, each in signature.parameters.items()
        ]
        together.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return together

    return decorate


def _raise(failures: Mapping[str, BaseException]) -> None:
    for name, error in failures.items():
        error.add_note(f"with {name}")
    if len(failures) == 1:
        raise next(iter(failures.values()))
    if failures:
        raise BaseExceptionGroup(f"with {', '.join(failures)}", list(failures.values()))

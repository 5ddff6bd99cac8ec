"""Activities that answer as a test says, under the names and types of the real ones."""

import asyncio
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, get_type_hints

from temporalio import activity
from temporalio.exceptions import ApplicationError

from workflows.shared.dependencies import Dependency, Recovery
from workflows.shared.errors import UNAVAILABLE
from workflows.shared.notifications import NotificationInput, NotificationReceipt

_Attempt = tuple[str | None, str, int, str, str]


class ScriptedActivities:
    """Stands for every activity of some classes, and records what it is asked.

    Activities are named by the last word of their name: `look` is `batches.look`. A call is
    recorded, waits while the name is held, raises the next failure of that name, and returns its
    result. When the server repeats a workflow task that took too long, its local activities run
    again: such a repeated call is not recorded, and ends as it did before.

    Args:
        classes: Classes whose methods are the activities.
        results: Result by name; a wait for a dependency and a notice have one. A function is called
            with the activity's input, and may be a coroutine function. A name without a result
            returns None if the activity does; any other fails the run, and says which is missing.
        fails: What the next calls raise, by name, in order.
        held: Names whose calls do not end before they are cancelled, or the name is taken away.
    """

    def __init__(
        self,
        *classes: type,
        results: Mapping[str, Any] | None = None,
        fails: Mapping[str, Iterable[BaseException]] | None = None,
        held: Iterable[str] = (),
    ) -> None:
        self.classes = classes
        given = {"wait": Recovery(was_down=True), "send": NotificationReceipt()}
        self.results: dict[str, Any] = {**given, **(results or {})}
        self.fails: dict[str, list[BaseException]] = defaultdict(list)
        for name, failures in (fails or {}).items():
            self.fails[name] = list(failures)
        self.held: Any = set(held)
        self.calls: list[str] = []
        """Names, in order; every attempt counts, once."""
        self.received: dict[str, list[Any]] = defaultdict(list)
        """Input of every attempt, by name."""
        self._asked: list[tuple[str, Any]] = []
        self.working = asyncio.Event()
        """Set when a held activity has begun."""
        self._expected: dict[str, Any] = {}
        self._recorded: set[_Attempt] = set()
        self._ended: dict[_Attempt, Any] = {}

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return [self._scripted(method) for each in self.classes for method in _activities_of(each)]

    def returning(self, result: type) -> list[str]:
        """Names of the activities that return a type."""
        self.activities()
        return [name for name, expected in self._expected.items() if expected is result]

    def made(self, name: str) -> int:
        """How often an activity was called."""
        return self.calls.count(name)

    @property
    def notices(self) -> list[NotificationInput]:
        """Notices that were to be sent, every attempt."""
        return self.received["send"]

    def is_held(self, name: str) -> bool:
        """Whether a call of an activity has to wait."""
        return name in self.held

    def record(self, name: str, work: Any) -> None:
        """Keep what an activity is asked; notices are sent beside the calls of a run."""
        if name != "send":
            self.calls.append(name)
        self.received[name].append(work)
        self._asked.append((name, work))

    def calls_about(self, id: str) -> list[str]:
        """Names of the calls whose input holds an id, in order; a run of an earlier test that is
        still on the task queue has calls as well."""
        return [name for name, work in self._asked if id in work.model_dump_json()]

    async def wait(self, name: str) -> None:
        """Wait, with heartbeats, until an activity is no longer held."""
        while self.is_held(name):
            if not activity.info().is_local:
                activity.heartbeat()
            await asyncio.sleep(0.05)

    async def _end_of(self, attempt: _Attempt, name: str, work: Any) -> Any:
        """What one attempt returns, or the failure that it raises."""
        if attempt not in self._recorded:
            self._recorded.add(attempt)
            self.record(name, work)
        try:
            if self.is_held(name):
                self.working.set()
                await self.wait(name)
            if self.fails.get(name):
                return self.fails[name].pop(0)
            return await self._result(name, work)
        except ApplicationError as failure:
            return failure

    async def _result(self, name: str, work: Any) -> Any:
        if name not in self.results and self._expected[name] is not type(None):
            text = f"the test gives no result for the activity {name}: add it to `results`"
            raise ApplicationError(text, non_retryable=True)
        result = self.results.get(name)
        if callable(result):
            result = result(work)
        return await result if inspect.isawaitable(result) else result

    def _scripted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        full_name = activity._Definition.must_from_callable(real).name
        assert full_name is not None, f"{real.__qualname__} takes any name"
        name = full_name.rpartition(".")[2]
        hints = get_type_hints(real)
        self._expected[name] = hints.get("return", type(None))

        async def answer(work: Any) -> Any:
            attempt = _attempt_of(name, work)
            if attempt not in self._ended:
                self._ended[attempt] = await self._end_of(attempt, name, work)
            ended = self._ended[attempt]
            if isinstance(ended, BaseException):
                raise ended
            return ended

        # The worker decodes the input by these.
        (parameter,) = list(inspect.signature(real).parameters)[1:]
        answer.__annotations__ = {"work": hints[parameter], "return": self._expected[name]}
        return activity.defn(name=full_name)(answer)


def unavailable(dependency: Dependency = Dependency.DATABASE) -> ApplicationError:
    """The failure of a step that cannot use what docflow itself needs."""
    text = f"the {dependency.label} is not available: connection refused"
    return ApplicationError(text, dependency.value, 0, type=UNAVAILABLE, non_retryable=True)


def still_down(asked_again_after: timedelta) -> ApplicationError:
    """The failure of a wait for a dependency, which the server repeats."""
    return ApplicationError(
        "connection refused", type=UNAVAILABLE, next_retry_delay=asked_again_after
    )


def scripted(
    *classes: type,
    results: Mapping[str, Any] | None = None,
    fails: Mapping[str, Iterable[BaseException]] | None = None,
    held: Iterable[str] = (),
) -> ScriptedActivities:
    """The activities of some classes, scripted; arguments are those of `ScriptedActivities`."""
    return ScriptedActivities(*classes, results=results, fails=fails, held=held)


def next_of(answers: list[Any]) -> Any:
    """The first of some answers, which is taken off; the last one stays."""
    return answers.pop(0) if len(answers) > 1 else answers[0]


def _attempt_of(name: str, work: Any) -> _Attempt:
    """What distinguishes a repeated call from another one.

    What a workflow task that was lost had begun is forgotten: after an answer that came meanwhile,
    the number of its activity may be that of another one.
    """
    info = activity.info()
    number = f"{'local' if info.is_local else 'remote'} {info.activity_id}"
    return info.workflow_run_id, number, info.attempt, name, repr(work)


def _activities_of(each: type) -> list[Callable[..., Any]]:
    return [
        method
        for _, method in inspect.getmembers(each, inspect.isfunction)
        if activity._Definition.from_callable(method)
    ]

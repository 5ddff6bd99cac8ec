"""The one mixin of workflows that park: how callers answer."""

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from contracts.answers import AnyAnswer
from workflows.parking import Answered, Decision, Parking

AnswerType = type[AnyAnswer]


class Parkable:
    """Handlers of the answers to a parked run, and its parking; nothing else.

    A workflow states which answers it offers, and the contract of each:

        class DocumentImport(Parkable, retry=Retry, skip=Answer, fail=Answer): ...

    Each of them becomes an update, its validator and a twin signal of the same name for
    `temporal workflow signal`, where the contract's defaults count when nothing is sent. The
    updates return what `_answered` returns, and have its type.
    """

    retry: ClassVar[Any]
    skip: ClassVar[Any]
    fail: ClassVar[Any]

    def __init_subclass__(
        cls,
        retry: AnswerType | None = None,
        skip: AnswerType | None = None,
        fail: AnswerType | None = None,
    ) -> None:
        super().__init_subclass__()
        offered = {Decision.RETRY: retry, Decision.SKIP: skip, Decision.FAIL: fail}
        for decision, contract in offered.items():
            if contract is not None:
                cls._offer(decision, contract)

    @classmethod
    def _offer(cls, decision: Decision, contract: AnswerType) -> None:
        """Add the handlers of one answer: Temporal reads a message's type from its handler."""
        answered = cls._answered.__annotations__["return"]
        for handler in cls._handlers(decision, contract, answered, cls.__qualname__):
            setattr(cls, handler.__name__, handler)

    @staticmethod
    @lru_cache(maxsize=256)
    def _handlers(
        decision: Decision, contract: AnswerType, answered: Any, owner: str
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """The update and the signal of one answer.

        Cached, because the sandbox makes the class of a workflow anew for every run, and to look
        at the types of its handlers is most of what that costs.
        """

        def validate(self: Parkable, answer: Any) -> None:
            self._parking.refuse_unless_waiting()
            self._validate_answer(decision, answer)

        async def update(self: Parkable, answer: Any) -> Any:
            self._parking.answer(Answered.by_person(decision, answer))
            return self._answered()

        def signal(self: Parkable, answer: Any = None) -> None:
            given = contract() if answer is None else answer
            try:
                validate(self, given)
            except ApplicationError as error:
                workflow.logger.warning("signal %s refused: %s", decision, error.message)
            else:
                self._parking.answer(Answered.by_person(decision, given))

        update.__annotations__ = {"answer": contract, "return": answered}
        validate.__annotations__ = {"answer": contract, "return": None}
        signal.__annotations__ = {"answer": contract | None, "return": None}
        for name, handler in {"": update, "_signal": signal}.items():
            handler.__name__ = f"{decision}{name}"
            handler.__qualname__ = f"{owner}.{handler.__name__}"
        workflow.update(name=decision.value)(update).validator(validate)
        workflow.signal(name=decision.value)(signal)
        for handler in (update, validate, signal):
            # What `inspect.signature` would find each time.
            handler.__signature__ = inspect.signature(handler)
        return update, signal

    def __init__(self, parking: Parking) -> None:
        self._parking = parking

    def _answered(self) -> Any:
        """What an accepted update returns; workflows override it."""

    def _validate_answer(self, decision: Decision, answer: AnyAnswer) -> None:
        """Refuse an answer for more than that the run is not parked; workflows override it.

        Raises:
            ApplicationError: What is wrong with it.
        """

"""The rules of answers, whose refusals reach the caller of an update as typed failures."""

from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from temporalio.exceptions import ApplicationError

from contracts.errors import WRONG_STATE
from domain.spreadsheets import decisions, value_rules

P = ParamSpec("P")
T = TypeVar("T")


def wrong_state(message: str) -> ApplicationError:
    """A refusal: the run does not wait for this answer."""
    return ApplicationError(message, type=WRONG_STATE, non_retryable=True)


def _for_caller(rule: Callable[P, T]) -> Callable[P, T]:
    @wraps(rule)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return rule(*args, **kwargs)
        except decisions.AnswerRefused as refusal:
            # Without a cause: the failure's message is complete.
            raise ApplicationError(
                str(refusal), *refusal.details, type=refusal.type, non_retryable=True
            ) from None

    return checked


decide_columns: Final = _for_caller(decisions.decide_columns)
refuse_malformed_answer: Final = _for_caller(value_rules.refuse_malformed_answer)
refuse_other_version: Final = _for_caller(decisions.refuse_other_version)
refuse_other_state: Final = _for_caller(decisions.refuse_other_state)
refuse_open_fields: Final = _for_caller(decisions.refuse_open_fields)
refuse_open_values: Final = _for_caller(decisions.refuse_open_values)

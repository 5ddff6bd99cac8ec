"""Steps that begin inside the workflow's own worker, and continue elsewhere when they take long."""

from typing import Any, Protocol, TypeVar, cast

from temporalio import workflow

from workflows import policies


class Outcome(Protocol):
    """The result of a step that may hand over."""

    @property
    def unfinished(self) -> bool:
        """It has had its time: run the same activity as a remote one."""
        ...


T = TypeVar("T", bound=Outcome)


async def begun_locally(step: Any, order: Any, result_type: type[T], summary: str) -> T:
    """Run an activity as a local one, and as a remote one when that hands over.

    Args:
        step: The activity: a method, or its name.
        order: Its input.
        result_type: Of its result.
        summary: For people.
    """
    outcome = cast(
        T,
        await workflow.execute_local_activity(
            step, order, result_type=result_type, summary=summary, **policies.SHORT
        ),
    )
    if not outcome.unfinished:
        return outcome
    return await done_remotely(step, order, result_type, summary)


async def done_remotely(step: Any, order: Any, result_type: type[T], summary: str) -> T:
    """Run an activity as a heartbeating one, on whichever worker is free."""
    return cast(
        T,
        await workflow.execute_activity(
            step, order, result_type=result_type, summary=summary, **policies.LONG
        ),
    )

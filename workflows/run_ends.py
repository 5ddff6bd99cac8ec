"""What is logged and counted at the end of every run, of whichever pipeline."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import BaseModel
from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from contracts.metrics import DOCUMENTS, DOCUMENTS_DESCRIPTION, IS_DOCUMENT
from workflows import attributes

_COUNTS: Final = ("counts", "documents")
"""Fields of results that say what became of rows or documents."""
_UNENDED: Final = ("", "running")
"""Values of `State` that say nothing about how a run has ended."""


class RunEnds(Interceptor):
    """Gives every workflow of a worker its end in the log, and those of documents one in metrics.

    Args:
        is_document: Of a workflow type: its runs stand for documents. Sweeps and outages do not.
    """

    def __init__(self, is_document: Callable[[str], bool]) -> None:
        self._is_document = is_document

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        """The interceptor of one run."""
        input.unsafe_extern_functions[IS_DOCUMENT] = self._is_document
        return _RunEnd


class _RunEnd(WorkflowInboundInterceptor):
    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        """Run to the end; neither log nor counter repeats it when the run is replayed."""
        try:
            result = await super().execute_workflow(input)
        except (asyncio.CancelledError, FailureError) as error:
            if not is_cancelled_exception(error):
                details = error.details if isinstance(error, ApplicationError) else ()
                _record("failed", next(iter(details), None))
            elif workflow.cancellation_reason() is not None:
                # Else it is not an end: the run leaves the cache.
                _record("cancelled", None)
            raise
        _record(_state_of_completed(), result)
        return result


def _state_of_completed() -> str:
    state = workflow.info().typed_search_attributes.get(attributes.STATE) or ""
    return "completed" if state in _UNENDED else state.lower()


def _record(state: str, result: object) -> None:
    run = workflow.info()
    known = run.typed_search_attributes
    pipeline = known.get(attributes.PIPELINE)
    if pipeline is None:
        return
    kind = known.get(attributes.DOCUMENT_TYPE) or run.workflow_type
    if workflow.extern_functions()[IS_DOCUMENT](run.workflow_type):
        counter = workflow.metric_meter().create_counter(DOCUMENTS, DOCUMENTS_DESCRIPTION)
        counter.add(1, {"pipeline": pipeline, "type": kind, "state": state})
    seconds = (workflow.now() - run.start_time).total_seconds()
    counts = "".join(f", {number:,} {name}" for name, number in _counts(result).items() if number)
    workflow.logger.info("%s %s after %.1f s%s", kind, state, seconds, counts)


def _counts(result: object) -> Mapping[str, int]:
    """What a result counts; nothing where it counts nothing."""
    if not isinstance(result, BaseModel):
        return {}
    found = (getattr(result, name, None) for name in _COUNTS)
    counts = next((each for each in found if isinstance(each, BaseModel)), None)
    if counts is None:
        return {}
    return {name: value for name, value in counts if isinstance(value, int)}

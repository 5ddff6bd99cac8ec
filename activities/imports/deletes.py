"""Deletes the data of one service."""

from temporalio import activity

from activities.failures import translate_failures
from activities.handover import hands_over
from activities.heartbeat import Heartbeater
from adapters.ports import ImportStore
from contracts.imports import DeleteMessage, Handler, HandlerInput, HandlerOutcome
from domain.errors import RuleViolation
from domain.imports.chunks import TaskKey


class DeleteImports:
    """Deletes of take-offs and estimates.

    Args:
        store: Tables.
    """

    def __init__(self, store: ImportStore) -> None:
        self._store = store

    @activity.defn(name=Handler.DELETE_SERVICE)
    @translate_failures
    @hands_over(HandlerOutcome(unfinished=True))
    async def delete_service(self, work: HandlerInput) -> HandlerOutcome:
        """Delete a service's rows; a service without any is not an error."""
        message, table = work.message, work.plan.facts.table
        if not isinstance(message, DeleteMessage) or table is None:
            raise RuleViolation(f"{work.plan.facts.document_type} deletes no service")
        key = TaskKey(message.project_id, message.task_id)
        async with Heartbeater():
            counts = await self._store.delete_service(key, table, message.service_id)
        note = None if counts.deleted else f"Service {message.service_id} had no rows."
        return HandlerOutcome(counts=counts, note=note)

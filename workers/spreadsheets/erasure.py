"""What is asked of the workers of spreadsheets: to erase a person."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.spreadsheets.erasure import SqlErasure
from workers.shared.register import Context
from workers.shared.services.errands import arguments_of
from workers.shared.services.errors import NotFound, WrongState
from workflows.spreadsheets.runs import undo_id, workflow_id

ERASE: Final = "erase-person"
_NAMED: Final = 10


class ErasePerson(BaseModel):
    """Who is erased."""

    model_config = ConfigDict(extra="forbid")

    organisation_id: int = Field(ge=1)
    person_id: int = Field(ge=1)
    dry_run: bool


async def erase_person(context: Context, own: Any, given: Mapping[str, Any], by: str) -> Any:
    """Erase a person, or say what would be erased.

    The row of the person goes last: a second run does what the first one left.

    Raises:
        InvalidRequest: An argument is missing or wrong.
        NotFound: The organisation has no such person.
        WrongState: Uploads that have not ended hold the person, or may hold them.
        PortError: Something that is needed does not answer.
    """
    asked = arguments_of(ErasePerson, given)
    organisation, person = asked.organisation_id, asked.person_id
    common = context.resources
    erasure = SqlErasure(common.database, common.blobs, common.scratch)
    held = await erasure.look(organisation, person)
    if held is None:
        raise NotFound(f"organisation {organisation} has no person {person}")
    if asked.dry_run:
        return asdict(held)
    if held.open:
        named = ", ".join(held.open[:_NAMED]) + (" ..." if len(held.open) > _NAMED else "")
        raise WrongState(
            f"uploads that have not ended hold the person, or may hold them: {named}; complete or "
            "cancel them, and retry"
        )
    for uuid in held.uploads:
        if not await erasure.forget_upload(uuid):
            raise WrongState(f"the upload {uuid} is being undone; retry when its undo has ended")
        for run in (workflow_id(uuid), undo_id(uuid)):
            await _forget_run(context.client, run)
    rows = await erasure.forget_person(organisation, person)
    return {**asdict(held), "rows": rows}


async def _forget_run(client: Client, id: str) -> None:
    """Remove the histories of the runs of a workflow id: file names and answers stand in them."""
    async for run in client.list_workflows(f"WorkflowId = '{id}'"):
        execution = WorkflowExecution(workflow_id=run.id, run_id=run.run_id)
        try:
            await client.workflow_service.delete_workflow_execution(
                DeleteWorkflowExecutionRequest(
                    namespace=client.namespace, workflow_execution=execution
                )
            )
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise

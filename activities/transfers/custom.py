"""Actions of installed packages, carried out."""

from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from activities.shared.failures import translate_failures
from activities.shared.scratch import scratch_folder
from activities.transfers.api import ActionContext, OwnActions
from activities.transfers.endpoints import StepFiles, line_of
from adapters.staging import BlobStaging
from workflows.transfers.runs import ActionInput, ActionResult
from workflows.transfers.settings import Custom


@dataclass(frozen=True)
class CustomPorts:
    """What actions of packages are carried out with."""

    actions: OwnActions
    staging: BlobStaging
    scratch: Path


class CustomActions:
    """Carries out actions of packages.

    Args:
        ports: The actions, and where files are.
    """

    def __init__(self, ports: CustomPorts) -> None:
        self._ports = ports

    @activity.defn(name="transfers.custom")
    @translate_failures
    async def custom(self, order: ActionInput) -> ActionResult:
        """Call the code of the package.

        Raises:
            RuleViolation: It is not installed here, or its settings do not fit.
        """
        action = order.action
        assert isinstance(action, Custom), "the activity is that of the action"
        own, settings = self._ports.actions.of(action)
        async with StepFiles(self._ports.staging, order) as step:
            with scratch_folder(self._ports.scratch) as folder:
                before = await step.given()
                context = ActionContext(
                    settings, order.job.event, order.job.transfer_id, tuple(before), folder, step
                )
                after = list(await own.run(context))
            known = {file.blob.name for file in before}
            left = {file.blob.name for file in after}
            lines = [line_of(file, None) for file in before if file.blob.name not in left]
            lines += [
                line_of(file if file.blob.name in known else None, file, action.name)
                for file in after
            ]
            files = await step.manifest(after)
            return await step.result(files, lines, remarks=context.remarks)

"""`transfers.fire_event`: a job sends an event on."""

from collections.abc import Mapping, Sequence

from temporalio import activity

from activities.failures import translate_failures
from activities.transfers.step_files import StepFiles, staged_files
from adapters.ports.transfers import EventSender, Staging
from contracts.transfers import ActionOrder, ActionResult, FireEvent, ReceiptFile
from domain.errors import RuleViolation
from domain.transfers.continued import fired_to
from domain.transfers.fired_events import fired_body
from domain.transfers.templates import filled, names_file


class Firing:
    """Sends events.

    Args:
        sender: Has them carried out.
        staging: Where the files of the run are listed.
    """

    def __init__(self, sender: EventSender, staging: Staging) -> None:
        self._sender, self._staging = sender, staging

    @activity.defn(name="transfers.fire_event")
    @translate_failures
    async def fire_event(self, order: ActionOrder) -> ActionResult:
        """Send one event; one for each file where its templates name the file.

        An action that is done again sends the same events, which are carried out once.

        Raises:
            RuleViolation: It would go round in a circle, is too long, or names a file that no
                action has read.
            Unavailable: It was not accepted.
        """
        action = order.action
        assert isinstance(action, FireEvent), "the activity is that of the action"
        async with StepFiles(self._staging, order) as step:
            files = await staged_files(self._staging, order.files)
            names = [file.name for file in files] or _without_files(order)
            bodies = dict.fromkeys(fired_body(order, _filled(order.names, name)) for name in names)
            sent = [await self._sender.send(body, action.queue) for body in bodies]
            where = fired_to(action.queue)
            lines = [
                ReceiptFile(name=f"event {transfer}", size=len(body.encode()), place=where)
                for transfer, body in zip(sent, bodies, strict=True)
            ]
            remarks = [] if sent else ["no event was sent: it names the file, and there was none"]
            return await step.result(order.files, lines, fired=sent, remarks=remarks)


def _without_files(order: ActionOrder) -> Sequence[str]:
    """One event where no template names a file; none where one does and a ReadFile found none.

    Raises:
        RuleViolation: A template names a file, and no action has read any.
    """
    if not any(map(names_file, order.names.values())):
        return [""]
    if order.files.blob is None:
        raise RuleViolation("FireEvent names a file: a ReadFile has to stand before it")
    return []


def _filled(templates: Mapping[str, str], name: str) -> Mapping[str, str]:
    return {field: filled(text, name) for field, text in templates.items()}

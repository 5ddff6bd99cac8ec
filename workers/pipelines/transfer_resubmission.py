"""What a person does with rejected events of transfers."""

from collections.abc import Mapping
from typing import Final

from workers.pipelines.base import Resubmission

_SENT_AGAIN: Final = (
    "have its sender send the corrected event, or send it with `docflow submit transfers FILE`"
)


def _intake_queue(environment: Mapping[str, str]) -> str | None:
    from workers.settings.transfers import INTAKE

    return environment.get(INTAKE, "").strip() or None


def _is_storage_queue(environment: Mapping[str, str], queue: str) -> bool:
    from workers.settings.transfers import queues_of

    return queue == _intake_queue(environment) or queue in queues_of(environment)


def _hub_name(environment: Mapping[str, str]) -> str:
    from workers.settings.transfers import EventHubSettings

    named = environment.get("DOCFLOW_TRANSFERS_EVENT_HUB_NAME", "").strip()
    return named or EventHubSettings.model_fields["hub"].default


STORAGE_QUEUES: Final = Resubmission(
    setting="DOCFLOW_TRANSFERS_INTAKE_QUEUE",
    queue=_intake_queue,
    owns=_is_storage_queue,
    instead=_SENT_AGAIN,
)
EVENT_HUB: Final = Resubmission(
    setting="DOCFLOW_TRANSFERS_EVENT_HUB_NAME", queue=_hub_name, instead=_SENT_AGAIN
)

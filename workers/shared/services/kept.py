"""The services of what operators keep for all pipelines, over what a gateway has opened."""

from collections.abc import Mapping
from typing import Any

from adapters.database.run_webhooks import SqlRunWebhooks
from adapters.types.store import SqlDeclaredTypes
from workers.shared.register import Context
from workers.shared.services.errands import PATIENCE_SECONDS, ErrandService
from workers.shared.services.letter_service import DeadLetterService
from workers.shared.services.rejected import RejectedService
from workers.shared.services.runs import TemporalRuns
from workers.shared.services.schedules import ScheduleService
from workers.shared.services.status_service import StatusService, TypeService
from workers.shared.services.webhooks import WebhookService


def kept_services(context: Context, patience: float = PATIENCE_SECONDS) -> Mapping[type, Any]:
    """The services by class, as `create_app` is given them; errands wait so many seconds."""
    client, environment = context.client, context.environment
    errands, database = ErrandService(client, patience), context.resources.database
    receivers = context.resources.receivers
    return {
        ErrandService: errands,
        ScheduleService: ScheduleService(client, environment),
        RejectedService: RejectedService(context.resources.rejected, errands, environment),
        DeadLetterService: DeadLetterService(errands),
        StatusService: StatusService(TemporalRuns(client, environment), database),
        TypeService: TypeService(SqlDeclaredTypes(database)),
        WebhookService: WebhookService(SqlRunWebhooks(database), receivers, client),
    }

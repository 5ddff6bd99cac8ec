"""What tells receivers of the runs of every pipeline, over what a worker has opened."""

from activities.shared.run_webhooks import RunWebhooks
from adapters.database.run_webhooks import SqlRunWebhooks
from adapters.database.runs import SqlRuns
from adapters.webhooks import HttpWebhooks, SecretKeys
from workers import catalogue
from workers.shared.resources import Resources


def webhook_steps(common: Resources) -> RunWebhooks:
    """The steps of a worker; one pipeline's workers do it for all."""
    settings, database = common.receivers, common.database
    return RunWebhooks(
        SqlRuns(database),
        SqlRunWebhooks(database),
        HttpWebhooks(local=settings.local),
        SecretKeys(settings.secret_keys),
        hosts=settings.hosts,
        local=settings.local,
        rejected={each.name: each.rejected_rows for each in catalogue.PIPELINES},
    )

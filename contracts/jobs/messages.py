"""How a job is asked for."""

from datetime import datetime
from typing import Final

from pydantic import ConfigDict, Field

from contracts.base import Contract
from contracts.jobs.definitions import JobTypeName
from contracts.jobs.records import JsonObject
from contracts.jobs.texts import ShownName

MESSAGE_BYTES: Final = 256 * 1024
"""A request that is longer is refused."""
WEBHOOK_URLS: Final = 10


class WebhookParameters(Contract):
    """Who is notified when a job has ended, as its request says; the secret is not passed on."""

    webhook_url: str | tuple[str, ...] | None = None
    webhook_secret: str | None = Field(default=None, min_length=1, max_length=500, repr=False)
    webhook_secret_name: str | None = Field(default=None, max_length=100)
    """A secret in the settings, instead of one that travels with the request."""
    webhook_retry_count: int = Field(default=3, ge=0, le=20)
    webhook_timeout_seconds: int = Field(default=30, ge=1, le=120)


class JobQueueMessage(Contract):
    """A message of the queue, as the system that docflow replaces sends it."""

    job_id: ShownName = Field(min_length=1, max_length=200)
    """Foreign: kept as the job's alias."""
    job_type: JobTypeName
    stage: int = 1
    """Above 1 it asks to continue a job of the other system, which cannot be done here."""
    parameters: JsonObject = Field(repr=False)
    """Those of the job, with those of its webhook, whose secret no log may show."""
    stage_results: JsonObject = Field(default_factory=dict)
    timestamp: datetime | None = None


class JobRequest(Contract):
    """The same by HTTP or on the command line; an unknown field is a mistake."""

    # FastAPI builds what it checks a body with when the application is made.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=False)

    job_type: JobTypeName
    parameters: JsonObject = Field(default_factory=dict, repr=False)
    """Those of the job, with those of its webhook, whose secret no log may show."""
    project: ShownName | None = Field(default=None, max_length=128)
    """Fairness: work of one project does not hold that of another up. None: of the type."""
    alias: ShownName | None = Field(default=None, max_length=200)
    limit: int | None = Field(default=None, ge=1)
    """A trial run: every stage begins with no more than this many tasks."""
    rerun: bool = False
    """Do it again although it was done: another attempt of the same job."""

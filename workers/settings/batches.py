"""Settings of the `batches` pipeline, read once from the environment by the process."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, cast

from pydantic import TypeAdapter, ValidationError

from adapters.aws.session import AwsSettings
from contracts.batches import LONGEST_PREFIX, BatchPlan, Timings
from workers.settings.common import SettingsError, number

logger = logging.getLogger(__name__)

DEFAULT_PREFIX: Final = "docflow"
_DAY: Final = 24 * 3600
_TIMES: Final = {
    "settle": "DOCFLOW_BATCH_SETTLE_SECONDS",
    "poll": "DOCFLOW_BATCH_POLL_SECONDS",
    "hold": "DOCFLOW_BATCH_HOLD_SECONDS",
    "max_redrives": "DOCFLOW_BATCH_MAX_REDRIVES",
    "grace": "DOCFLOW_BATCH_GRACE_SECONDS",
    "stuck_after": "DOCFLOW_BATCH_STUCK_AFTER_SECONDS",
    "delivery": "DOCFLOW_BATCH_DELIVERY_SECONDS",
    "end": "DOCFLOW_BATCH_END_SECONDS",
    "patience": "DOCFLOW_BATCH_PATIENCE_SECONDS",
}
_LIMITS: Final = {"poll": (1, _DAY), "max_redrives": (0, 20)}


@dataclass(frozen=True)
class BatchSettings:
    """Where batches are built, from what, and by which times."""

    aws: AwsSettings
    plan: BatchPlan
    timings: Timings
    case_events_queue_url: str | None
    """Where case events come from; the bridge wants it."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read and check.

        Raises:
            SettingsError: One is missing or makes no sense.
        """
        return cls(
            aws=read_aws(environment),
            plan=_plan(environment),
            timings=read_timings(environment),
            case_events_queue_url=_case_events_queue_url(environment),
        )

    @classmethod
    def given(cls, environment: Mapping[str, str]) -> bool:
        """Whether this process is meant to know about batches."""
        return bool(environment.get("DOCFLOW_BATCH_TOPIC_ARN"))

    def case_events_queue(self) -> str:
        """URL of the case-events queue.

        Raises:
            SettingsError: It is not set, or no URL.
        """
        if self.case_events_queue_url is None:
            raise SettingsError(
                "missing setting: DOCFLOW_CASE_EVENTS_QUEUE_URL; "
                "the SQS queue that case events come through"
            )
        if not self.case_events_queue_url.startswith(("http://", "https://")):
            raise SettingsError(
                "DOCFLOW_CASE_EVENTS_QUEUE_URL must be the URL of an SQS queue, "
                f"not {self.case_events_queue_url!r}"
            )
        return self.case_events_queue_url


def _case_events_queue_url(environment: Mapping[str, str]) -> str | None:
    if url := environment.get("DOCFLOW_CASE_EVENTS_QUEUE_URL"):
        return url
    if url := environment.get("DOCFLOW_JOBS_QUEUE_URL"):
        logger.warning(
            "DOCFLOW_JOBS_QUEUE_URL is now DOCFLOW_CASE_EVENTS_QUEUE_URL; "
            "the old name will be removed"
        )
        return url
    return None


def read_aws(environment: Mapping[str, str]) -> AwsSettings:
    """Where AWS is, by the names that its own tools use.

    Raises:
        SettingsError: There is no region, half a key, or an endpoint that is no address.
    """
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not region:
        raise SettingsError("missing setting: AWS_REGION; the region that batches are built in")
    endpoint = environment.get("AWS_ENDPOINT_URL") or None
    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        raise SettingsError(f"AWS_ENDPOINT_URL must begin with http:// or https://: {endpoint!r}")
    settings = AwsSettings(
        region=region,
        endpoint_url=endpoint,
        access_key_id=environment.get("AWS_ACCESS_KEY_ID") or None,
        secret_access_key=environment.get("AWS_SECRET_ACCESS_KEY") or None,
        session_token=environment.get("AWS_SESSION_TOKEN") or None,
    )
    if (settings.access_key_id is None) != (settings.secret_access_key is None):
        raise SettingsError(
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong together: set both, or neither "
            "where AWS finds out by itself who asks"
        )
    return settings


def _plan(environment: Mapping[str, str]) -> BatchPlan:
    wanted: dict[str, Any] = {
        "prefix": environment.get("DOCFLOW_BATCH_PREFIX") or DEFAULT_PREFIX,
        "topic_arn": _required(environment, "DOCFLOW_BATCH_TOPIC_ARN"),
        "with_function": _flag(environment, "DOCFLOW_BATCH_WITH_FUNCTION", default=True),
        "filter_scope": environment.get("DOCFLOW_BATCH_FILTER_SCOPE") or "MessageAttributes",
        "grants": _arns(environment, "DOCFLOW_BATCH_GRANTS"),
        "environment": _object(environment, "DOCFLOW_BATCH_FUNCTION_ENVIRONMENT"),
        "max_receives": number(environment, "DOCFLOW_BATCH_MAX_RECEIVES", 3, 1, 1000),
        "concurrency": number(environment, "DOCFLOW_BATCH_CONCURRENCY", 10, 2, 1000),
    }
    if wanted["with_function"]:
        wanted["source_function"] = _required(environment, "DOCFLOW_BATCH_SOURCE_FUNCTION")
    else:
        wanted["source_function"] = "none"
    try:
        return BatchPlan.model_validate(wanted)
    except ValidationError as error:
        raise _wrong(error) from error


def read_timings(environment: Mapping[str, str]) -> Timings:
    """The times of every batch that brings none of its own.

    Raises:
        SettingsError: One is out of range.
    """
    defaults = Timings().model_dump()
    times: dict[str, int] = {}
    for field, name in _TIMES.items():
        least, most = _LIMITS.get(field, (0, 30 * _DAY))
        times[field] = number(environment, name, cast(int, defaults[field]), least, most)
    return Timings(**times)


def _required(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name)
    if not value:
        raise SettingsError(
            f"missing setting: {name}; batches need it, see docs/batches.md, "
            "or run `make dev` for a stack that has everything"
        )
    return value


def _flag(environment: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = environment.get(name, "").strip().lower()
    if text in ("", "true", "yes", "1", "false", "no", "0"):
        return default if not text else text in ("true", "yes", "1")
    raise SettingsError(f"{name} must be true or false, not {text!r}")


def _arns(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    arns = tuple(part.strip() for part in environment.get(name, "").split(",") if part.strip())
    for arn in arns:
        if not arn.startswith("arn:"):
            raise SettingsError(f"{name} must be ARNs with commas between them, not {arn!r}")
    return arns


def _object(environment: Mapping[str, str], name: str) -> dict[str, str]:
    # What it says is not repeated: it may hold a secret.
    text = environment.get(name, "").strip()
    if not text:
        return {}
    try:
        said = _TEXTS.validate_json(text, strict=True)
    except ValidationError:
        raise SettingsError(
            f"{name} must be a JSON object of names and texts, "
            'such as {"TEMPORAL_ADDRESS": "temporal:7233"}'
        ) from None
    return said


_TEXTS: Final = TypeAdapter(dict[str, str])
_RULES: Final = {
    "prefix": (
        "DOCFLOW_BATCH_PREFIX",
        f"must be up to {LONGEST_PREFIX} letters, digits, - and _, the first a letter or a digit",
    ),
    "topic_arn": ("DOCFLOW_BATCH_TOPIC_ARN", "must be the ARN of an SNS topic: arn:aws:sns:..."),
    "source_function": (
        "DOCFLOW_BATCH_SOURCE_FUNCTION",
        "must be the name or ARN of a function, up to 140 characters",
    ),
    "grants": ("DOCFLOW_BATCH_GRANTS", "takes up to 16 ARNs of up to 512 characters"),
    "environment": ("DOCFLOW_BATCH_FUNCTION_ENVIRONMENT", "takes up to 50 names"),
    "filter_scope": (
        "DOCFLOW_BATCH_FILTER_SCOPE",
        "must be MessageAttributes or MessageBody: where publishers put eventType",
    ),
}
"""Field of the plan to its setting, and what that takes."""


def _wrong(error: ValidationError) -> SettingsError:
    name, rule = _RULES[str(error.errors(include_url=False, include_input=False)[0]["loc"][0])]
    return SettingsError(f"{name} {rule}")

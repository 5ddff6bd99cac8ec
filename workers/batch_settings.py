"""Settings of the `batches` pipeline, read once from the environment by the process."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, cast

from pydantic import ValidationError

from adapters.aws.session import AwsSettings
from contracts.batches import BatchPlan, Timings
from workers.settings import SettingsError, number

DEFAULT_PREFIX: Final = "docflow"
_DAY: Final = 24 * 3600
_TIMES: Final = {
    "settle": "SETTLE_SECONDS",
    "poll": "POLL_SECONDS",
    "hold": "HOLD_SECONDS",
    "max_redrives": "MAX_REDRIVES",
    "grace": "GRACE_SECONDS",
    "stuck_after": "STUCK_AFTER_SECONDS",
    "delivery": "DELIVERY_SECONDS",
    "end": "END_SECONDS",
    "patience": "PATIENCE_SECONDS",
}
_LIMITS: Final = {"poll": (1, _DAY), "max_redrives": (0, 20)}


@dataclass(frozen=True)
class BatchSettings:
    """Where batches are built, from what, and by which times."""

    aws: AwsSettings
    plan: BatchPlan
    timings: Timings
    jobs_queue_url: str | None
    """Where job events come from; the bridge wants it."""

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
            jobs_queue_url=environment.get("DOCFLOW_JOBS_QUEUE_URL") or None,
        )

    @classmethod
    def given(cls, environment: Mapping[str, str]) -> bool:
        """Whether this process is meant to know about batches."""
        return bool(environment.get("DOCFLOW_BATCH_TOPIC_ARN"))

    def jobs_queue(self) -> str:
        """URL of the jobs queue.

        Raises:
            SettingsError: It is not set.
        """
        if self.jobs_queue_url is None:
            raise SettingsError(
                "missing setting: DOCFLOW_JOBS_QUEUE_URL; the queue that job events come through"
            )
        return self.jobs_queue_url


def read_aws(environment: Mapping[str, str]) -> AwsSettings:
    """Where AWS is, by the names that its own tools use.

    Raises:
        SettingsError: There is no region.
    """
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not region:
        raise SettingsError("missing setting: AWS_REGION; the region that batches are built in")
    return AwsSettings(
        region=region,
        endpoint_url=environment.get("AWS_ENDPOINT_URL") or None,
        access_key_id=environment.get("AWS_ACCESS_KEY_ID") or None,
        secret_access_key=environment.get("AWS_SECRET_ACCESS_KEY") or None,
        session_token=environment.get("AWS_SESSION_TOKEN") or None,
    )


def _plan(environment: Mapping[str, str]) -> BatchPlan:
    wanted: dict[str, Any] = {
        "prefix": environment.get("DOCFLOW_BATCH_PREFIX") or DEFAULT_PREFIX,
        "topic_arn": _required(environment, "DOCFLOW_BATCH_TOPIC_ARN"),
        "with_function": _flag(environment, "DOCFLOW_BATCH_WITH_FUNCTION", default=True),
        "filter_scope": environment.get("DOCFLOW_BATCH_FILTER_SCOPE") or "MessageAttributes",
        "grants": tuple(
            arn.strip()
            for arn in environment.get("DOCFLOW_BATCH_GRANTS", "").split(",")
            if arn.strip()
        ),
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
        times[field] = number(
            environment, f"DOCFLOW_BATCH_{name}", cast(int, defaults[field]), least, most
        )
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


def _object(environment: Mapping[str, str], name: str) -> dict[str, str]:
    text = environment.get(name, "").strip()
    if not text:
        return {}
    try:
        said = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"{name} must be a JSON object of texts: {error}") from error
    if not isinstance(said, dict) or not all(
        isinstance(value, str) for value in cast(dict[str, Any], said).values()
    ):
        raise SettingsError(f"{name} must be a JSON object of texts")
    return cast(dict[str, str], said)


_NAMES: Final = {
    "prefix": "DOCFLOW_BATCH_PREFIX",
    "topic_arn": "DOCFLOW_BATCH_TOPIC_ARN",
    "source_function": "DOCFLOW_BATCH_SOURCE_FUNCTION",
    "grants": "DOCFLOW_BATCH_GRANTS",
    "environment": "DOCFLOW_BATCH_FUNCTION_ENVIRONMENT",
    "filter_scope": "DOCFLOW_BATCH_FILTER_SCOPE",
}


def _wrong(error: ValidationError) -> SettingsError:
    problem = error.errors(include_url=False, include_input=False)[0]
    name = _NAMES.get(str(problem["loc"][0]), str(problem["loc"][0]))
    return SettingsError(f"{name}: {problem['msg']}")

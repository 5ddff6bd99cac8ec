"""Settings of the `batches` pipeline."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from workers.shared.errors import SettingsError
from workers.shared.settings.aws import CloudSettings
from workers.shared.settings.base import Missing, Setting, Settings, Whole, parse_flag, parse_list
from workflows.batches.names import (
    API_KEY,
    API_KEY_SECRET,
    FEWEST_AT_ONCE,
    LONGEST_PREFIX,
    MOST_AT_ONCE,
    BatchPlan,
    Timings,
)
from workflows.shared.contracts import built_when_used

_DAY: Final = 24 * 3600

Seconds = Annotated[int, Whole(0, 30 * _DAY)]


class TimingSettings(Settings):
    """[Times](../batches.md#times) of every batch that has none of its own."""

    title: ClassVar[str] = "Times of batches"
    used_by: ClassVar[str] = "bridges of batches, `docflow gateway`"

    settle: Seconds = Field(
        60,
        validation_alias="DOCFLOW_BATCH_SETTLE_SECONDS",
        description="seconds before the first look at its queues",
    )
    poll: Annotated[int, Whole(1, _DAY)] = Field(
        180,
        validation_alias="DOCFLOW_BATCH_POLL_SECONDS",
        description="seconds between two looks",
    )
    hold: Seconds = Field(
        60,
        validation_alias="DOCFLOW_BATCH_HOLD_SECONDS",
        description="seconds that its queue must stay empty",
    )
    max_redrives: Annotated[int, Whole(0, 20)] = Field(
        2,
        validation_alias="DOCFLOW_BATCH_MAX_REDRIVES",
        description="passes over its dead letters",
    )
    grace: Seconds = Field(
        900,
        validation_alias="DOCFLOW_BATCH_GRACE_SECONDS",
        description="seconds that a lock without infrastructure is respected",
    )
    stuck_after: Seconds = Field(
        21_600,
        validation_alias="DOCFLOW_BATCH_STUCK_AFTER_SECONDS",
        description="seconds that it may delay its case without loading",
    )
    delivery: Seconds = Field(
        900,
        validation_alias="DOCFLOW_BATCH_DELIVERY_SECONDS",
        description="seconds that a filter policy may take to work",
    )
    end: Seconds = Field(
        21_600,
        validation_alias="DOCFLOW_BATCH_END_SECONDS",
        description="seconds that BATCH_END_FINISHED may take before the batch parks",
    )
    patience: Seconds = Field(
        21_600,
        validation_alias="DOCFLOW_BATCH_PATIENCE_SECONDS",
        description="seconds that a parked batch waits for an answer",
    )
    slow_after: Seconds = Field(
        86_400,
        validation_alias="DOCFLOW_BATCH_SLOW_AFTER_SECONDS",
        description="seconds that it may load, or drain, before people are asked to look at it",
    )

    @property
    def timings(self) -> Timings:
        """The times, as runs take them."""
        return Timings(**{name: getattr(self, name) for name in Timings.model_fields})


DEFAULT_PREFIX: Final = "docflow"
_HINT: Final = (
    "batches need it, see docs/batches.md, or run `make dev` for a stack that has everything"
)
_QUEUE_HINT: Final = "the SQS queue that case events come through"
_TEXTS: Final = TypeAdapter(dict[str, str], config=built_when_used())


def _as_in_plan(field: str) -> AfterValidator:
    """What the contract allows, so that limits are stated once."""
    info = BatchPlan.model_fields[field]
    adapter: TypeAdapter[Any] = TypeAdapter(info.rebuild_annotation())
    return AfterValidator(lambda value: value if value is None else adapter.validate_python(value))


def _queue_url(value: str | None) -> str | None:
    if value is not None and not value.startswith(("http://", "https://")):
        raise ValueError(f"must be the URL of an SQS queue, not {value!r}")
    return value


def _arns(value: tuple[str, ...]) -> tuple[str, ...]:
    for arn in value:
        if not arn.startswith("arn:"):
            raise ValueError(f"must be ARNs with commas between them, not {arn!r}")
    return value


def _texts(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return _TEXTS.validate_json(value, strict=True)
    except ValidationError:
        # What it says is not repeated: it may hold a secret.
        raise ValueError(
            "must be a JSON object of names and texts, "
            'such as {"TEMPORAL_ADDRESS": "temporal:7233"}'
        ) from None


class BatchSettings(CloudSettings, TimingSettings):
    """Where batches are built, and from what."""

    title: ClassVar[str] = "Infrastructure of batches"
    used_by: ClassVar[str] = "workers and bridges of batches, `docflow setup`"

    topic_arn: Annotated[
        str,
        _as_in_plan("topic_arn"),
        Setting(kind="ARN", hint=_HINT, rule="must be the ARN of an SNS topic: arn:aws:sns:..."),
    ] = Field(
        validation_alias="DOCFLOW_BATCH_TOPIC_ARN",
        description="topic of documents and announcements; without it `docflow worker all` "
        "leaves batches out",
    )
    with_function: Annotated[bool, BeforeValidator(parse_flag)] = Field(
        True,
        validation_alias="DOCFLOW_BATCH_WITH_FUNCTION",
        description="`false`: `docflow bridge batch-loader` takes the functions' place",
    )
    source_function: Annotated[
        str | None,
        Setting(
            kind="text",
            default="required with functions",
            rule="must be the name or ARN of a function, up to 140 characters",
        ),
        _as_in_plan("source_function"),
    ] = Field(
        None,
        validation_alias="DOCFLOW_BATCH_SOURCE_FUNCTION",
        description="name or ARN of the function that is cloned for every batch",
        validate_default=True,
    )
    case_events_queue_url: Annotated[
        str | None,
        AfterValidator(_queue_url),
        Setting(
            kind="URL",
            former="DOCFLOW_JOBS_QUEUE_URL",
            hint=_QUEUE_HINT,
            default="required by the bridge of case events",
        ),
    ] = Field(
        None,
        validation_alias="DOCFLOW_CASE_EVENTS_QUEUE_URL",
        description="SQS queue that case events come through",
        validate_default=True,
    )
    prefix: Annotated[
        str,
        _as_in_plan("prefix"),
        Setting(
            kind=f"text, up to {LONGEST_PREFIX} characters",
            rule=f"must be up to {LONGEST_PREFIX} letters, digits, - and _, the first a letter "
            "or a digit",
        ),
    ] = Field(
        DEFAULT_PREFIX,
        validation_alias="DOCFLOW_BATCH_PREFIX",
        description="begins the names of all resources, and distinguishes installations",
    )
    concurrency: Annotated[int, Whole(FEWEST_AT_ONCE, MOST_AT_ONCE)] = Field(
        10,
        validation_alias="DOCFLOW_BATCH_CONCURRENCY",
        description="of a batch's function, where its case names none",
    )
    filter_policies: Annotated[int, Whole(1, 10_000)] = Field(
        200,
        validation_alias="DOCFLOW_BATCH_FILTER_POLICIES",
        description="of the topic that batches may have at once; others wait in order",
    )
    reserved_concurrency: Annotated[int, Whole(2, 100_000)] = Field(
        900,
        validation_alias="DOCFLOW_BATCH_RESERVED_CONCURRENCY",
        description="of the account that batches may reserve at once; others wait in order",
    )
    max_receives: Annotated[int, Whole(1, 1000)] = Field(
        3,
        validation_alias="DOCFLOW_BATCH_MAX_RECEIVES",
        description="receives of a message before it is a dead letter",
    )
    canaries: Annotated[int, Whole(1, 20)] = Field(
        1,
        validation_alias="DOCFLOW_BATCH_CANARIES",
        description="canaries that have to arrive before delivery to a batch counts as proven",
    )
    kms_key: Annotated[
        str | None,
        _as_in_plan("kms_key"),
        Setting(kind="text", rule="must be the id, the ARN or the alias of a key of KMS"),
    ] = Field(
        None,
        validation_alias="DOCFLOW_BATCH_KMS_KEY",
        description="customer-managed key of the queues; without it SQS encrypts with one of its "
        "own",
    )
    tags: Annotated[
        dict[str, str],
        BeforeValidator(_texts),
        _as_in_plan("tags"),
        Setting(
            kind="JSON object of texts",
            default="none",
            rule="takes up to 20 names without colons, up to 128 characters each, with texts of "
            "up to 256",
        ),
    ] = Field(
        default_factory=dict[str, str],
        validation_alias="DOCFLOW_BATCH_TAGS",
        description="tags of queues and functions, beside `docflow:workflow`",
    )
    filter_scope: Annotated[
        Literal["MessageAttributes", "MessageBody"],
        Setting(
            kind="`MessageAttributes` or `MessageBody`",
            rule="must be MessageAttributes or MessageBody: where publishers put eventType",
        ),
    ] = Field(
        "MessageAttributes",
        validation_alias="DOCFLOW_BATCH_FILTER_SCOPE",
        description="`MessageBody` where publishers have event type, case and batch there alone",
    )
    grants: Annotated[
        tuple[str, ...],
        BeforeValidator(parse_list),
        AfterValidator(_arns),
        _as_in_plan("grants"),
        Setting(kind="ARNs, with commas", rule="takes up to 16 ARNs of up to 512 characters"),
    ] = Field(
        (),
        validation_alias="DOCFLOW_BATCH_GRANTS",
        description="secrets and database users that functions may use",
    )
    function_environment: Annotated[
        dict[str, str],
        BeforeValidator(_texts),
        _as_in_plan("environment"),
        Setting(
            secret=True,
            kind="JSON object of texts",
            default="none",
            rule="takes up to 24 names of letters, digits and _, up to 64 characters each, "
            "with texts of up to 256",
        ),
    ] = Field(
        default_factory=dict[str, str],
        validation_alias="DOCFLOW_BATCH_FUNCTION_ENVIRONMENT",
        description="variables of functions beyond those of their source",
    )

    @field_validator("function_environment")
    @classmethod
    def _without_key(cls, value: dict[str, str]) -> dict[str, str]:
        if API_KEY in value:
            raise ValueError(
                f"takes no {API_KEY}: keep the key in Secrets Manager, and give {API_KEY_SECRET} "
                "the ARN of the secret"
            )
        return value

    @field_validator("source_function")
    @classmethod
    def _needed_by_functions(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and info.data.get("with_function"):
            raise Missing(_HINT)
        return value

    @classmethod
    def given(cls, environment: Mapping[str, str]) -> bool:
        """Whether this process is meant to know about batches."""
        return bool(environment.get("DOCFLOW_BATCH_TOPIC_ARN"))

    @property
    def plan(self) -> BatchPlan:
        """What batches are built from."""
        own = BatchPlan.model_fields.keys() & type(self).model_fields.keys()
        return BatchPlan(
            **{name: getattr(self, name) for name in own - {"source_function"}},
            source_function=(self.with_function and self.source_function) or "none",
            environment=self.function_environment,
            static_permissions=True,
            leases=True,
            proof_by_timer=True,
        )

    def case_events_queue(self) -> str:
        """URL of the case-events queue.

        Raises:
            SettingsError: It is not set.
        """
        if self.case_events_queue_url is None:
            raise SettingsError(f"missing setting: DOCFLOW_CASE_EVENTS_QUEUE_URL; {_QUEUE_HINT}")
        return self.case_events_queue_url


class CaseEventSettings(BatchSettings):
    """Those of batches, where case events are received: their queue is required."""

    @field_validator("case_events_queue_url")
    @classmethod
    def _needed_to_receive(cls, value: str | None) -> str | None:
        if value is None:
            raise Missing(_QUEUE_HINT)
        return value


def read_timings(environment: Mapping[str, str]) -> Timings:
    """The times of every batch that brings none of its own.

    Raises:
        SettingsError: One is out of range.
    """
    return TimingSettings.read(environment).timings

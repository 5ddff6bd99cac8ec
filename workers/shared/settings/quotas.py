"""Settings of the quotas of organisations."""

from typing import Annotated, ClassVar, Final

from pydantic import Field

from workers.shared.settings.base import Settings, Whole

_MOST: Final = 10**15


class QuotaSettings(Settings):
    """How much one organisation may bring to the gateway.

    More gets 429 with `Retry-After`. 0: no limit.
    """

    title: ClassVar[str] = "Quotas"
    used_by: ClassVar[str] = "`docflow gateway`"

    runs: Annotated[int, Whole(0, 1_000_000)] = Field(
        0,
        validation_alias="DOCFLOW_QUOTA_RUNS",
        description="runs in progress: uploads, jobs and transfers, those that wait included",
    )
    rows: Annotated[int, Whole(0, _MOST)] = Field(
        0,
        validation_alias="DOCFLOW_QUOTA_ROWS",
        description="rows of uploads and jobs within 24 hours; the run that goes beyond it is "
        "still taken, because its rows are counted when they are read",
    )
    size: Annotated[int, Whole(0, _MOST)] = Field(
        0,
        validation_alias="DOCFLOW_QUOTA_BYTES",
        description="bytes of uploads, transfers and jobs within 24 hours; those of a transfer or "
        "job are counted when they are read",
    )
    requests: Annotated[int, Whole(0, 10_000_000)] = Field(
        0,
        validation_alias="DOCFLOW_QUOTA_REQUESTS",
        description="requests to the API of one gateway in a minute by all callers whose first "
        "organisation it is; operators of the installation are not counted",
    )

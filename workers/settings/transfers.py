"""Settings of the `transfers` pipeline."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from domain.errors import RuleViolation
from domain.transfers.queues import Queue, read_queues
from workers.settings.base import Setting, Settings
from workers.settings.errors import SettingsError

QUEUES: Final = "DOCFLOW_TRANSFERS_QUEUES"
BLOB: Final = "blob:"
"""Begins the name of a blob in the container of the documents."""
_SHIPPED: Final = Path(__file__).parents[1] / "config" / "queues.yaml"


def _settings_place(value: str) -> str:
    if value.startswith(BLOB):
        if not value.removeprefix(BLOB):
            raise ValueError("must name a blob after `blob:`")
    elif "://" in value and urlsplit(value).scheme != "https":
        raise ValueError("must be a path, `blob:NAME` or an https:// address")
    return value


class TransferSettings(Settings):
    """What workers of transfers do, and for whom."""

    title: ClassVar[str] = "Transfers"
    used_by: ClassVar[str] = "workers of transfers, `docflow transfers`, `docflow routes`"

    job_settings: Annotated[
        str,
        AfterValidator(_settings_place),
        Setting(kind="path, `blob:NAME` or https:// address"),
    ] = Field(
        "jobsettings.json",
        validation_alias="DOCFLOW_TRANSFERS_SETTINGS",
        description="the file of job settings, [jobsettings.json](../transfers.md#job-settings); "
        "without it, `docflow worker all` leaves out transfers",
    )
    queue_file: Annotated[
        Path | None, Setting(kind="file", default="the queues that docflow ships")
    ] = Field(
        None,
        validation_alias=QUEUES,
        description="the queues, with their slots and rates",
    )


def queues_of(environment: Mapping[str, str]) -> Mapping[str, Queue]:
    """The queues that the settings name, by name.

    Raises:
        SettingsError: The file is missing or wrong.
    """
    named = TransferSettings.read(environment).queue_file
    try:
        return read_queues((named or _SHIPPED).read_text("utf-8"))
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise SettingsError(f"{QUEUES}: {named} cannot be read: {said}") from error
    except RuleViolation as error:
        raise SettingsError(f"{QUEUES}: {named or 'the file of docflow'}: {error}") from error

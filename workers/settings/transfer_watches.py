"""The file of watches and of expected files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Final

from pydantic import Field

from contracts.transfers.watches import Watch
from domain.errors import RuleViolation
from domain.transfers.expectations import Clocks, read_clocks
from domain.transfers.sightings import check_watch
from workers.settings.base import Setting, Settings
from workers.settings.errors import SettingsError
from workers.settings.transfers import queues_of

WATCHES: Final = "DOCFLOW_TRANSFERS_WATCHES"


class WatchSettings(Settings):
    """What transfers do by the clock."""

    title: ClassVar[str] = "Watches of transfers"
    used_by: ClassVar[str] = (
        "workers of transfers, `docflow schedules`, `docflow transfers watches`, "
        "`docflow transfers expected`"
    )

    file: Annotated[Path | None, Setting(kind="file")] = Field(
        None,
        validation_alias=WATCHES,
        description="[watches and expected files](../transfers-watches.md); without it there are "
        "none, and schedules of earlier ones are left alone",
    )


def clocks_of(environment: Mapping[str, str]) -> Clocks | None:
    """Watches and expected files, as the settings name them; None: no file is named.

    Raises:
        SettingsError: The file is missing or wrong.
    """
    named = WatchSettings.read(environment).file
    if named is None:
        return None
    try:
        clocks = read_clocks(named.read_text("utf-8"))
        for watch in clocks.watches.values():
            check_watch(watch)
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else str(error)
        raise SettingsError(f"{WATCHES}: {named} cannot be read: {problem}") from error
    except RuleViolation as error:
        raise SettingsError(f"{WATCHES}: {named}: {error}") from error
    queues = queues_of(environment)
    for each in (*clocks.watches.values(), *clocks.expected.values()):
        if each.queue is not None and each.queue not in queues:
            raise SettingsError(f"{WATCHES}: {named}: {each.name}: there is no queue {each.queue}")
    return clocks


def watches_of(environment: Mapping[str, str]) -> Mapping[str, Watch]:
    """Watches by name; none where no file is named.

    Raises:
        SettingsError: The file is missing or wrong.
    """
    clocks = clocks_of(environment)
    return {} if clocks is None else clocks.watches

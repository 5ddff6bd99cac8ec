"""The requirements of a process, or of a whole installation, opened together."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from adapters.database.engine import open_database
from workers.shared.errors import SettingsError
from workers.shared.register import Bridge, Pipeline, load
from workers.shared.services.requirements import (
    Requirement,
    Result,
    all_of,
    container_of,
    left_out,
    not_tried,
    schema_of,
    scratch_of,
    there,
    unreadable,
)
from workers.shared.services.run_notifications import read_addresses
from workers.shared.services.temporal_requirements import (
    Connection,
    fairness_of,
    search_attributes_of,
)
from workers.shared.settings.check import check_settings
from workers.shared.settings.common import (
    AddressSettings,
    BlobSettings,
    DatabaseSettings,
    NotificationSettings,
    ScratchSettings,
)


@asynccontextmanager
async def open_requirements(
    environment: Mapping[str, str],
    connection: Connection,
    pipelines: Iterable[Pipeline],
    *,
    with_resources: bool = True,
) -> AsyncGenerator[Sequence[Requirement]]:
    """What a process needs, until the block ends.

    A bridge says by itself that its queue is missing.

    Args:
        environment: Where settings are read.
        connection: To Temporal.
        pipelines: Those that the process works on.
        with_resources: It uses database and blob store.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    async with AsyncExitStack() as stack:
        found = [search_attributes_of(connection)]
        if with_resources:
            found += await _resources(environment, stack)
            found.append(scratch_of(ScratchSettings.read(environment).folder))
        for pipeline in pipelines:
            if pipeline.requirements is not None:
                opened = load(pipeline.requirements)(environment)
                found += await stack.enter_async_context(opened)
        yield found


async def set_up(
    environment: Mapping[str, str],
    connection: Connection,
    pipelines: Iterable[Pipeline],
    *,
    only_check: bool,
    leave_out: bool = True,
) -> AsyncIterator[Result]:
    """Check everything that an installation needs, and make what is missing.

    Args:
        environment: Where settings are read.
        connection: To Temporal.
        pipelines: Those that the installation uses.
        only_check: Change nothing.
        leave_out: Those that a worker of all pipelines leaves out are left out here too, and said
            to be.

    Raises:
        SettingsError: A setting of database or blob store is missing or wrong.
    """
    fairness = fairness_of(connection)
    if only_check:
        fairness = not_tried(fairness, "`docflow setup` tries it by runs")
    async with AsyncExitStack() as stack:
        common = [search_attributes_of(connection), *await _resources(environment, stack)]
        async for result in all_of([*common, fairness], only_check=only_check):
            yield result
    yield notices_of(environment)
    for pipeline in pipelines:
        if leave_out and (reason := pipeline.left_out(environment)):
            yield left_out(pipeline.name, reason)
            continue
        async for result in _of_pipeline(environment, pipeline, only_check=only_check):
            yield result


async def _of_pipeline(
    environment: Mapping[str, str], pipeline: Pipeline, *, only_check: bool
) -> AsyncIterator[Result]:
    async for result in _opened(environment, pipeline, only_check=only_check):
        yield result
    for bridge in pipeline.bridges:
        sender = bridge.resubmission
        if sender is not None and sender.queue(environment) is None:
            yield left_out(f"bridge {bridge.name}", f"{sender.setting} is not set")
            continue
        async for result in _opened(environment, bridge, only_check=only_check):
            yield result


async def _opened(
    environment: Mapping[str, str], part: Pipeline | Bridge, *, only_check: bool
) -> AsyncIterator[Result]:
    if part.requirements is None:
        return
    async with AsyncExitStack() as stack:
        try:
            found = await stack.enter_async_context(load(part.requirements)(environment))
        except SettingsError as error:
            yield unreadable(part.name, error)
            return
        async for result in all_of(found, only_check=only_check):
            yield result


def notices_of(environment: Mapping[str, str]) -> Result:
    """Whether workers can read who is sent notices, and where they link to."""
    try:
        check_settings(environment, AddressSettings, NotificationSettings)
        read_addresses(environment)
        settings = NotificationSettings.read(environment)
    except SettingsError as error:
        return unreadable("notices", error)
    named = {"webhook": settings.webhook_url, "mail": settings.smtp_url}
    if ways := [name for name, value in named.items() if value is not None]:
        return there("notices", f"by {' and '.join(ways)}")
    return left_out("notices", "neither DOCFLOW_NOTIFY_WEBHOOK_URL nor DOCFLOW_SMTP_URL is set")


async def _resources(environment: Mapping[str, str], stack: AsyncExitStack) -> list[Requirement]:
    settings = DatabaseSettings.read(environment)
    database = await stack.enter_async_context(open_database(settings.url, settings.options))
    return [schema_of(database, settings), container_of(BlobSettings.read(environment))]

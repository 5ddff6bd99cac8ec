"""Rules in Azure Tables, as the system that docflow replaces keeps them."""

import asyncio
from collections.abc import Generator

import pytest
import pytest_asyncio
from azure.data.tables.aio import TableServiceClient

from adapters.azure.route_table import AzureRouteTable
from adapters.ports.errors import Unavailable
from stack.azurite import azurite
from stack.children import free_port
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import RuleViolation
from workflows.transfers.routes import RouteRule

RULE = RouteRule(
    queue="jobstmsroute",
    rule="7",
    account_id="TMS001",
    source="TMS.Route",
    type="Succeeded",
    subject="File Upload",
)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """Connection string of an emulated storage account."""
    loop = asyncio.new_event_loop()
    server = azurite(tmp_path_factory.mktemp("azurite"))
    yield loop.run_until_complete(server.__aenter__())
    loop.run_until_complete(server.__aexit__(None, None, None))
    loop.close()


@pytest_asyncio.fixture
async def table(storage: str, request: pytest.FixtureRequest) -> AzureRouteTable:
    """An empty table of a name of its own."""
    name = "jobconfig" + str(abs(hash(request.node.nodeid)) % 10**9)
    opened = AzureRouteTable(storage, name)
    await opened.create()
    await opened.create()
    return opened


async def seeded(storage: str, table: AzureRouteTable, **properties: object) -> None:
    """Write a row as another program does."""
    async with TableServiceClient.from_connection_string(storage) as service:
        rules = service.get_table_client(table.name)
        await rules.upsert_entity({"PartitionKey": "jobs", "RowKey": "1", **properties})


async def test_a_row_of_the_old_system_is_a_rule(storage: str, table: AzureRouteTable) -> None:
    await seeded(
        storage,
        table,
        EventType="Succeeded",
        EventSource="FTP.File.ExternalService",
        EventSubject="File Upload",
        EventAccountID="ACCOUNT001",
    )
    assert await table.rules() == [
        RouteRule(
            queue="jobs",
            rule="1",
            type="Succeeded",
            source="FTP.File.ExternalService",
            subject="File Upload",
            account_id="ACCOUNT001",
        )
    ]
    assert await table.unusable() == []


async def test_a_row_that_lacks_something_is_named(storage: str, table: AzureRouteTable) -> None:
    await seeded(storage, table, EventType="Succeeded", EventSource="TMS", EventSubject="")
    assert await table.rules() == []
    (remark,) = await table.unusable()
    assert (remark.queue, remark.rule) == ("jobs", "1")
    assert remark.reason == "EventAccountID and EventSubject missing or blank"


async def test_a_row_whose_queue_cannot_be_is_named(storage: str, table: AzureRouteTable) -> None:
    async with TableServiceClient.from_connection_string(storage) as service:
        await service.get_table_client(table.name).upsert_entity(
            {
                "PartitionKey": "Jobs Of Mine",
                "RowKey": "1",
                "EventType": "a",
                "EventSource": "b",
                "EventSubject": "c",
                "EventAccountID": "d",
            }
        )
    (remark,) = await table.unusable()
    assert remark.reason.startswith("queue: ")


async def test_rules_are_kept_with_everything_that_docflow_adds(table: AzureRouteTable) -> None:
    rule = RULE.model_copy(update={"priority": 5, "enabled": False, "by": "ada"})
    await table.put(rule)
    (kept,) = await table.rules()
    assert kept.model_copy(update={"changed_at": None}) == rule
    assert kept.changed_at is not None


async def test_what_others_keep_in_a_row_stays(storage: str, table: AzureRouteTable) -> None:
    await seeded(storage, table, EventType="a", Note="theirs")
    await table.put(RULE.model_copy(update={"queue": "jobs", "rule": "1"}))
    async with TableServiceClient.from_connection_string(storage) as service:
        row = await service.get_table_client(table.name).get_entity("jobs", "1")
    assert (row["Note"], row["EventType"]) == ("theirs", "Succeeded")


async def test_the_version_changes_with_every_change(storage: str, table: AzureRouteTable) -> None:
    versions = [await table.version()]
    await table.put(RULE)
    versions.append(await table.version())
    assert await table.version() == versions[-1]
    await seeded(storage, table, EventType="a")
    versions.append(await table.version())
    await table.remove("jobs", "1", "ada")
    versions.append(await table.version())
    assert versions[1] == versions[3]
    assert len({*versions[:3]}) == 3


async def test_changes_stand_in_the_trail(table: AzureRouteTable) -> None:
    await table.put(RULE.model_copy(update={"by": "ada"}))
    await table.put(RULE.model_copy(update={"by": "bob", "enabled": False}))
    assert await table.remove(RULE.queue, RULE.rule, "eve")
    assert not await table.remove(RULE.queue, RULE.rule, "eve")
    trail = await table.trail()
    assert [(rule.by, change) for rule, change in trail] == [
        ("eve", "removed"),
        ("bob", "changed"),
        ("ada", "added"),
    ]
    assert len(await table.trail(limit=2)) == 2


async def test_a_missing_table_is_a_wrong_setting(storage: str) -> None:
    table = AzureRouteTable(storage, "nowhere")
    with pytest.raises(Unavailable, match="docflow setup") as caught:
        await table.rules()
    assert caught.value.misconfigured


async def test_an_account_that_does_not_answer_is_waited_for(storage: str) -> None:
    away = f"TableEndpoint=http://127.0.0.1:{free_port()}/devstoreaccount1;"
    account = ";".join(part for part in storage.split(";") if part and "Endpoint=" not in part)
    table = AzureRouteTable(f"{account};{away}", "jobconfig", retry_total=0)
    with pytest.raises(Unavailable) as caught:
        await table.rules()
    assert caught.value.dependency is Dependency.DATABASE
    assert "AccountKey" not in str(caught.value)


async def test_a_wrong_key_is_a_wrong_setting(storage: str) -> None:
    wrong = ";".join(
        "AccountKey=d3Jvbmc=" if part.startswith("AccountKey=") else part
        for part in storage.split(";")
    )
    table = AzureRouteTable(wrong, "jobconfig", retry_total=0)
    with pytest.raises(Unavailable, match="refuses our credentials") as caught:
        await table.rules()
    assert caught.value.misconfigured


async def test_a_rule_that_was_changed_meanwhile_is_not_replaced(table: AzureRouteTable) -> None:
    await table.put(RULE)
    [seen] = await table.rules()
    await table.put(RULE.model_copy(update={"priority": 1}), expected=seen)
    with pytest.raises(RuleViolation, match="was changed meanwhile"):
        await table.put(RULE.model_copy(update={"priority": 2}), expected=seen)
    assert [each.priority for each in await table.rules()] == [1]

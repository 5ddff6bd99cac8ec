"""`docflow stac`: what is catalogued."""

import asyncio
import re
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import parse_qs, urlsplit

import typer

from workers.shared.cli.errors import CommandError, UsageError, stop
from workers.shared.cli.output import console, table, text
from workers.shared.cli.remote import (
    Column,
    Item,
    LimitOption,
    Output,
    OutputOption,
    YesOption,
    ask,
    gateway,
    show_list,
    show_one,
)
from workers.shared.cli.runs import words

if TYPE_CHECKING:
    from docflow.client.synchronous import Connection

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)
_COLLECTION: Final = "/api/stac/collections/{}"
_ITEM: Final = f"{_COLLECTION}/items/{{}}"
_PAGE: Final = 200
"""Items that are asked for at once."""
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")

CollectionArgument = Annotated[
    str, typer.Argument(metavar="COLLECTION", help="Id of a collection.")
]


@app.command()
def search(
    context: typer.Context,
    collections: Annotated[
        list[str] | None, typer.Option("--collection", metavar="ID", help="In these alone [all].")
    ] = None,
    bbox: Annotated[
        str | None,
        typer.Option(metavar="W,S,E,N", help="Degrees; west above east crosses the antimeridian."),
    ] = None,
    datetime: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="A day, a time, or two with a slash; `..` is open."),
    ] = None,
    filter: Annotated[str | None, typer.Option(metavar="CQL2", help="CQL2 as text.")] = None,
    sort: Annotated[
        str | None, typer.Option(metavar="FIELDS", help="As `-datetime,id` [the newest first].")
    ] = None,
    limit: LimitOption = 20,
    output: OutputOption = Output.TABLE,
) -> None:
    """Search items, the newest first; JSON is a GeoJSON FeatureCollection.

    \b
    Examples:
      docflow stac search --bbox 2,48,3,49 --datetime 2024-05-01
      docflow stac search --bbox 170,-30,-170,0 --datetime 2024-05-01/..
      docflow stac search --collection scenes --filter "eo:cloud_cover < 20" -o json
    """
    wanted = {
        "collections": ",".join(collections) if collections else None,
        "bbox": bbox,
        "datetime": None if datetime is None else _whole_days(datetime),
        "filter": filter,
        "sortby": sort,
        "limit": min(limit, _PAGE),
    }
    found: list[Item] = []
    with gateway(context) as connection:
        for page in _pages(connection, wanted):
            found += page
            if len(found) > limit:
                break
    if len(found) > limit:
        typer.echo(f"there are more than {limit}; --limit shows them", err=True)
    found = found[:limit]
    if output in (Output.JSON, Output.YAML):
        show_one({"type": "FeatureCollection", "features": found}, output, {}, name="type")
        return
    columns: Mapping[str, Column] = {
        "collection": "collection",
        "item": "id",
        "time": _time,
        "bbox": lambda item: _degrees(item["bbox"]),
        "assets": lambda item: ", ".join(item["assets"]),
    }
    name: Column = lambda item: f"{item['collection']}/{item['id']}"  # noqa: E731
    show_list(found, output, columns, name=name, nothing="no item is found")


def _whole_days(given: str) -> str:
    """Dates in an interval as their first and last moments: `2024-05-01` is the whole of that day.

    What is not a date stays as it is.
    """
    first, slash, last = given.partition("/")
    last = last if slash else first
    begins = f"{first}T00:00:00Z" if _DATE.fullmatch(first) else first
    ends = f"{last}T23:59:59.999999Z" if _DATE.fullmatch(last) else last
    return begins if begins == ends else f"{begins}/{ends}"


def _pages(connection: "Connection", wanted: Item) -> Generator[Sequence[Item]]:
    """The pages of a search."""
    token: str | None = None
    while True:
        page = ask(connection, "GET", "/api/stac/search", query={**wanted, "token": token})
        yield page["features"]
        behind: list[str] = [each["href"] for each in page["links"] if each["rel"] == "next"]
        if not behind:
            return
        [token] = parse_qs(urlsplit(behind[0]).query)["token"]


@app.command()
def show(
    context: typer.Context,
    collection: CollectionArgument,
    item: Annotated[
        str | None, typer.Argument(metavar="ITEM", help="Id of an item [the collection itself].")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show an item with its assets, or a collection.

    \b
    Examples:
      docflow stac show scenes
      docflow stac show scenes scene-1 -o json
    """
    with gateway(context) as connection:
        if item is None:
            found = ask(connection, "GET", _COLLECTION, collection)
            show_one(found, output, _OF_COLLECTION, name="id")
            return
        found = ask(connection, "GET", _ITEM, collection, item)
    properties = sorted(found["properties"].keys() - _TIMES)
    more = {each: _of_properties(each) for each in properties}
    show_one(found, output, {**_OF_ITEM, **more}, name="id")
    if output is Output.TABLE:
        made = table("asset", "type", "bytes", "address", numbers=["bytes"])
        for key, asset in found["assets"].items():
            size = asset.get("file:size")
            shown = None if size is None else f"{size:,}"
            made.add_row(*map(text, (key, asset.get("type"), shown, asset["href"])))
        console().print(made)


def _extent(collection: Item) -> str | None:
    begins, ends = collection["extent"]["temporal"]["interval"][0]
    return None if begins is None else f"{begins} to {ends}"


def _time(item: Item) -> str:
    properties = item["properties"]
    begins, ends = properties.get("start_datetime"), properties.get("end_datetime")
    return f"{begins} to {ends}" if begins and ends else properties["datetime"]


def _degrees(box: Sequence[float]) -> str:
    return ", ".join(f"{side:.4f}".rstrip("0").rstrip(".") for side in box)


def _of_properties(name: str) -> Column:
    def shown(item: Item) -> object:
        return words(item["properties"][name])

    return shown


_TIMES: Final = {"datetime", "start_datetime", "end_datetime"}
_OF_COLLECTION: Final[Mapping[str, Column]] = {
    "collection": "id",
    "title": "title",
    "description": "description",
    "license": "license",
    "bbox": lambda found: _degrees(found["extent"]["spatial"]["bbox"][0]),
    "time": _extent,
}
_OF_ITEM: Final[Mapping[str, Column]] = {
    "item": "id",
    "collection": "collection",
    "time": _time,
    "bbox": lambda found: _degrees(found["bbox"]),
}


@app.command()
def remove(
    context: typer.Context,
    collection: CollectionArgument,
    item: Annotated[str, typer.Argument(metavar="ITEM", help="Id of an item.")],
    yes: YesOption = False,
) -> None:
    """Take an item out of the catalogue; its files and tables stay.

    \b
    Example:
      docflow stac remove scenes scene-1
    """
    if not yes:
        typer.confirm(f"Take {item} out of the collection {collection}?", abort=True)
    with gateway(context) as connection:
        ask(connection, "DELETE", "/api/v1/catalogue/{}/{}", collection, item)
    typer.echo(f"{item} is no longer in the collection {collection}")


@app.command()
def export(
    context: typer.Context,
    database: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="Of a database with pgstac; PGPASSWORD may hold its password."
        ),
    ],
    collections: Annotated[
        list[str] | None, typer.Option("--collection", metavar="ID", help="These alone [all].")
    ] = None,
) -> None:
    """Write collections and items to a database with pgstac, as often as you like.

    What the database has beyond them stays, also items that are no longer here. Files have their
    addresses at the gateway.

    \b
    Examples:
      docflow stac export postgresql://loader@maps.example.org/stac
      docflow stac export postgresql://loader@maps.example.org/stac --collection scenes
    """
    with gateway(context) as connection:
        path = "/api/stac/collections"
        there = {each["id"]: each for each in ask(connection, "GET", path)["collections"]}
        chosen = collections or list(there)
        if unknown := [id for id in chosen if id not in there]:
            stop(CommandError(f"there is no collection {unknown[0]}"))
        asyncio.run(_export(connection, database, [there[id] for id in chosen]))
    if not chosen:
        typer.echo("there is no collection")


async def _export(connection: "Connection", url: str, collections: Sequence[Item]) -> None:
    from adapters.database.engine import open_database
    from workers.jobs.pgstac import PgstacTarget

    try:
        opened = open_database(url)
    except ValueError as error:
        raise UsageError(str(error)) from error
    async with opened as database:
        target = PgstacTarget(database)
        await target.check()
        for each in collections:
            await target.put_collection(each)
            count = 0
            wanted: dict[str, Any] = {"collections": each["id"], "sortby": "+id", "limit": _PAGE}
            for items in _pages(connection, wanted):
                await target.put_items(each["id"], items)
                count += len(items)
            typer.echo(f"{each['id']}: {count:,} items")

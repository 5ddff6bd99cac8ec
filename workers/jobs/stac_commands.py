"""`docflow stac`: what is catalogued."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import CommandError, UsageError, run
from workers.shared.cli.output import JsonOption, console, pairs, print_json, table, text

if TYPE_CHECKING:
    from activities.jobs.catalogue import Catalogue
from activities.jobs.ports import CatalogueQuery

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="What is catalogued: STAC items and collections.",
)

_PAGE: Final = 200
"""Items that are asked for at once."""

Json = Mapping[str, Any]


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
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Search items, the newest first. With --json, a GeoJSON FeatureCollection.

    \b
    Examples:
      docflow stac search --bbox 2,48,3,49 --datetime 2024-05-01
      docflow stac search --bbox 170,-30,-170,0 --datetime 2024-05-01/..
      docflow stac search --collection scenes --filter "eo:cloud_cover < 20" --json
    """
    asked = _Asked(collections, bbox, datetime, filter, limit, sort)
    run(_search(cli_context(context), asked, as_json=as_json))


@app.command()
def show(
    context: typer.Context,
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="Id of a collection.")],
    item: Annotated[
        str | None, typer.Argument(metavar="ITEM", help="Id of an item [the collection itself].")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show an item with its assets, or a collection.

    \b
    Examples:
      docflow stac show scenes
      docflow stac show scenes scene-1 --json
    """
    run(_show(cli_context(context), collection, item, as_json=as_json))


@app.command()
def delete(
    context: typer.Context,
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="Id of a collection.")],
    item: Annotated[str, typer.Argument(metavar="ITEM", help="Id of an item.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask no question.")] = False,
) -> None:
    """Take an item out of the catalogue; its files and tables stay.

    \b
    Example:
      docflow stac delete scenes scene-1
    """
    if not yes:
        typer.confirm(f"Take {item} out of the collection {collection}?", abort=True)
    run(_delete(cli_context(context), collection, item))


@app.command()
def export(
    context: typer.Context,
    database: Annotated[
        str | None,
        typer.Argument(
            metavar="URL",
            help="Of a database with pgstac [DATABASE_URL]; PGPASSWORD may hold its password.",
        ),
    ] = None,
    collections: Annotated[
        list[str] | None, typer.Option("--collection", metavar="ID", help="These alone [all].")
    ] = None,
) -> None:
    """Write collections and items to a database with pgstac, as often as you like.

    What the database has beyond them stays, also items that are no longer here.

    \b
    Examples:
      docflow stac export postgresql://loader@maps.example.org/stac
      docflow stac export --collection scenes
    """
    run(_export(cli_context(context), database, collections))


async def _export(cli: CliContext, url: str | None, collections: Sequence[str] | None) -> None:
    from activities.jobs.catalogue import Catalogue, export_to_pgstac
    from adapters.database.engine import open_database
    from adapters.ports.errors import Denied
    from workflows.shared.errors import RuleViolation

    async with cli.tables() as database, AsyncExitStack() as stack:
        target = database
        if url is not None:
            try:
                target = await stack.enter_async_context(open_database(url))
            except ValueError as error:
                raise UsageError(str(error)) from error
        try:
            counts = await export_to_pgstac(Catalogue(database), target, collections or None)
        except (Denied, RuleViolation) as error:
            raise CommandError(str(error)) from error
    for id, count in counts.items():
        typer.echo(f"{id}: {count:,} items")
    if not counts:
        typer.echo("there is no collection")


async def _delete(cli: CliContext, collection: str, item: str) -> None:
    async with _catalogue(cli) as catalogue:
        if not await catalogue.delete_item(collection, item):
            raise CommandError(f"there is no item {item} in the collection {collection}")
    typer.echo(f"{item} is no longer in the collection {collection}")


@dataclass(frozen=True)
class _Asked:
    """The options of a search, as they were typed."""

    collections: Sequence[str] | None
    bbox: str | None
    datetime: str | None
    filter: str | None
    limit: int
    sort: str | None = None

    def query(self) -> "CatalogueQuery":
        """As the catalogue is asked.

        Raises:
            RuleViolation: An option means nothing.
        """
        from activities.jobs.ports import CatalogueQuery
        from activities.jobs.stac_queries import filter_of_text, order_of_text, whole_days

        return CatalogueQuery(
            collections=self.collections or None,
            bbox=None if self.bbox is None else _box(self.bbox),
            datetime=None if self.datetime is None else whole_days(self.datetime),
            filter=None if self.filter is None else filter_of_text(self.filter),
            sort=order_of_text(self.sort or ""),
        )


async def _search(cli: CliContext, asked: _Asked, *, as_json: bool) -> None:
    from workflows.shared.errors import RuleViolation

    async with _catalogue(cli) as catalogue:
        try:
            items, more = await _found(catalogue, asked.query(), asked.limit)
        except RuleViolation as error:
            raise UsageError(str(error)) from error
    if more:
        typer.echo(f"there are more than {asked.limit}; --limit shows them", err=True)
    if as_json:
        print_json({"type": "FeatureCollection", "features": items})
        return
    if not items:
        typer.echo("no item is found")
        return
    made = table("collection", "item", "time", "bbox", "assets")
    for each in items:
        made.add_row(*map(text, _row(each)))
    console().print(made)


async def _found(
    catalogue: "Catalogue", query: "CatalogueQuery", limit: int
) -> tuple[list[Json], bool]:
    """The items of as many pages as are needed, and whether there are more."""
    items: list[Json] = []
    while True:
        asked = replace(query, limit=min(_PAGE, limit - len(items)))
        page = await catalogue.search(asked)
        items += page.items
        if page.next is None or len(items) >= limit:
            return items, page.next is not None
        query = replace(query, token=page.next)


async def _show(cli: CliContext, collection: str, item: str | None, *, as_json: bool) -> None:
    async with _catalogue(cli) as catalogue:
        found = await catalogue.collection(collection)
        if found is None:
            known = ", ".join(str(each["id"]) for each in await catalogue.collections())
            raise CommandError(f"there is no collection {collection}; there are: {known or 'none'}")
        if item is not None:
            found = await catalogue.item(collection, item)
        if found is None:
            raise CommandError(f"there is no item {item} in the collection {collection}")
    if as_json:
        print_json(found)
    elif item is None:
        _print_collection(found)
    else:
        _print_item(found)


def _print_collection(collection: Json) -> None:
    extent = collection["extent"]
    begins, ends = extent["temporal"]["interval"][0]
    described = [
        ("collection", collection["id"]),
        ("title", collection.get("title")),
        ("description", collection["description"]),
        ("license", collection["license"]),
        ("bbox", _degrees(extent["spatial"]["bbox"][0])),
        ("time", None if begins is None else f"{begins} to {ends}"),
    ]
    console().print(pairs(described))


def _print_item(item: Json) -> None:
    properties = item["properties"]
    described: list[tuple[str, object]] = [
        ("item", item["id"]),
        ("collection", item["collection"]),
        ("time", _time(properties)),
        ("bbox", _degrees(item["bbox"])),
    ]
    shown = {"datetime", "start_datetime", "end_datetime"}
    described += [(name, properties[name]) for name in sorted(properties.keys() - shown)]
    out = console()
    out.print(pairs(described))
    made = table("asset", "type", "bytes", "address", numbers=["bytes"])
    for key, asset in item["assets"].items():
        size = asset.get("file:size")
        shown_size = None if size is None else f"{size:,}"
        made.add_row(*map(text, (key, asset.get("type"), shown_size, asset["href"])))
    out.print(made)


@asynccontextmanager
async def _catalogue(cli: CliContext) -> AsyncGenerator["Catalogue"]:
    from activities.jobs.catalogue import Catalogue

    async with cli.tables() as database:
        yield Catalogue(database)


def _row(item: Json) -> Sequence[str]:
    assets = ", ".join(item["assets"])
    time = _time(item["properties"])
    return (item["collection"], item["id"], time, _degrees(item["bbox"]), assets)


def _time(properties: Json) -> str:
    begins, ends = properties.get("start_datetime"), properties.get("end_datetime")
    return f"{begins} to {ends}" if begins and ends else properties["datetime"]


def _degrees(box: Sequence[float]) -> str:
    return ", ".join(f"{side:.4f}".rstrip("0").rstrip(".") for side in box)


def _box(value: str) -> tuple[float, float, float, float]:
    from workflows.shared.errors import RuleViolation

    try:
        west, south, east, north = map(float, value.split(","))
    except ValueError as error:
        raise RuleViolation(f"bbox: {value!r} is not four numbers, as 2,48,3,49") from error
    return west, south, east, north

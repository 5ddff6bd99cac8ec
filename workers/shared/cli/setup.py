"""`docflow setup` makes what an installation needs; `docflow doctor` says what is missing."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import ExitCode, Failure, UsageError, attempt, run, stop
from workers.shared.cli.output import JsonOption, print_json
from workers.shared.text import one_line

if TYPE_CHECKING:
    from workers.shared.register import Pipeline
    from workers.shared.services.requirements import Result

app = typer.Typer(rich_markup_mode=None)
doctor_app = typer.Typer(rich_markup_mode=None)

_NAME_WIDTH = 28
_STATE_WIDTH = 17

Names = Annotated[
    list[str] | None, typer.Argument(metavar="PIPELINE", help="These pipelines alone [all].")
]


@app.command()
def setup(
    context: typer.Context,
    names: Names = None,
    schedules: Annotated[
        bool,
        typer.Option(
            "--schedules",
            help="Make every declared schedule as this release declares it, and nothing else.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make what docflow needs of Temporal, the database, Azure and AWS, or say what is missing.

    Search attributes, schema, blob container, topic and queues. Nothing that exists is changed.
    Name the pipelines that you use, where they are not all. Exit code 1 when something is missing,
    or could not be made or checked.

    Workers make schedules when they start. With --schedules, paused ones stay paused, and schedules
    of others are left alone. What the file of watches declares no longer is deleted.

    \b
    Examples:
      docflow setup
      docflow setup PIPELINE
      docflow setup --schedules
    """
    if schedules:
        if names:
            stop(UsageError("--schedules are those of all pipelines"))
        run(_reconcile(cli_context(context).environment, as_json=as_json))
        return
    run(_show(_made(cli_context(context).environment, names or []), as_json=as_json))


@doctor_app.command()
def doctor(context: typer.Context, names: Names = None, as_json: JsonOption = False) -> None:
    """Check everything that docflow needs and change nothing; it needs no gateway.

    Settings, Temporal, the schema of the database, where documents are kept, queues, identity
    providers, and the gateway that commands ask. Each line says what to do. Exit code 1 if
    something is missing.

    \b
    Examples:
      docflow doctor
      docflow doctor PIPELINE --json
    """
    run(_show(_checked(cli_context(context), names or []), as_json=as_json))


async def _reconcile(environment: Mapping[str, str], *, as_json: bool) -> None:
    from workers.shared.connect import connect
    from workers.shared.schedules import declared_schedules, delete_undeclared, reconcile

    declared, client = declared_schedules(environment=environment), await connect()
    pipelines = {row.pipeline for row in declared.values()}
    done = {
        **await reconcile(client, pipelines, declared),
        **await delete_undeclared(client, pipelines, environment),
    }
    if as_json:
        print_json(done)
        return
    for id, change in done.items():
        typer.echo(f"{id}: {change}")


async def _show(asked: "AsyncIterator[Result]", *, as_json: bool) -> None:
    results: list[Result] = []
    async for result in asked:
        results.append(result)
        if not as_json:
            typer.echo(_line(result))
    if as_json:
        print_json([_as_json(result) for result in results])
    if not all(result.is_there or not result.requirement.needed for result in results):
        raise typer.Exit(ExitCode.FAILED)


async def _made(
    environment: Mapping[str, str], names: Sequence[str], *, only_check: bool = False
) -> "AsyncIterator[Result]":
    from workers.shared.connect import connect
    from workers.shared.services.setup import set_up
    from workers.shared.services.temporal_requirements import Connection
    from workers.shared.settings.check import check_settings
    from workers.shared.settings.common import BlobSettings, DatabaseSettings

    chosen = _chosen(names)
    check_settings(environment, BlobSettings, DatabaseSettings)
    connection = Connection(connect)
    async for result in set_up(
        environment, connection, chosen, only_check=only_check, leave_out=not names
    ):
        yield result


async def _checked(context: CliContext, names: Sequence[str]) -> "AsyncIterator[Result]":
    from workers.shared.errors import SettingsError
    from workers.shared.services.requirements import unreadable

    try:
        async for result in _made(context.environment, names, only_check=True):
            yield result
    except SettingsError as error:
        yield unreadable("settings", error)
    async for result in _providers(context.environment):
        yield result
    yield await _gateway(context.environment)


async def _providers(environment: Mapping[str, str]) -> "AsyncIterator[Result]":
    """Whether each identity provider answers, and as it is declared."""
    from workers.shared.errors import SettingsError
    from workers.shared.gateway.http.oidc import OidcProvider, ProviderUnavailable
    from workers.shared.services.requirements import left_out, there, unavailable, unreadable
    from workers.shared.settings.sign_in import read_providers

    try:
        declared = read_providers(environment)
    except SettingsError as error:
        yield unreadable("sign-in", error)
        return
    if not declared:
        yield left_out("sign-in", "DOCFLOW_SIGN_IN is not set: people sign in with tokens or links")
    for name, each in declared.items():
        try:
            await OidcProvider(each).check()
        except ProviderUnavailable as error:
            yield unavailable(f"sign-in {name}", str(error))
        else:
            yield there(f"sign-in {name}", each.declared.issuer)


async def _gateway(environment: Mapping[str, str]) -> "Result":
    """Whether the gateway that commands ask takes the token that they have."""
    from docflow.client.contexts import Context, Contexts
    from docflow.client.errors import NotConfigured
    from docflow.client.protocol import Request
    from docflow.client.synchronous import Connection
    from workers.shared.services.requirements import left_out, there, unavailable

    def answers(chosen: Context) -> str:
        with Connection(chosen.address, chosen.token) as connection:
            connection.carry_out(Request("GET", "/api/v1/runs", query={"limit": 1}))
        return chosen.address

    try:
        chosen = Contexts(environment).chosen()
    except NotConfigured as error:
        return left_out("gateway", str(error))
    asked = await attempt(asyncio.to_thread(answers, chosen))
    if isinstance(asked, Failure):
        cure = "start `docflow gateway`, or choose another one with `docflow login`"
        return unavailable("gateway", f"{asked.reason}; {cure}")
    return there("gateway", asked)


def _chosen(names: Sequence[str]) -> "Sequence[Pipeline]":
    from workers import catalogue

    known = {pipeline.name: pipeline for pipeline in catalogue.PIPELINES}
    if unknown := sorted(set(names) - set(known)):
        raise UsageError(f"unknown pipeline {', '.join(unknown)}; known are {', '.join(known)}")
    return [known[name] for name in names or known]


def _line(result: "Result") -> str:
    name, state = result.requirement.name, result.finding.state
    warning = "" if result.is_there or result.requirement.needed else "warning: "
    details = one_line(result.details)
    return f"{name:<{_NAME_WIDTH}} {state:<{_STATE_WIDTH}} {warning}{details}"


def _as_json(result: "Result") -> dict[str, Any]:
    return {
        "name": result.requirement.name,
        "state": str(result.finding.state),
        "needed": result.requirement.needed,
        "details": result.details,
    }

"""`docflow partners`: endpoints that transfers read from and write to."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import ExitCode, UsageError, run
from workers.shared.cli.output import (
    JsonOption,
    console,
    moment,
    pairs,
    print_json,
    read_body,
    table,
    text,
)
from workers.transfers.partner_key_commands import NameArgument, print_keys
from workers.transfers.partner_key_commands import app as keys_app

if TYPE_CHECKING:
    from workflows.transfers.partners import Partner

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Partners: endpoints of transfers, with their keys and limits.",
)
app.add_typer(keys_app, name="keys")

_REFERENCE = "Where it is kept: env:NAME, file:PATH or aws:NAME."


@app.command("list")
def list_partners(context: typer.Context, as_json: JsonOption = False) -> None:
    """Partners by name.

    \b
    Example:
      docflow partners list
    """
    run(_list(cli_context(context), as_json=as_json))


async def _list(cli: CliContext, *, as_json: bool) -> None:
    from workers.transfers.factory import open_partners

    async with open_partners(cli.environment) as (service, who):
        found = await service.all(who)
    if as_json:
        print_json([each.model_dump(mode="json") for each in found])
        return
    if not found:
        typer.echo("there are no partners; `docflow partners add --help` makes one")
        return
    made = table("name", "kind", "where", "state", "special", "changed", "by")
    for each in found:
        made.add_row(
            text(each.name),
            text(each.kind),
            text(_where(each)),
            text(_state(each), "" if _usable(each) else "bold yellow"),
            text(", ".join(filter(None, (each.write, *each.algorithms)))),
            text(moment(each.changed_at)),
            text(each.by),
        )
    console().print(made)


@app.command()
def show(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """The record of a partner; it holds references, and no secret.

    \b
    Example:
      docflow partners show acme
    """
    run(_show(cli_context(context), name, as_json=as_json))


async def _show(cli: CliContext, name: str, *, as_json: bool) -> None:
    from workers.transfers.factory import open_partners

    async with open_partners(cli.environment) as (service, who):
        partner = await service.get(who, name)
        lives = dict[str, str]() if as_json else await service.key_lives(partner)
    if as_json:
        print_json(partner.model_dump(mode="json"))
        return
    limits, profile = partner.limits, partner.profile
    console().print(
        pairs(
            [
                ("name", partner.name),
                ("kind", partner.kind),
                ("where", _where(partner)),
                ("user", partner.user),
                ("password", partner.password),
                ("private key", partner.private_key),
                ("token", partner.token),
                ("state", _state(partner)),
                ("sessions", limits.sessions),
                ("new connections a second", limits.connections_per_second),
                ("bytes a second", limits.bytes_per_second),
                ("windows", _windows(partner)),
                ("renames", profile and profile.rename),
                ("tests write to", partner.probe_folder),
                ("files are written", partner.write),
                ("old algorithms", ", ".join(partner.algorithms) or None),
                ("contact", partner.contact),
                ("changed", moment(partner.changed_at)),
                ("by", partner.by),
            ]
        )
    )
    print_keys(partner, lives)


@app.command()
def add(
    context: typer.Context,
    name: NameArgument,
    kind: Annotated[
        str | None, typer.Option(help="folder, sftp, azure-blob, s3, https or custom.")
    ] = None,
    custom: Annotated[
        str | None, typer.Option(help="Kind that an installed package brings; of kind custom.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Host, account URL or endpoint.")] = None,
    port: Annotated[int | None, typer.Option(help="Port [that of the protocol].")] = None,
    container: Annotated[
        str | None, typer.Option(help="Container, bucket or folder of this machine.")
    ] = None,
    root: Annotated[str | None, typer.Option(help="Folder that no path leaves.")] = None,
    user: Annotated[str | None, typer.Option(help="User, or access key id.")] = None,
    password: Annotated[str | None, typer.Option(help=_REFERENCE)] = None,
    private_key: Annotated[str | None, typer.Option(help=_REFERENCE)] = None,
    passphrase: Annotated[str | None, typer.Option(help=_REFERENCE)] = None,
    token: Annotated[
        str | None, typer.Option(help=f"SAS, connection string, token or secret key. {_REFERENCE}")
    ] = None,
    contact: Annotated[str | None, typer.Option(help="Whom to ask.")] = None,
    probe_folder: Annotated[
        str | None, typer.Option(help="Where tests write their small files [the root].")
    ] = None,
    write: Annotated[
        str | None,
        typer.Option(help="How files are written: direct, rename, rename-after [as probed]."),
    ] = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(help="Old algorithm of SFTP that is permitted as well; once for each."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="JSON file with the whole record; options come before it.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="There may be a partner of that name already.")
    ] = False,
) -> None:
    """Add a partner; `docflow partners test` then says whether it works.

    \b
    Examples:
      docflow partners add acme --kind sftp --host sftp.acme.example --user us \\
          --private-key file:/run/secrets/acme-key
      docflow partners add legacy --kind sftp --host sftp.legacy.example --user us \\
          --password env:LEGACY --write direct --algorithm ssh-rsa --algorithm aes128-cbc
      docflow partners add archive --kind azure-blob --host https://acme.blob.core.windows.net \\
          --container in --token env:ACME_SAS
      docflow partners add acme --file acme.json
    """
    options: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "custom": custom,
        "host": host,
        "port": port,
        "container": container,
        "root": root,
        "user": user,
        "password": password,
        "private_key": private_key,
        "passphrase": passphrase,
        "token": token,
        "contact": contact,
        "probe_folder": probe_folder,
        "write": write,
        "algorithms": algorithm,
    }
    given = {field: value for field, value in options.items() if value is not None}
    run(_add(cli_context(context), file, given, replace=replace))


async def _add(
    cli: CliContext, file: Path | None, options: dict[str, Any], *, replace: bool
) -> None:
    from workers.transfers.factory import open_partners

    record = {**_read(file), **options}
    name = str(record.get("name", ""))
    opened = open_partners(cli.environment, action="partners add", object=name)
    async with opened as (service, who):
        partner = await service.add(who, record, replace=replace)
    typer.echo(f"partner {partner.name} is saved; test it: docflow partners test {partner.name}")


@app.command()
def test(
    context: typer.Context,
    name: NameArgument,
    folder: Annotated[
        str,
        typer.Option(
            help="Where small files of docflow are written and removed [--probe-folder, or the "
            "root]."
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Connect to a partner and show what it can do; no file of the partner is moved.

    Small files of docflow are written and removed again; the output names them.

    \b
    Example:
      docflow partners test acme --folder inbox
    """
    run(_test(cli_context(context), name, folder, as_json=as_json))


async def _test(cli: CliContext, name: str, folder: str, *, as_json: bool) -> None:
    from workers.transfers.factory import open_partners

    async with open_partners(cli.environment) as (service, who):
        report = await service.test(who, name, folder)
    if as_json:
        print_json({"works": report.works, "said": list(report.sentences), "shown": report.shown})
    else:
        for sentence in report.sentences:
            console().print(text(sentence))
        typer.echo(f"{name} works" if report.works else f"{name} does not work")
    if not report.works:
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def enable(context: typer.Context, name: NameArgument) -> None:
    """Let runs use a partner again; those that wait for it continue.

    \b
    Example:
      docflow partners enable acme
    """
    run(_enable(cli_context(context), name, enabled=True))


@app.command()
def disable(context: typer.Context, name: NameArgument) -> None:
    """Have every run that needs a partner wait.

    \b
    Example:
      docflow partners disable acme
    """
    run(_enable(cli_context(context), name, enabled=False))


async def _enable(cli: CliContext, name: str, *, enabled: bool) -> None:
    from workers.transfers.factory import open_partners

    action = f"partners {'enable' if enabled else 'disable'}"
    async with open_partners(cli.environment, action=action, object=name) as (service, who):
        await service.enable(who, name, enabled=enabled)
    typer.echo(f"partner {name} is {'enabled' if enabled else 'disabled: its runs wait'}")


@app.command()
def remove(context: typer.Context, name: NameArgument) -> None:
    """Remove the record of a partner; settings that name it fail from then on.

    \b
    Example:
      docflow partners remove acme
    """
    run(_remove(cli_context(context), name))


async def _remove(cli: CliContext, name: str) -> None:
    from workers.transfers.factory import open_partners

    opened = open_partners(cli.environment, action="partners remove", object=name)
    async with opened as (service, who):
        await service.remove(who, name)
    typer.echo(f"partner {name} is removed")


def _read(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        record: Any = json.loads(read_body(file))
    except ValueError as error:
        raise UsageError(f"{file} is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise UsageError(f"{file} must hold one JSON object")
    return cast(dict[str, Any], record)


def _where(partner: "Partner") -> str:
    host = f"{partner.host or ''}:{partner.port}" if partner.port else partner.host
    return "/".join(each for each in (host, partner.container, partner.root) if each)


def _usable(partner: "Partner") -> bool:
    return partner.enabled and partner.stopped is None


def _state(partner: "Partner") -> str:
    if partner.stopped is not None:
        return f"stopped: {partner.stopped}"
    return "enabled" if partner.enabled else "disabled"


def _windows(partner: "Partner") -> str | None:
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    parts = [
        f"{' '.join(days[day] for day in each.weekdays if day < 7)} {each.opens}-{each.closes}"
        for each in partner.windows
    ]
    return f"{', '.join(parts)} ({partner.zone})" if parts else None

"""`docflow partner`: endpoints that transfers read from and write to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from workers.shared.cli.errors import ExitCode
from workers.shared.cli.output import console, read_object, text
from workers.shared.cli.remote import (
    Column,
    Item,
    LimitOption,
    Output,
    OutputOption,
    ask,
    gateway,
    listed,
    show_list,
    show_one,
)
from workers.shared.cli.runs import words
from workers.shared.text import one_line
from workers.transfers.partner_key_commands import KEYS, NameArgument
from workers.transfers.partner_key_commands import app as keys_app

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(keys_app, name="key", help="Keys of a partner: of its server, and OpenPGP.")

_PATH: Final = "/api/v1/partners"
_ONE: Final = "/api/v1/partners/{}"
_REFERENCE: Final = "Where workers find it: env:NAME, file:PATH or aws:NAME."


def _state(partner: Item) -> object:
    if partner["state"] == "enabled":
        return "enabled"
    why = partner["stopped"]
    return text(f"{partner['state']}{f': {why}' if why else ''}", "bold yellow")


def _recorded(name: str) -> Column:
    def shown(partner: Item) -> object:
        return words(partner["record"][name])

    return shown


_COLUMNS: Final[Mapping[str, Column]] = {
    "name": "name",
    "kind": "kind",
    "where": "where",
    "state": _state,
    "changed": "changed_at",
    "by": "by",
}
_RECORDED: Final = {
    "user": "user",
    "password": "password",
    "private key": "private_key",
    "token": "token",
    "limits": "limits",
    "windows": "windows",
    "zone of the windows": "zone",
    "files are written": "write",
    "tests write to": "probe_folder",
    "old algorithms": "algorithms",
    "contact": "contact",
}
_ROWS: Final[Mapping[str, Column]] = {
    **_COLUMNS,
    **{title: _recorded(name) for title, name in _RECORDED.items()},
    "renames": lambda partner: (
        partner["record"]["profile"] and partner["record"]["profile"]["rename"]
    ),
    "outage": "outage",
    "runs that wait": "runs_waiting",
}


@app.command("list")
def list_partners(
    context: typer.Context, limit: LimitOption = 1_000, output: OutputOption = Output.TABLE
) -> None:
    """List partners by name.

    \b
    Example:
      docflow partner list
    """
    with gateway(context) as connection:
        found = listed(connection, _PATH, limit)
    nothing = "there are no partners; `docflow partner add --help` makes one"
    show_list(found, output, _COLUMNS, name="name", nothing=nothing)


@app.command()
def show(context: typer.Context, name: NameArgument, output: OutputOption = Output.TABLE) -> None:
    """Show the record of a partner and its keys; it holds references, and no secret.

    \b
    Example:
      docflow partner show acme
    """
    with gateway(context) as connection:
        found = ask(connection, "GET", _ONE, name)
        found["keys"] = ask(connection, "GET", f"{_ONE}/keys", name)["items"]
    show_one(found, output, _ROWS, name="name")
    if output is Output.TABLE:
        show_list(found["keys"], output, KEYS, name="fingerprint", nothing="no keys")


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
        str | None, typer.Option(help="Container, bucket or folder of the worker's machine.")
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
        bool, typer.Option("--replace", help="Replace the record of this partner.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Add a partner; `docflow partner test` then says whether it works.

    \b
    Examples:
      docflow partner add acme --kind sftp --host sftp.acme.example --user us \\
          --private-key file:/run/secrets/acme-key
      docflow partner add legacy --kind sftp --host sftp.legacy.example --user us \\
          --password env:LEGACY --write direct --algorithm ssh-rsa --algorithm aes128-cbc
      docflow partner add archive --kind azure-blob --host https://acme.blob.core.windows.net \\
          --container in --token env:ACME_SAS
      docflow partner add acme --file acme.json --replace
    """
    options: dict[str, Any] = {
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
    with gateway(context) as connection:
        record = given if file is None else {**read_object(file), **given}
        body = {"record": {**record, "name": name}}
        if replace:
            done = ask(connection, "PUT", _ONE, name, body=body)
        else:
            done = ask(connection, "POST", _PATH, body=body)
    _changed(done, output, f"is saved; test it: docflow partner test {name}")


def _changed(partner: Item, output: Output, what: str) -> None:
    if output is Output.TABLE:
        typer.echo(one_line(f"partner {partner['name']} {what}"))
    else:
        show_one(partner, output, {}, name="name")


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
    output: OutputOption = Output.TABLE,
) -> None:
    """Connect to a partner and show what it can do; no file of the partner is moved.

    A worker of transfers does it. Small files of docflow are written and removed again; the output
    names them.

    \b
    Example:
      docflow partner test acme --folder inbox
    """
    with gateway(context) as connection:
        report = ask(connection, "POST", f"{_ONE}/test", name, body={"folder": folder})
    if output is Output.TABLE:
        for sentence in report["sentences"]:
            console().print(text(sentence))
        typer.echo(f"{name} works" if report["works"] else f"{name} does not work")
    else:
        show_one(report, output, {}, name=lambda report: name)
    if not report["works"]:
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def change(
    context: typer.Context,
    name: NameArgument,
    enable: Annotated[
        bool,
        typer.Option(
            "--enable/--disable",
            help="Let runs use the partner, those that wait too; or have all wait.",
            show_default=False,
        ),
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Have every run that needs a partner wait, or let them continue.

    \b
    Examples:
      docflow partner change acme --disable
      docflow partner change acme --enable
    """
    with gateway(context) as connection:
        done = ask(connection, "POST", f"{_ONE}/{'enable' if enable else 'disable'}", name)
    _changed(done, output, "is enabled" if enable else "is disabled: its runs wait")


@app.command()
def remove(context: typer.Context, name: NameArgument) -> None:
    """Remove the record of a partner; settings that name it fail from then on.

    \b
    Example:
      docflow partner remove acme
    """
    with gateway(context) as connection:
        ask(connection, "DELETE", _ONE, name)
    typer.echo(f"partner {name} is removed")

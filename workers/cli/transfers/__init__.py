"""`docflow transfers`: events and the jobs that they start."""

import typer

from workers.cli.transfers import check, clocks, parked, receipt, runs

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Transfers: list, show, answer, assign, reroute, resend; receipts, watches, job settings.",
)
for commands in (runs.app, parked.app, receipt.app, check.app):
    app.add_typer(commands)
app.add_typer(clocks.watches, name="watches")
app.add_typer(clocks.expected, name="expected")

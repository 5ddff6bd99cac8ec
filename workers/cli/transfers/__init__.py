"""`docflow transfers`: events and the jobs that they start."""

import typer

from workers.cli.transfers import clocks, receipt, runs

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Transfers: list and show them, assign, reroute and resend; receipts, watches.",
)
for commands in (runs.app, receipt.app):
    app.add_typer(commands)
app.add_typer(clocks.watches, name="watches")
app.add_typer(clocks.expected, name="expected")

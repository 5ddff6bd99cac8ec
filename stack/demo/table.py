"""The table of the demo."""

from collections.abc import Sequence
from urllib.parse import quote

from rich.table import Table

from stack.demo.samples import Run
from workflows.batches.names import Phase
from workflows.imports.messages import TableMessage
from workflows.imports.runs import Counts

WIDE = 280
"""Columns of a table with full addresses."""

_COLOURS = {
    "completed": "green",
    "succeeded": "green",
    "parked": "yellow",
    "quarantined": "yellow",
    "column mapping": "yellow",
    "cell mapping": "yellow",
    "failed": "red",
    "running": "cyan",
    "processing": "cyan",
    "readmessage": "cyan",
    **dict.fromkeys(Phase, "cyan"),
}


def demo_table(runs: Sequence[Run], ui_url: str | None, *, links: bool, wide: bool = True) -> Table:
    """One row for each document, as it stands now; no name is cut, however narrow the window is.

    Args:
        runs: The documents.
        ui_url: Temporal's Web UI.
        links: Link each run there: only where it stays up.
        wide: There is room for the addresses.
    """
    table = Table()
    for title in ("document", "type", "state", "rows"):
        table.add_column(title, overflow="fold")
    table.add_column("s", justify="right", no_wrap=True)
    if links:
        table.add_column("run in the Web UI", no_wrap=True)
    for run in runs:
        row = [
            run.document,
            f"{run.body.get('document_type')}{_strategy(run)}",
            f"[{_COLOURS.get(run.state, 'white')}]{run.state}[/]",
            _rows(run.counts),
            "" if run.seconds is None else f"{run.seconds:.1f}",
        ]
        if links and not run.sample.expect.rejected_message:
            url = f"{ui_url}/namespaces/default/workflows/{quote(run.workflow_id, safe='')}"
            # A narrow window has no room for the address; terminals make the short name a link.
            row.append(f"[link={url}]{url if wide else run.task_id}[/link]")
        table.add_row(*row)
    return table


def _strategy(run: Run) -> str:
    return f", {run.message.strategy}" if isinstance(run.message, TableMessage) else ""


def _rows(counts: Counts) -> str:
    """What became of them: `15 created, 5 rejected`."""
    found = counts.model_dump().items()
    return ", ".join(f"{count:,} {name}" for name, count in found if count)

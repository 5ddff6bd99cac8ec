"""What imports would do, shown without anything being written."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from contracts.imports import ImportMessage
from workers.cli.context import CliContext
from workers.cli.errors import ExitCode
from workers.cli.output import console, print_json, problems_table, table, text
from workers.cli.output_files import output_file

if TYPE_CHECKING:
    from rich.table import Table

    from workers.services.imports.rehearsal import Rehearsal

COUNTS = ("created", "updated", "unchanged", "rejected", "deleted", "flagged")


async def dry_run(
    cli: CliContext,
    work: Sequence[tuple[ImportMessage, Path | None]],
    report: Path | None,
    *,
    as_json: bool,
) -> None:
    """Try imports on copies of the rows that they meet, and show a line for each.

    Each is tried by itself: what an earlier one would write, a later one does not find.

    Raises:
        typer.Exit: One of them would wait for a person.
    """
    from workers.services.imports.rehearsal import rehearsed

    made = table("document", *COUNTS, "problems", "what would happen", numbers=[*COUNTS])
    parks = False
    shown: list[dict[str, object]] = []
    async with cli.tables() as database:
        for message, file in work:
            async with rehearsed(database, message, file) as found:
                parks = parks or found.parks is not None
                shown.append(_as_json(message, file, found))
                _add(made, message, file, found)
                if report is not None and found.report is not None:
                    with output_file(report, force=False) as target:
                        shutil.copyfile(found.report, target)
                if not as_json and len(work) == 1 and found.outcome.problems:
                    outcome = found.outcome
                    console().print(problems_table(outcome.problems, outcome.problem_count))
    if as_json:
        print_json(shown)
    else:
        console().print(made)
        typer.echo("nothing was written" + (f"; report: {report}" if report else ""))
    if parks:
        raise typer.Exit(ExitCode.PARKED)


def _add(made: "Table", message: ImportMessage, file: Path | None, found: "Rehearsal") -> None:
    outcome = found.outcome
    counts = outcome.counts.model_dump()
    end = f"parks: {found.parks}" if found.parks else outcome.note or "completed"
    made.add_row(
        text(file.name if file else message.document_type),
        *(text(f"{counts[name]:,}") for name in COUNTS),
        text(f"{outcome.problem_count:,}"),
        text(end),
    )


def _as_json(message: ImportMessage, file: Path | None, found: "Rehearsal") -> dict[str, object]:
    outcome = found.outcome
    return {
        "document_type": message.document_type,
        "file": None if file is None else str(file),
        "counts": outcome.counts.model_dump(),
        "problem_count": outcome.problem_count,
        "problems": [each.model_dump(mode="json") for each in outcome.problems],
        "note": outcome.note,
        "parks": found.parks,
        "question": outcome.question and outcome.question.model_dump(),
    }

"""What people are shown of a run whose rows are reviewed."""

from datetime import datetime

from contracts.notices import NextStep
from contracts.spreadsheets import ReviewCounts, SpreadsheetState


def awaited(review: ReviewCounts) -> str:
    """What the run waits for, in a sentence."""
    if review.wrong:
        return f"{review.wrong} of {review.rows} rows have a problem; correct or confirm them"
    return "its rows have to be confirmed"


def next_steps(uuid: str) -> tuple[NextStep, ...]:
    """Commands that answer it."""
    confirm = f"docflow spreadsheets confirm-values {uuid}"
    return (NextStep(does="confirm the rows as they are and continue", command=confirm),)


def details(
    run: str, state: SpreadsheetState, since: datetime, assignee: str, review: ReviewCounts
) -> str:
    """Markdown for the Web UI."""
    command = f"temporal workflow update execute --workflow-id {run} --name"
    return (
        f"**{state}**, review of rows, since {since:%Y-%m-%d %H:%M} UTC, waits for "
        f"{assignee}: {awaited(review)}\n\n"
        "Rows are corrected on the page of the import, or through the API.\n\n"
        "Put your own choices in the place of what stands in angle brackets; as they are, these "
        "commands change nothing:\n\n"
        f'- confirm: `{command} confirm_cell_mappings --input \'{{"by":<"you">}}\'`\n'
        f'- stop: `{command} cancel --input \'{{"by":<"you">}}\'`\n'
    )

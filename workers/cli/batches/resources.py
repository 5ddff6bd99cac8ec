"""`docflow batches resources`: what exists of a batch in the cloud right now."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import typer

from contracts.batches import BatchKey, SweepOrder
from workers.cli.batches.context import BatchArgument, CaseArgument, key_of, name_of, open_cloud
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import run
from workers.cli.output import JsonOption, console, moment, print_json, table, text

if TYPE_CHECKING:
    from domain.batches.resources import FoundResource

app = typer.Typer(rich_markup_mode=None)


@app.command()
def resources(
    context: typer.Context, case: CaseArgument, batch: BatchArgument, as_json: JsonOption = False
) -> None:
    """Show what exists of a batch on AWS right now: how old it is, what it costs by, whose it is.

    \b
    Example:
      docflow batches resources 7 1
    """
    run(_resources(cli_context(context), key_of(case, batch), as_json=as_json))


async def _resources(cli: CliContext, key: BatchKey, *, as_json: bool) -> None:
    from activities.batches.orphans import BatchOrphans

    async with open_cloud(cli) as cloud:
        orphans = BatchOrphans(
            cloud.queues, cloud.topic, cloud.functions, cloud.grants, cloud.runs, cloud.plan
        )
        found = [one async for one in orphans.everything() if one.key == key]
        # Asked after the listing: a run that is open now may have made what was listed.
        is_open = await cloud.runs.is_open(key.workflow_id)
    now = datetime.now(UTC)
    state, sentence = _claim(key, found, is_open=is_open, now=now)
    if as_json:
        print_json(
            {**key.model_dump(), "state": state, "resources": [_as_json(one) for one in found]}
        )
        return
    if found:
        made = table("resource", "name", "made (UTC)", "age", "costs by", "made by")
        for one in found:
            made.add_row(
                text(one.resource),
                text(one.name),
                text(moment(one.made_at)),
                text(_age(one, now)),
                text(", ".join(f"{name} {value}" for name, value in one.details.items())),
                text(one.owner),
            )
        console().print(made)
    typer.echo(sentence)


def _claim(
    key: BatchKey, found: "Sequence[FoundResource]", *, is_open: bool, now: datetime
) -> tuple[str, str]:
    """Its owner, by the rules of the sweeper: in a word, and for people."""
    from domain.batches.validation import is_strange, is_young, only_dead_letters

    if not found:
        return "gone", f"nothing of {key} exists"
    if is_open:
        return "in use", f"in use by {key.workflow_id}"
    if any(is_strange(one) for one in found):
        return "foreign", f"not all of it was made by {key.workflow_id}: nothing is removed"
    alone = only_dead_letters(found)
    if alone is not None and alone.details.get("messages") != "0":
        return "kept", f"kept for its dead letters: `docflow batches redrive {name_of(key)}`"
    grace = SweepOrder().grace
    if is_young(found, now, timedelta(seconds=grace)):
        soon = f"the sweeper removes it when it is {grace // 60} min old"
        return "orphaned", f"orphaned: no run of {key} is open; {soon}"
    return "orphaned", f"orphaned: no run of {key} is open; the sweeper removes it"


def _age(found: "FoundResource", now: datetime) -> str | None:
    if found.made_at is None:
        return None
    minutes = max(int((now - found.made_at).total_seconds()), 0) // 60
    return f"{minutes // 60:,} h {minutes % 60:02} min"


def _as_json(found: "FoundResource") -> dict[str, Any]:
    return {
        "resource": found.resource,
        "name": found.name,
        "made_at": found.made_at and found.made_at.isoformat(),
        "owner": found.owner,
        "details": dict(found.details),
    }

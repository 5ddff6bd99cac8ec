"""Acting on jobs: `docflow jobs answer`, `docflow jobs restart`, `docflow jobs webhooks`."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from workers.cli.context import CliContext, cli_context
from workers.cli.errors import run
from workers.cli.jobs.context import JobArgument, open_jobs, parameters_of
from workers.cli.output import JsonOption, console, moment, print_json, table, text

app = typer.Typer(rich_markup_mode=None)


class Reply(StrEnum):
    """What becomes of a job that is parked."""

    RETRY = "retry"
    SKIP = "skip"
    FAIL = "fail"


@app.command()
def answer(
    context: typer.Context,
    job: JobArgument,
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="A parameter that it asks for, or a corrected one. Repeated."
        ),
    ] = None,
    decision: Annotated[
        Reply,
        typer.Option(
            help="Do the failed stage again, leave out what has failed, or give the job up."
        ),
    ] = Reply.RETRY,
    reason: Annotated[str | None, typer.Option(help="Why, for skip and fail.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a job that is parked.

    The job continues at its failed stage with these parameters. Without any the stage is done
    again as it was, and keeps its good tasks.

    \b
    Examples:
      docflow jobs answer 5eed5eed --param datetime=2024-05-01T10:30:00Z
      docflow jobs answer 5eed5eed --decision skip --reason "no data there"
    """
    run(_answer(cli_context(context), job, param or (), decision, reason, as_json=as_json))


async def _answer(
    cli: CliContext,
    job: str,
    given: Sequence[str],
    decision: Reply,
    reason: str | None,
    *,
    as_json: bool,
) -> None:
    from workflows.parking import Decision

    texts = parameters_of(given)
    async with open_jobs(cli) as (service, who):
        record = await service.queries.record(who, job)
        done = await service.answer(
            who,
            record.job_id,
            Decision(decision),
            parameters=service.submission.typed(record.job_type, texts),
            reason=reason,
        )
    if as_json:
        print_json(done.model_dump(mode="json"))
        return
    typer.echo(
        f"{decision} was accepted; follow the job with `docflow jobs watch {done.job_id[:12]}`"
    )


@app.command()
def restart(
    context: typer.Context,
    job: JobArgument,
    from_stage: Annotated[
        int | None,
        typer.Option("--from-stage", min=1, help="Begin at this stage [the one that failed]."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Begin another attempt at a job that has failed; its good tasks are kept.

    \b
    Examples:
      docflow jobs restart 5eed5eed
      docflow jobs restart 5eed5eed --from-stage 2
    """
    run(_restart(cli_context(context), job, from_stage, as_json=as_json))


async def _restart(cli: CliContext, job: str, from_stage: int | None, *, as_json: bool) -> None:
    async with open_jobs(cli) as (service, who):
        done = await service.restart(who, job, from_stage)
    if as_json:
        print_json({"job_id": done.job_id, "attempt": done.attempt})
        return
    typer.echo(
        f"attempt {done.attempt} of job {done.job_id[:12]} has begun; "
        f"follow it with `docflow jobs watch {done.job_id[:12]}`"
    )


@app.command()
def clean(
    context: typer.Context,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove what is no longer kept, as the schedule does every night.

    Files that newer datasets have replaced go after their time of grace; tasks, plans, results and
    webhooks of jobs that have ended, and files that no item uses, after DOCFLOW_JOBS_KEEP_DAYS.

    \b
    Example:
      docflow jobs clean --dry-run
    """
    run(_clean(cli_context(context), dry_run=dry_run, as_json=as_json))


async def _clean(cli: CliContext, *, dry_run: bool, as_json: bool) -> None:
    from workers.services.jobs.retention import clean_jobs

    removed = await clean_jobs(cli.environment, dry_run=dry_run)
    if as_json:
        print_json(removed.model_dump(mode="json"))
        return
    for each in removed.named:
        typer.echo(each)
    what = "would be removed" if dry_run else "removed"
    typer.echo(
        f"{what}: {removed.files:,} files; tasks, plans, results and webhooks of {removed.jobs:,} "
        f"jobs, of which {removed.kept:,} keep their record"
    )


@app.command()
def webhooks(
    context: typer.Context,
    job: JobArgument,
    send: Annotated[
        int | None,
        typer.Option(min=0, metavar="NUMBER", help="Send the webhook of this receiver again."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Deliveries of webhooks about the end of a job, the newest first.

    \b
    Examples:
      docflow jobs webhooks 5eed5eed
      docflow jobs webhooks 5eed5eed --send 0
    """
    run(_webhooks(cli_context(context), job, send, as_json=as_json))


async def _webhooks(cli: CliContext, job: str, send: int | None, *, as_json: bool) -> None:
    from domain.jobs.webhooks import shown

    async with open_jobs(cli) as (service, who):
        if send is not None:
            sent = await service.send_again(who, job, send)
            typer.echo(f"sending to {shown(sent.order.receiver.url)} again", err=as_json)
        found = await service.queries.deliveries(who, job)
    if as_json:
        print_json(
            [
                {
                    **each.attempt.model_dump(mode="json"),
                    "number": each.order.number,
                    "delivery_attempt": each.order.delivery_attempt,
                    "attempts": each.order.receiver.retry_count + 1,
                    "url": shown(each.order.receiver.url),
                    "sent_at": each.sent_at.isoformat(),
                }
                for each in found
            ]
        )
        return
    if not found:
        typer.echo("nothing was sent so far")
        return
    made = table(
        *("number", "sent", "to", "answer", "attempt", "result"), numbers=["number", "answer"]
    )
    for each in found:
        made.add_row(
            text(each.order.number),
            text(moment(each.sent_at)),
            text(shown(each.order.receiver.url)),
            text(each.attempt.status_code),
            text(f"{each.order.delivery_attempt} of {each.order.receiver.retry_count + 1}"),
            text(each.attempt.problem or "delivered"),
        )
    console().print(made)

"""Following one job: a bar for each stage."""

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from contracts.jobs import JobStatus, StageState
from workers.cli.jobs.output import ends_in, waits
from workers.cli.output import console

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from contracts.jobs import StageView
    from workers.services.identity import Identity
    from workers.services.jobs.documents import JobDocument
    from workers.services.jobs.service import JobService


async def follow(service: "JobService", who: "Identity", name: str) -> "JobDocument":
    """Show a job until it has ended, or waits for a person; the job as it is then.

    Raises:
        NotFound: There is no such job.
    """
    screen = _Screen()
    with screen.shown():
        while True:
            try:
                async with aclosing(service.queries.events(who, name)) as revisions:
                    async for each in revisions:
                        if each is None:
                            continue
                        # The beginning of an alias names nothing.
                        name = each.job.job_id
                        screen.show(each.job)
                        if each.job.ended or each.job.status is JobStatus.PARKED:
                            return each.job
            except asyncio.CancelledError:
                screen.hint(
                    f"No longer following; the job continues: `docflow jobs watch {name[:12]}`, "
                    f"`docflow cancel {name[:12]}`"
                )
                raise


class _Screen:
    """A bar for each stage on a terminal; a line for each change elsewhere."""

    def __init__(self) -> None:
        self._console = console(stderr=True)
        self._bars: dict[int, TaskID] = {}
        self._said: dict[int, str] = {}
        self._waits: str | None = None
        self._progress: Progress | None = None

    def shown(self) -> "Progress":
        """The live display, as a context."""
        from rich.progress import BarColumn, Progress, TextColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[figures]}"),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        return self._progress

    def show(self, job: "JobDocument") -> None:
        """The job as it is now."""
        waiting = waits(job)
        if waiting != self._waits:
            self._waits = waiting
            self._console.print("it no longer waits" if waiting is None else f"waits for {waiting}")
        for stage in job.stages:
            if self._console.is_terminal:
                self._bar(stage)
            else:
                self._line(stage)

    def hint(self, sentence: str) -> None:
        """Something the person may want to know."""
        self._console.print(sentence)

    def _bar(self, stage: "StageView") -> None:
        assert self._progress is not None
        if stage.stage not in self._bars:
            self._bars[stage.stage] = self._progress.add_task("", total=None, figures="")
        self._progress.update(
            self._bars[stage.stage],
            description=f"{stage.stage} {stage.name}",
            total=stage.counts.total or None,
            completed=stage.counts.done,
            figures=_figures(stage),
            visible=stage.state is not StageState.WAITING,
        )

    def _line(self, stage: "StageView") -> None:
        if stage.state is StageState.WAITING or self._said.get(stage.stage) == stage.state:
            return
        self._said[stage.stage] = stage.state
        self._console.print(f"stage {stage.stage} ({stage.name}): {stage.state}")


def _figures(stage: "StageView") -> str:
    parts = [f"{stage.counts.done:,}/{stage.counts.total:,}"]
    if stage.counts.failed:
        parts.append(f"{stage.counts.failed:,} failed")
    if stage.rate is not None and stage.state is StageState.RUNNING:
        parts.append(f"{stage.rate:,.1f}/s")
    if remaining := ends_in(stage):
        parts.append(f"{remaining} left")
    return ", ".join(parts)

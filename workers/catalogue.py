"""The list of pipelines: the only one. Whatever has to know all of them loops over it."""

from collections.abc import Sequence

from workers.batches.register import BATCHES
from workers.imports.register import IMPORTS
from workers.jobs.register import JOBS
from workers.shared.outage_runs import OUTAGE_RUNS
from workers.shared.register import Pipeline, RunGroup
from workers.spreadsheets.register import SPREADSHEETS
from workers.transfers.register import TRANSFERS

__all__ = ["OUTAGE_RUNS", "PIPELINES", "run_groups"]

PIPELINES: tuple[Pipeline, ...] = (IMPORTS, SPREADSHEETS, BATCHES, JOBS, TRANSFERS)
"""Read at the moment of use, as `catalogue.PIPELINES`, so that a program may add its own."""


def run_groups() -> Sequence[RunGroup]:
    """All runs that people may list and show: those of every pipeline, and outages."""
    return (*PIPELINES, OUTAGE_RUNS)

"""The list of pipelines: the only one. Whatever has to know all of them loops over it."""

from collections.abc import Sequence

from workers.pipelines.base import Pipeline, RunGroup
from workers.pipelines.batches import BATCHES
from workers.pipelines.imports import IMPORTS
from workers.pipelines.jobs import JOBS
from workers.pipelines.outages import OUTAGE_RUNS
from workers.pipelines.spreadsheets import SPREADSHEETS
from workers.pipelines.transfers import TRANSFERS

__all__ = ["OUTAGE_RUNS", "PIPELINES", "run_groups"]

PIPELINES: tuple[Pipeline, ...] = (IMPORTS, SPREADSHEETS, BATCHES, JOBS, TRANSFERS)
"""Read at the moment of use, as `catalogue.PIPELINES`, so that a program may add its own."""


def run_groups() -> Sequence[RunGroup]:
    """All runs that people may list and show: those of every pipeline, and outages."""
    return (*PIPELINES, OUTAGE_RUNS)

"""The list of pipelines: the only one. Whatever has to know all of them loops over it."""

from workers.pipelines.base import Pipeline
from workers.pipelines.batches import BATCHES
from workers.pipelines.imports import IMPORTS
from workers.pipelines.jobs import JOBS
from workers.pipelines.spreadsheets import SPREADSHEETS

PIPELINES: tuple[Pipeline, ...] = (IMPORTS, SPREADSHEETS, BATCHES, JOBS)
"""Read at the moment of use, as `catalogue.PIPELINES`, so that a program may add its own."""

"""What a job says about the vector data that it has loaded."""

import hashlib
import re
from typing import Any, Final

from contracts.jobs.stac import ITEM_ID
from contracts.jobs.vectors import (
    FeatureProblem,
    LayerReport,
    LoadMode,
    LoadReport,
    SourceReport,
)
from domain.errors import InvalidDocument

NOTES_SHOWN: Final = 10
"""Of one layer, in the result of a job; its report has all."""
_OF_ATTEMPT: Final = frozenset({LoadMode.REPLACE, LoadMode.UPSERT})


def too_many_rejected(report: LayerReport, most: float) -> str | None:
    """Describe a layer of which too much was rejected; None: it may be loaded.

    Args:
        report: Of the layer.
        most: Share of its features, 0 to 1.

    Raises:
        InvalidDocument: All were rejected.
    """
    if not report.rejected or (report.kept and report.rejected <= most * report.features):
        return None
    first = next((each for each in report.problems if each.is_rejected), None)
    where = "" if first is None else f"; feature {first.feature:,}: {_described(first)}"
    listed = f"; all are in {report.problems_blob}" if report.problems_blob else ""
    text = (
        f"layer {report.layer!r}: {report.rejected:,} of {report.features:,} features were"
        f" rejected, and max_rejected_share is {most:g}{where}{listed}"
    )
    if not report.kept:
        raise InvalidDocument(text)
    return f"{text}. Which share (0 to 1) may be skipped?"


def load_key(mode: LoadMode, job_id: str, attempt: int, layer: int) -> str:
    """Names a load: what was created or appended once is not again by another attempt."""
    by = f"{job_id}/{attempt}" if mode in _OF_ATTEMPT else job_id
    return f"{by}/{layer}"


def item_id(table: str) -> str:
    """The id of a table's item: its name, where STAC clients take it."""
    if re.fullmatch(ITEM_ID, table):
        return table
    digest = hashlib.sha256(table.encode()).hexdigest()[:8]
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", table.encode("ascii", "ignore").decode()).strip("_")
    return f"{plain or 'table'}-{digest}"


def lineage(report: SourceReport, layer: LayerReport, source: str) -> str:
    """What was done to a layer, in a sentence."""
    operation = layer.projection.operation
    moved = "kept in its degrees" if operation is None else f"brought to EPSG:4326 by {operation}"
    return (
        f"Layer {layer.layer!r} of the {report.format} {source}, {moved}; of"
        f" {layer.features:,} features {layer.rejected:,} were rejected and {layer.repaired:,}"
        " repaired."
    )[:5_000]


def summary(layer: LayerReport, load: LoadReport) -> dict[str, Any]:
    """What the result of a job says about a layer."""
    return {
        "layer": layer.layer,
        "table": load.table,
        "place": load.place,
        "features": layer.features,
        "rejected": layer.rejected,
        "repaired": layer.repaired,
        "inserted": load.inserted,
        "updated": load.updated,
        "total": load.total,
        "notes": list(layer.notes[:NOTES_SHOWN]),
        "more_notes": max(len(layer.notes) - NOTES_SHOWN, 0),
    }


def _described(problem: FeatureProblem) -> str:
    return f"{problem.field!r}: {problem.reason}" if problem.field else problem.reason

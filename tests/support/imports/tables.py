"""Rows of a table through the rules, without a file."""

from collections.abc import Mapping

from workflows.imports.column_scan import ReadingOptions, Survey
from workflows.imports.findings import Findings
from workflows.imports.header import TableHeader
from workflows.imports.row_classification import sorter_of
from workflows.imports.types import TableSpec
from workflows.imports.validation import Rows, RowValidator
from workflows.shared.cells import KeyOccurrences

OPTIONS = ReadingOptions()


def validator_of(
    spec: TableSpec,
    scope: Mapping[str, str],
    header: TableHeader,
    rows: Rows,
    seen: KeyOccurrences,
    findings: Findings | None = None,
    options: ReadingOptions = OPTIONS,
) -> RowValidator:
    """What checks the rows of a table, all of which were looked at."""
    survey = Survey(spec, header)
    survey.add(rows)
    surveyed = survey.finish(options)
    sorter = sorter_of(spec, surveyed.header, surveyed.keys)
    return RowValidator(spec, scope, surveyed, sorter, seen, findings or Findings())

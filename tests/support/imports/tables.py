"""Rows of a table through the rules, without a file."""

from collections.abc import Mapping

from domain.imports.findings import Findings
from domain.imports.header import TableHeader
from domain.imports.lines import LineSorter
from domain.imports.survey import ReadingOptions, Survey
from domain.imports.tables import TableSpec
from domain.imports.validation import Rows, RowValidator
from domain.tabular.occurrences import KeyOccurrences

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
    sorter = LineSorter(spec, surveyed.header, surveyed.keys)
    return RowValidator(spec, scope, surveyed, sorter, seen, findings or Findings())

"""Recorded cases of `imports`, by workflow."""

from tests.replay import imports_cases

CASES_OF = {"DocumentImport": imports_cases.CASES}

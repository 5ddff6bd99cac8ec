"""Recorded cases of `jobs`, by workflow."""

from typing import Any

CASES_OF: dict[str, dict[str, Any]] = {}

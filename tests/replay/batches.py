"""Recorded cases of `batches`, by workflow."""

from tests.replay import (
    batches_cancel_cases,
    batches_cases,
    batches_parked_cases,
    groups_cases,
    loads_cases,
)

CASES_OF = {
    "BatchLifecycle": {
        **batches_cases.CASES,
        **batches_parked_cases.CASES,
        **batches_cancel_cases.CASES,
    },
    "CaseQueue": {**batches_cases.CASE_CASES, **batches_cancel_cases.CASE_CASES},
    "BatchSweeper": batches_cases.SWEEPER_CASES,
    "DocumentLoad": loads_cases.CASES,
    "DocumentGroup": groups_cases.CASES,
}

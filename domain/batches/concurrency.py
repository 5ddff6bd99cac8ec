"""The concurrency of a case's batches."""

from contracts.batches import FEWEST_AT_ONCE, MOST_AT_ONCE


def granted(wanted: int) -> int:
    """What a batch runs with where its case has `wanted`, which another program may have written.

    An event source mapping takes no other `MaximumConcurrency`.
    """
    return min(max(wanted, FEWEST_AT_ONCE), MOST_AT_ONCE)

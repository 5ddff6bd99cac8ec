"""Errors of every process that cost nothing to import."""


class TemporalUnreachable(Exception):
    """Temporal does not answer; the message says where we looked."""

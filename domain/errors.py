"""Failures of a document itself, and refusals of rules."""


class InvalidDocument(Exception):
    """The file can be read but lacks what its type requires; the message says what."""


class RuleViolation(Exception):
    """A rule forbids the work as requested; the message says why."""


class WorkersLost(RuleViolation):
    """The work has lost its workers so often that it is not begun again."""

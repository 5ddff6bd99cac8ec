"""Failures of a document itself, and refusals of rules."""


class InvalidDocument(Exception):
    """The file can be read but lacks what its type requires; the message says what."""


class Refused(Exception):
    """The work cannot be done as asked, whatever the world does; the message says why."""

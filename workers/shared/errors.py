"""Errors of every process that cost nothing to import."""


class TemporalUnreachable(Exception):
    """Temporal does not answer; the message says where we looked."""


class UnreadablePayload(Exception):
    """A payload of Temporal cannot be decrypted; the message names its key and the setting."""


class SettingsError(Exception):
    """Settings are missing or invalid; each line names one and says what to set.

    Attributes:
        problems: The lines.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems

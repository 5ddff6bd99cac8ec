"""How wrong settings are reported; apart from the rest, so that raising and catching is cheap."""


class SettingsError(Exception):
    """Settings are missing or invalid; each line names one and says what to set.

    Attributes:
        problems: The lines.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems

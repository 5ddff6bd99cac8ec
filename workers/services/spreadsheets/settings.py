"""What the service of spreadsheets needs of its caller's settings."""

from typing import Protocol

from contracts.spreadsheets import Patience


class SpreadsheetSettings(Protocol):
    """Limits, addresses and timeouts of spreadsheet imports."""

    @property
    def upload_limit(self) -> int:
        """Bytes of one file."""
        ...

    @property
    def create_per_minute(self) -> int:
        """Uploads of one person."""
        ...

    @property
    def public_url(self) -> str | None:
        """Where people reach the gateway; for links in notices."""
        ...

    @property
    def temporal_ui(self) -> str | None:
        """Temporal's web page, for runs that have no page in the gateway."""
        ...

    @property
    def patience(self) -> Patience:
        """When reminders are sent, and how long imports are kept waiting."""
        ...

"""Settings of the database."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from pydantic import AfterValidator, Field, ValidationInfo

from workers.settings.base import Setting, Settings, Whole, WholeMessage

if TYPE_CHECKING:
    from adapters.database import DatabaseOptions

_TLS_OPTIONS: Final = {
    "tls_mode": "sslmode",
    "root_certificate": "sslrootcert",
    "certificate": "sslcert",
    "key": "sslkey",
}
"""Field to the option of `DATABASE_URL` that takes its place."""


def _database_url(url: str, info: ValidationInfo) -> str:
    # Loaded here so that no command pays for it that needs no database.
    from adapters.database import check_url, with_options

    named = {option: info.data.get(field) for field, option in _TLS_OPTIONS.items()}
    try:
        url = with_options(url, {name: value for name, value in named.items() if value})
        check_url(url)
    except ValueError as error:
        raise WholeMessage(f"DATABASE_URL: {error}") from None
    return url


class DatabaseSettings(Settings):
    """The database that rows and results go to.

    The variables `PGSSL...` are those of every client of PostgreSQL; an option of the same meaning
    in `DATABASE_URL` (`sslmode`, `sslrootcert`, `sslcert`, `sslkey`) takes their place.
    """

    title: ClassVar[str] = "Database"
    used_by: ClassVar[str] = "everything but `docflow bridge batch-loader`"

    tls_mode: Annotated[str | None, Setting(kind="text")] = Field(
        None,
        validation_alias="PGSSLMODE",
        description="`disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`",
    )
    root_certificate: Annotated[str | None, Setting(kind="path")] = Field(
        None,
        validation_alias="PGSSLROOTCERT",
        description="certificates that the server's is checked with, in PEM format, or `system` "
        "for those that the machine trusts; `sslmode` is `verify-full` then, unless it is set",
    )
    certificate: Annotated[str | None, Setting(kind="path")] = Field(
        None, validation_alias="PGSSLCERT", description="docflow's own certificate, in PEM format"
    )
    key: Annotated[str | None, Setting(kind="path")] = Field(
        None, validation_alias="PGSSLKEY", description="its key, without a password"
    )
    url: Annotated[str, AfterValidator(_database_url), Setting(secret=True)] = Field(
        validation_alias="DATABASE_URL",
        description="`postgresql://user:password@host/name` or `sqlite:///path/to/docflow.db`",
    )
    """With the files of TLS."""
    connections: Annotated[
        int | None, Whole(2, 1_000), Setting(kind="whole number", default="20")
    ] = Field(
        None,
        validation_alias="DOCFLOW_DATABASE_CONNECTIONS",
        description="connections to PostgreSQL at once, at most",
    )
    statements: Annotated[
        int | None, Whole(0, 10_000), Setting(kind="whole number", default="500")
    ] = Field(
        None,
        validation_alias="DOCFLOW_DATABASE_STATEMENTS",
        description="prepared statements that each connection keeps; 0 behind a pooler that shares "
        "connections between transactions, such as PgBouncer",
    )

    @property
    def options(self) -> "DatabaseOptions":
        """How a PostgreSQL server is used."""
        from adapters.database import CONNECTIONS, STATEMENTS, DatabaseOptions

        statements = STATEMENTS if self.statements is None else self.statements
        return DatabaseOptions(self.connections or CONNECTIONS, statements)

"""Settings of what transfers do with files: staging area, virus scanner, quarantine."""

from typing import Annotated, ClassVar, Final, cast

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from adapters.scanning.clamd import DEFAULT_BYTES, ClamdAddress
from contracts.transfers import SecretReference
from workers.settings.base import Setting, Settings, Whole, parse_flag, parse_list
from workers.settings.common import container_name

_REFERENCE: Final[TypeAdapter[str]] = TypeAdapter(SecretReference)
_REFERENCES: Final = "`env:NAME`, `file:PATH` or `aws:NAME`"
_LARGEST: Final = 2_000 << 20
"""clamd scans no file of 2 GB."""


def _reference(value: str) -> str:
    try:
        return _REFERENCE.validate_python(value)
    except ValidationError:
        raise ValueError("must be env:NAME, file:PATH or aws:NAME") from None


def _references(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(_reference(each) for each in cast(tuple[str, ...], parse_list(value)))


def _address(value: str | None) -> str | None:
    if value is not None:
        ClamdAddress.parsed(value)
    return value


class TransferFileSettings(Settings):
    """How bytes of transfers are kept between actions, and scanned."""

    title: ClassVar[str] = "Files of transfers"
    used_by: ClassVar[str] = "workers of transfers"

    staging_key: Annotated[
        Annotated[str, AfterValidator(_reference)] | None, Setting(kind=_REFERENCES)
    ] = Field(
        None,
        validation_alias="DOCFLOW_TRANSFERS_STAGING_KEY",
        description="where the key is (32 bytes as base64) that encrypts bytes between "
        "actions and kept copies; without it the former are stored as they are, and no copy "
        "is kept",
    )
    old_staging_keys: Annotated[
        tuple[str, ...], BeforeValidator(_references), Setting(kind="references, with commas")
    ] = Field(
        (),
        validation_alias="DOCFLOW_TRANSFERS_OLD_STAGING_KEYS",
        description="keys that were in use before, for as long as copies are kept",
    )
    clamd_address: Annotated[
        str | None, AfterValidator(_address), Setting(kind="`unix:/PATH` or `tcp:HOST:PORT`")
    ] = Field(
        None,
        validation_alias="CLAMD_ADDRESS",
        description="ClamAV's daemon; without it the action Scan fails",
    )
    clamd_max_bytes: Annotated[int, Whole(1 << 20, _LARGEST), Setting(kind="bytes")] = Field(
        DEFAULT_BYTES,
        validation_alias="CLAMD_MAX_BYTES",
        description="the largest file that clamd scans, by its StreamMaxLength and MaxFileSize; "
        "larger ones count as not scanned",
    )
    clamd_undated: Annotated[bool, BeforeValidator(parse_flag)] = Field(
        False,
        validation_alias="CLAMD_UNDATED",
        description="signatures that state no age are taken for new ones, as those of one's own "
        "are; without it nothing counts as scanned by them",
    )
    quarantine: Annotated[
        Annotated[str, AfterValidator(container_name)] | None,
        Setting(kind="text", default="that of the documents"),
    ] = Field(
        None,
        validation_alias="DOCFLOW_TRANSFERS_QUARANTINE",
        description="the container of infected files, below `quarantine/`; it has to be there",
    )

    @property
    def key_references(self) -> tuple[str, ...]:
        """All keys."""
        return tuple(each for each in (self.staging_key, *self.old_staging_keys) if each)

"""Settings of the receivers that people name."""

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from workers.shared.settings.base import Setting, Settings, parse_flag, parse_list


def _keys(value: object) -> object:
    from cryptography.fernet import Fernet

    if not isinstance(value, str):
        return value
    keys = tuple(part.strip().encode() for part in value.split(",") if part.strip())
    try:
        for key in keys:
            Fernet(key)
    except ValueError:
        raise ValueError(
            "must be a Fernet key, 32 bytes in URL-safe base64; `python -c 'from "
            "cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'` makes one"
        ) from None
    return keys


class ReceiverSettings(Settings):
    """Which receivers may be notified by HTTP, and what their secrets are kept under."""

    title: ClassVar[str] = "Webhooks"
    used_by: ClassVar[str] = "gateway, workers"

    secret_keys: Annotated[
        tuple[bytes, ...], BeforeValidator(_keys), Setting(secret=True, kind="Fernet keys")
    ] = Field(
        (),
        validation_alias="DOCFLOW_WEBHOOK_KEY",
        description="encrypts the secrets of webhooks; without it, docflow sends no webhooks; of "
        "several, with commas, the first encrypts and all decrypt",
    )
    hosts: Annotated[
        tuple[str, ...], BeforeValidator(parse_list), Setting(kind="host names, with commas")
    ] = Field(
        (),
        validation_alias="DOCFLOW_WEBHOOK_HOSTS",
        description="the only hosts that webhooks go to, `*.example.org` for all below one; "
        "without it every host with a public address",
    )
    local: Annotated[bool, BeforeValidator(parse_flag)] = Field(
        False,
        validation_alias="DOCFLOW_WEBHOOK_LOCAL",
        description="webhooks may go to this machine and over plain HTTP: for development",
    )

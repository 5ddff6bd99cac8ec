"""Settings of the webhooks of jobs."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from workers.settings.base import Setting, Settings, parse_flag, parse_list

LIVE_SECRETS: Final = 2
"""Under one name: today's, and the one that it takes the place of."""
_SECRETS: Final = TypeAdapter[dict[str, str | tuple[str, ...]]](dict[str, str | tuple[str, ...]])


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


def _named(value: object) -> object:
    from adapters.http.signatures import secret_bytes

    if not isinstance(value, str):
        return value
    try:
        read = _SECRETS.validate_json(value)
    except ValidationError:
        raise ValueError('must be JSON like {"client": "whsec_..."}') from None
    named: dict[str, tuple[bytes, ...]] = {}
    for name, given in read.items():
        secrets = (given,) if isinstance(given, str) else given
        if not 1 <= len(secrets) <= LIVE_SECRETS or not all(secrets):
            raise ValueError(f"{name}: give one secret, or a list of the new and the old one")
        try:
            named[name] = tuple(map(secret_bytes, secrets))
        except ValueError as error:
            raise ValueError(f"{name} {error}") from None
    return named


class WebhookSettings(Settings):
    """Who may be notified by HTTP that a job has ended, and how messages are signed."""

    title: ClassVar[str] = "Webhooks of jobs"
    used_by: ClassVar[str] = "workers of jobs, gateway, bridges of jobs, `docflow submit jobs`"

    secret_keys: Annotated[
        tuple[bytes, ...], BeforeValidator(_keys), Setting(secret=True, kind="Fernet keys")
    ] = Field(
        (),
        validation_alias="DOCFLOW_JOBS_SECRET_KEY",
        description="encrypts secrets of webhooks that come with requests; of several, with "
        "commas, the first encrypts and all decrypt",
    )
    named_secrets: Annotated[
        Mapping[str, tuple[bytes, ...]], BeforeValidator(_named), Setting(secret=True, kind="JSON")
    ] = Field(
        {},
        validation_alias="DOCFLOW_JOBS_WEBHOOK_SECRETS",
        description="name to secret, or to a list of the new and the old one; requests give the "
        "name as `webhook_secret_name`",
    )
    hosts: Annotated[
        tuple[str, ...], BeforeValidator(parse_list), Setting(kind="host names, with commas")
    ] = Field(
        (),
        validation_alias="DOCFLOW_JOBS_WEBHOOK_HOSTS",
        description="the only hosts that webhooks go to, `*.example.org` for all below one; "
        "without it every host with a public address",
    )
    local: Annotated[bool, BeforeValidator(parse_flag)] = Field(
        False,
        validation_alias="DOCFLOW_JOBS_WEBHOOK_LOCAL",
        description="webhooks may go to this machine and over plain HTTP: for development",
    )

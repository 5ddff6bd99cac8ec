"""Settings of the places outside docflow that rows of declared types go to."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from workers.shared.settings.base import Setting, Settings
from workflows.shared.dependencies import DependencyName


def _databases(value: object) -> object:
    # Loaded here so that no command pays for it that needs no database.
    from adapters.database.urls import check_url

    if not isinstance(value, str):
        return value
    try:
        urls = TypeAdapter(dict[DependencyName, str]).validate_json(value)
    except ValidationError:
        raise ValueError('must be JSON like {"erp": "postgresql://user@host/name"}') from None
    for name, url in urls.items():
        try:
            check_url(url)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return urls


def _webhooks(value: object) -> object:
    from adapters.http import secret_bytes
    from adapters.log_notifications import check_webhook_url
    from adapters.signed_webhook import SignedWebhook

    if not isinstance(value, str):
        return value
    try:
        read = TypeAdapter(dict[str, _Webhook]).validate_json(value)
    except ValidationError:
        raise ValueError(
            'must be JSON like {"erp": {"url": "https://...", "secret": "whsec_..."}}'
        ) from None
    found: dict[str, SignedWebhook] = {}
    for name, given in read.items():
        secrets = (given.secret,) if isinstance(given.secret, str) else given.secret
        if not secrets or not all(secrets):
            raise ValueError(f"{name}: give one secret, or a list of the new and the old one")
        try:
            url = check_webhook_url(given.url)
            found[name] = SignedWebhook(url, tuple(map(secret_bytes, secrets)))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return found


class _Webhook(BaseModel):
    url: str
    secret: str | tuple[str, ...]


class TargetSettings(Settings):
    """Where rows of declared types may go beside docflow's own tables."""

    title: ClassVar[str] = "Targets of declared types"
    used_by: ClassVar[str] = "workers of imports and spreadsheets, `docflow type`, dry runs"

    databases: Annotated[
        Mapping[str, str], BeforeValidator(_databases), Setting(secret=True, kind="JSON")
    ] = Field(
        {},
        validation_alias="DOCFLOW_TYPE_DATABASES",
        description="name to URL of each PostgreSQL database that `target` of a type may name, as "
        '`{"erp": "postgresql://user:password@host/name"}`',
    )
    webhooks: Annotated[
        Mapping[str, Any], BeforeValidator(_webhooks), Setting(secret=True, kind="JSON")
    ] = Field(
        {},
        validation_alias="DOCFLOW_TYPE_WEBHOOKS",
        description="name to receiver of each webhook that `target` of a type may name, as "
        '`{"erp": {"url": "https://erp.example.com/docflow", "secret": "whsec_..."}}`; two secrets '
        "are a list of the new and the old one",
    )
    """Name to `SignedWebhook`."""

"""Where AWS is: settings by the names that its own tools use."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from workers.shared.settings.base import Setting, Settings, WholeMessage

if TYPE_CHECKING:
    from adapters.aws.session import AwsSettings


def _http(value: str | None) -> str | None:
    if value is not None and not value.startswith(("http://", "https://")):
        raise ValueError(f"must begin with http:// or https://: {value!r}")
    return value


class CloudSettings(Settings):
    """Where AWS is, by the names that its own tools use."""

    title: ClassVar[str] = "AWS"
    used_by: ClassVar[str] = "workers and bridges of batches, workers of transfers, `docflow setup`"

    region: Annotated[
        str, Setting(also="AWS_DEFAULT_REGION", hint="the region that batches are built in")
    ] = Field(
        validation_alias="AWS_REGION",
        description=(
            "region of topic, queues and functions; else `AWS_DEFAULT_REGION`, which may not name "
            "another one"
        ),
    )
    endpoint_url: Annotated[str | None, AfterValidator(_http), Setting(kind="URL")] = Field(
        None, validation_alias="AWS_ENDPOINT_URL", description="another AWS: an emulator"
    )
    access_key_id: Annotated[str | None, Setting(secret=True, kind="text")] = Field(
        None,
        validation_alias="AWS_ACCESS_KEY_ID",
        description="with the two below; without them AWS finds credentials by itself "
        "(roles, profiles)",
    )
    secret_access_key: Annotated[str | None, Setting(secret=True, kind="text")] = Field(
        None,
        validation_alias="AWS_SECRET_ACCESS_KEY",
        description="belongs to the key",
        validate_default=True,
    )
    session_token: Annotated[str | None, Setting(secret=True, kind="text")] = Field(
        None, validation_alias="AWS_SESSION_TOKEN", description="of temporary credentials"
    )

    @field_validator("secret_access_key")
    @classmethod
    def _both_or_neither(cls, value: str | None, info: ValidationInfo) -> str | None:
        known = "access_key_id" in info.data
        if known and (value is None) != (info.data["access_key_id"] is None):
            raise WholeMessage(
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong together: set both, or "
                "neither where AWS finds credentials by itself"
            )
        return value

    @property
    def aws(self) -> "AwsSettings":
        """Where AWS is, as its adapters take it."""
        from adapters.aws.session import AwsSettings

        return AwsSettings(
            region=self.region,
            endpoint_url=self.endpoint_url,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            session_token=self.session_token,
        )


def read_aws(environment: Mapping[str, str]) -> "AwsSettings":
    """Where AWS is.

    Raises:
        SettingsError: There is no region, half a key, or an endpoint that is not an address.
    """
    return CloudSettings.read(environment).aws

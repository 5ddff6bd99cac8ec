"""Settings of the gateway."""

import re
from typing import Annotated, ClassVar, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from workers.shared.settings.base import Setting, Settings, Whole, WholeMessage, parse_list
from workers.shared.settings.common import AddressSettings, web_address
from workers.shared.settings.connections import ConnectionSettings
from workers.shared.settings.quotas import QuotaSettings
from workers.shared.settings.sign_in import SignInSettings

SHARED_KEY: Final = "HS256"
PUBLIC_KEYS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "Ed25519", "EdDSA")
_SHORTEST_KEY: Final = 32
_HOST: Final = re.compile(
    r"\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?|\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\]?"
)


def _origins(value: tuple[str, ...]) -> tuple[str, ...]:
    origins = tuple(origin.rstrip("/") for origin in value)
    for origin in origins:
        parts = urlsplit(origin)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path:
            raise WholeMessage(
                f"DOCFLOW_CORS_ORIGINS: {origin!r} is not an origin; write https://example.org, "
                "separated by commas"
            )
    return origins


def _hosts(value: tuple[str, ...]) -> tuple[str, ...]:
    for host in value:
        if not _HOST.fullmatch(host):
            raise WholeMessage(
                f"DOCFLOW_ALLOWED_HOSTS: {host!r} is not a host name; write docflow.example.org, "
                "without https:// and port, separated by commas"
            )
    return value


def _long_enough(key: str | None) -> str | None:
    if key is not None and len(key.encode()) < _SHORTEST_KEY:
        raise ValueError(f"must have at least {_SHORTEST_KEY} bytes")
    return key


class TokenSettings(Settings):
    """Which tokens are accepted."""

    title: ClassVar[str] = "Tokens"
    used_by: ClassVar[str] = "`docflow gateway`, `docflow token sign`"

    key: Annotated[
        str | None,
        AfterValidator(_long_enough),
        Setting(
            secret=True,
            kind=f"text, {_SHORTEST_KEY} bytes or more",
            default="required without `DOCFLOW_JWT_JWKS_URL`",
        ),
    ] = Field(
        None,
        validation_alias="DOCFLOW_JWT_KEY",
        description=f"shared key of tokens ({SHARED_KEY})",
    )
    jwks_url: Annotated[str | None, AfterValidator(web_address), Setting(kind="URL")] = Field(
        None,
        validation_alias="DOCFLOW_JWT_JWKS_URL",
        description="where your identity provider publishes its keys; takes the place of "
        "`DOCFLOW_JWT_KEY`",
        validate_default=True,
    )
    algorithm: Annotated[
        str,
        Setting(kind="name", default=f"`{SHARED_KEY}` with a key, else `{PUBLIC_KEYS[0]}`"),
    ] = Field(
        "",
        validation_alias="DOCFLOW_JWT_ALGORITHM",
        description="the only algorithm that is accepted: a token cannot choose how it is checked; "
        f"with a published key one of {', '.join(PUBLIC_KEYS)}",
        validate_default=True,
    )
    issuer: str = Field(
        "docflow",
        validation_alias="DOCFLOW_JWT_ISSUER",
        description="issuer that a token must name",
    )
    audience: str = Field(
        "docflow",
        validation_alias="DOCFLOW_JWT_AUDIENCE",
        description="audience that a token must name",
    )
    leeway: int = 30
    """Seconds that clocks may differ."""

    @field_validator("jwks_url")
    @classmethod
    def _one_way(cls, value: str | None, info: ValidationInfo) -> str | None:
        # A key that was refused is not among the data.
        if "key" in info.data and (info.data["key"] is None) == (value is None):
            raise WholeMessage(
                "set either DOCFLOW_JWT_KEY (a shared key) or DOCFLOW_JWT_JWKS_URL "
                "(where your identity provider publishes its keys)"
            )
        return value

    @field_validator("algorithm")
    @classmethod
    def _of_the_way(cls, value: str, info: ValidationInfo) -> str:
        if not {"key", "jwks_url"} <= info.data.keys():
            return value
        allowed = (SHARED_KEY,) if info.data["key"] else PUBLIC_KEYS
        if value and value not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}, not {value!r}")
        return value or allowed[0]


class GatewaySettings(AddressSettings):
    """How the gateway behaves."""

    title: ClassVar[str] = "API and pages"
    used_by: ClassVar[str] = "`docflow gateway`"

    tokens: TokenSettings
    quotas: QuotaSettings = Field(default_factory=lambda: QuotaSettings.read({}))
    connections: ConnectionSettings = Field(default_factory=lambda: ConnectionSettings.read({}))
    sign_in: SignInSettings = Field(default_factory=lambda: SignInSettings.read({}))
    allowed_hosts: Annotated[
        tuple[str, ...],
        BeforeValidator(parse_list),
        AfterValidator(_hosts),
        Setting(kind="host names, with commas"),
    ] = Field(
        (),
        validation_alias="DOCFLOW_ALLOWED_HOSTS",
        description="names by which the gateway is reached, beside that of `DOCFLOW_PUBLIC_URL`, "
        "that of `--host`, `localhost` and the loopback addresses; `*.example.org` is every name "
        "below one, `*` any name. Requests to another name get 421",
    )
    cors_origins: Annotated[
        tuple[str, ...],
        BeforeValidator(parse_list),
        AfterValidator(_origins),
        Setting(kind="origins, with commas"),
    ] = Field(
        (),
        validation_alias="DOCFLOW_CORS_ORIGINS",
        description="other web sites whose scripts may call the API",
    )
    requests_per_minute: Annotated[int, Whole(0, 1_000_000)] = Field(
        1_200,
        validation_alias="DOCFLOW_REQUESTS_PER_MINUTE",
        description="requests to the API that one caller may send to one gateway in a minute; more "
        "get 429 with `Retry-After`. 0: no limit",
    )

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names that the gateway answers to, beside those of loopback."""
        own = urlsplit(self.public_url).hostname if self.public_url else None
        return (*self.allowed_hosts, *([own] if own else []))

"""Settings of the gateway."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import urlsplit

from contracts.spreadsheets import Patience
from workers.settings.common import SettingsError, number

SHARED_KEY: Final = "HS256"
PUBLIC_KEYS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "Ed25519", "EdDSA")
_SHORTEST_KEY: Final = 32
_DAY: Final = 24 * 3600


@dataclass(frozen=True)
class TokenSettings:
    """Which tokens are believed."""

    issuer: str
    audience: str
    algorithm: str
    """The only one: a token cannot choose how it is checked."""
    key: str | None = field(default=None, repr=False)
    """Shared key of HS256."""
    jwks_url: str | None = None
    """Where public keys are published."""
    leeway: int = 30
    """Seconds that clocks may differ."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read and check.

        Raises:
            SettingsError: One is missing or they contradict each other.
        """
        key = environment.get("DOCFLOW_JWT_KEY") or None
        url = environment.get("DOCFLOW_JWT_JWKS_URL") or None
        if (key is None) == (url is None):
            raise SettingsError(
                "set either DOCFLOW_JWT_KEY (a shared key) or DOCFLOW_JWT_JWKS_URL "
                "(where your identity provider publishes its keys)"
            )
        algorithm = environment.get("DOCFLOW_JWT_ALGORITHM") or (SHARED_KEY if key else "RS256")
        allowed = (SHARED_KEY,) if key else PUBLIC_KEYS
        if algorithm not in allowed:
            raise SettingsError(
                f"DOCFLOW_JWT_ALGORITHM must be one of {', '.join(allowed)}, not {algorithm!r}"
            )
        if key is not None and len(key.encode()) < _SHORTEST_KEY:
            raise SettingsError(f"DOCFLOW_JWT_KEY must have at least {_SHORTEST_KEY} bytes")
        if url is not None:
            _check_url("DOCFLOW_JWT_JWKS_URL", url)
        return cls(
            issuer=_named(environment, "DOCFLOW_JWT_ISSUER", "docflow"),
            audience=_named(environment, "DOCFLOW_JWT_AUDIENCE", "docflow"),
            algorithm=algorithm,
            key=key,
            jwks_url=url,
        )


@dataclass(frozen=True)
class GatewaySettings:
    """How the gateway behaves."""

    tokens: TokenSettings
    upload_limit: int = 500_000_000
    """Bytes of one file."""
    create_per_minute: int = 30
    """Uploads of one person."""
    cors_origins: tuple[str, ...] = ()
    """Other web sites whose scripts may call the API; none by default."""
    public_url: str | None = None
    """Where people reach the gateway, without a slash at the end; for links in notices."""
    temporal_ui: str | None = None
    """Temporal's web page, for runs that have no page here."""
    patience: Patience = field(default_factory=Patience)

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read and check.

        Raises:
            SettingsError: One is missing or makes no sense.
        """
        limit = number(environment, "DOCFLOW_UPLOAD_LIMIT_MB", 500, 1, 100_000)
        return cls(
            tokens=TokenSettings.read(environment),
            upload_limit=limit * 1_000_000,
            create_per_minute=number(environment, "DOCFLOW_CREATE_PER_MINUTE", 30, 1, 100_000),
            cors_origins=_origins(environment.get("DOCFLOW_CORS_ORIGINS", "")),
            public_url=_url(environment, "DOCFLOW_PUBLIC_URL"),
            temporal_ui=_url(environment, "TEMPORAL_UI_ADDRESS"),
            patience=_patience(environment),
        )


def _patience(environment: Mapping[str, str]) -> Patience:
    def days(name: str, default: int) -> int:
        return number(environment, f"DOCFLOW_{name}_DAYS", default, 1, 3650) * _DAY

    return Patience(
        remind_after=days("REMIND_AFTER", 3),
        remind_every=days("REMIND_EVERY", 7),
        escalate_after=days("ESCALATE_AFTER", 14),
        abandon_after=days("ABANDON_AFTER", 90),
        undo_within=days("UNDO_WITHIN", 30),
    )


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(origin.strip().rstrip("/") for origin in text.split(",") if origin.strip())
    for origin in origins:
        parts = urlsplit(origin)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path:
            raise SettingsError(
                f"DOCFLOW_CORS_ORIGINS: {origin!r} is no origin; write https://example.org, "
                "separated by commas"
            )
    return origins


def _url(environment: Mapping[str, str], name: str) -> str | None:
    value = environment.get(name, "").strip().rstrip("/")
    if not value:
        return None
    _check_url(name, value)
    return value


def _check_url(name: str, value: str) -> None:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise SettingsError(f"{name} must be an address like https://example.org, not {value!r}")


def _named(environment: Mapping[str, str], name: str, default: str) -> str:
    return environment.get(name, "").strip() or default

"""Settings of signing in: how long sessions last, and the identity providers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

from adapters.files.yaml_files import YamlFile, read_yaml
from workers.shared.errors import SettingsError
from workers.shared.settings.base import SecretFiles, Setting, Settings, Whole
from workers.shared.settings.common import AddressSettings
from workflows.shared.contracts import problem_text
from workflows.shared.errors import RuleViolation

EVERYONE: Final = "*"
"""Stands for a group that everyone of a provider is in."""
_LARGEST_FILE: Final = 256 * 1024
_NAME: Final = r"^[a-z][a-z0-9-]{0,39}$"
_LARGEST_ID: Final = 2**53
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class SignInSettings(Settings):
    """How people sign in to the pages, and how long they stay signed in."""

    title: ClassVar[str] = "Signing in"
    used_by: ClassVar[str] = "`docflow gateway`, `docflow session`"

    file: Annotated[Path | None, Setting(kind="path")] = Field(
        None,
        validation_alias="DOCFLOW_SIGN_IN",
        description="YAML file that declares identity providers; "
        "[Signing in](../sign-in.md) describes it",
    )
    idle_minutes: Annotated[int, Whole(1, 100_000)] = Field(
        480,
        validation_alias="DOCFLOW_SESSION_IDLE_MINUTES",
        description="minutes without a request after which a session ends",
    )
    hours: Annotated[int, Whole(1, 10_000)] = Field(
        24,
        validation_alias="DOCFLOW_SESSION_HOURS",
        description="hours after which a session ends in any case, and people sign in again",
    )


def _words(value: object) -> object:
    return value.split() if isinstance(value, str) else value


class _Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Grant(_Declared):
    """What being in a group gives."""

    roles: Annotated[
        tuple[Literal["viewer", "mapper", "operator", "admin"], ...], BeforeValidator(_words)
    ] = Field(min_length=1)
    organisations: tuple[Annotated[int, Field(ge=1, le=_LARGEST_ID)], ...] = ()
    """Where the roles count; none: everywhere."""


class ClaimNames(_Declared):
    """Which claims say who somebody is."""

    subject: Annotated[str, Field(min_length=1)] = "sub"
    name: Annotated[str, Field(min_length=1)] = "name"
    email: Annotated[str, Field(min_length=1)] = "email"
    groups: Annotated[str, Field(min_length=1)] = "groups"


class Provider(_Declared):
    """An identity provider that speaks OpenID Connect."""

    title: str = Field(min_length=1, max_length=60)
    issuer: str
    client_id: str = Field(min_length=1)
    client_secret: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")] | None = None
    """Names the setting that holds the secret."""
    scopes: Annotated[tuple[str, ...], BeforeValidator(_words)] = ("openid", "profile", "email")
    claims: ClaimNames = ClaimNames()
    groups: Mapping[str, Grant] = Field(min_length=1)

    @field_validator("issuer")
    @classmethod
    def _is_address(cls, value: str) -> str:
        parts = urlsplit(value)
        local = parts.scheme == "http" and parts.hostname in _LOOPBACK
        if (parts.scheme != "https" and not local) or not parts.netloc or parts.query:
            raise ValueError("write the address that the provider calls its issuer: https://...")
        return value

    @field_validator("scopes")
    @classmethod
    def _asks_who(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return value if "openid" in value else ("openid", *value)


class _File(_Declared):
    providers: Mapping[Annotated[str, Field(pattern=_NAME)], Provider] = Field(min_length=1)
    organisations: tuple[Annotated[int, Field(ge=1, le=_LARGEST_ID)], ...] = ()
    """Those in which roles count that count everywhere, beside those that groups name."""


@dataclass(frozen=True)
class DeclaredProvider:
    """An identity provider, with what else is known of it."""

    name: str
    declared: Provider
    secret: str | None
    organisations: tuple[int, ...]
    """Those in which roles count that count everywhere."""
    address: str
    """Of the gateway, without a slash at its end."""

    @property
    def callback(self) -> str:
        """Where the provider sends people back to."""
        return f"{self.address}/sign-in/{self.name}/callback"


def read_providers(environment: Mapping[str, str]) -> Mapping[str, DeclaredProvider]:
    """Read the identity providers that an installation declares, by name.

    Raises:
        SettingsError: The file is wrong, or a setting that it needs; each line says where.
    """
    path = SignInSettings.read(environment).file
    if path is None:
        return {}
    declared = _read(path)
    problems: list[str] = []
    secrets: dict[str, str | None] = {}
    for name, provider in declared.providers.items():
        try:
            secrets[name] = _secret(environment, provider.client_secret)
        except ValueError as error:
            problems.append(f"{path}: providers.{name}.client_secret: {error}")
    address = AddressSettings.read(environment).public_url
    if address is None:
        problems.append(
            "missing setting: DOCFLOW_PUBLIC_URL; identity providers send people back there"
        )
    if problems or address is None:
        raise SettingsError(*problems)
    grants = [grant for each in declared.providers.values() for grant in each.groups.values()]
    named = (id for grant in grants for id in grant.organisations)
    organisations = tuple(dict.fromkeys([*declared.organisations, *named]))
    return {
        name: DeclaredProvider(name, provider, secrets[name], organisations, address)
        for name, provider in declared.providers.items()
    }


def _secret(environment: Mapping[str, str], name: str | None) -> str | None:
    """The secret that a setting holds.

    Raises:
        ValueError: It holds none.
    """
    if name is None:
        return None
    secret = SecretFiles(environment).value(name, environment.get(name, "").strip() or None)
    if secret is None:
        raise ValueError(f"{name} is not set; set it, or {name}_FILE, to the secret")
    return secret


def _read(path: Path) -> _File:
    try:
        content = path.read_bytes()[: _LARGEST_FILE + 1]
        if len(content) > _LARGEST_FILE:
            raise SettingsError(f"{path}: is larger than {_LARGEST_FILE // 1024} KB")
        file = read_yaml(content.decode())
    except OSError as error:
        raise SettingsError(f"DOCFLOW_SIGN_IN: {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: is no UTF-8 text; save it as UTF-8") from error
    except RuleViolation as error:
        raise SettingsError(f"{path}: {error}") from error
    if not isinstance(file.value, dict):
        raise SettingsError(f"{path}: line 1: the file begins with `providers:`")
    try:
        return _File.model_validate(file.value)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        lines = [_fault(path, file, dict(each)) for each in faults]
        raise SettingsError(*lines) from None


_SAID: Final[Mapping[str, str]] = {
    "missing": "is missing; add it",
    "extra_forbidden": "is not known here; remove it",
    "model_type": "`word: value` lines are expected here; write each in a line of its own, "
    "indented",
    "mapping_type": "`name: value` lines are expected here; write each in a line of its own, "
    "indented",
    "literal_error": "this is no role; write viewer, mapper, operator or admin",
    "int_parsing": "this is no organisation; write its number",
    "tuple_type": "a list is expected here; write [first, second]",
    "string_pattern_mismatch": "write the name of the variable that holds the secret, such as "
    "ENTRA_CLIENT_SECRET, and never the secret itself",
}


def _fault(path: Path, file: YamlFile, error: Mapping[str, Any]) -> str:
    place: Sequence[Any] = [part for part in error["loc"] if part != "[key]"]
    said = _SAID.get(error["type"]) or problem_text(error)
    if "[key]" in error["loc"]:
        said = "is no name; write small letters, digits and -, a letter first, at most 40"
    where = ".".join(str(part + 1 if isinstance(part, int) else part) for part in place)
    return f"{path}: line {file.line_of(place)}: {f'{where}: ' if where else ''}{said}"

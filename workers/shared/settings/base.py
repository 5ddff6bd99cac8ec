"""What all settings share: how they are described, read from a mapping or files, and reported."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Self, cast

from pydantic import GetCoreSchemaHandler, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, ErrorDetails, core_schema
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from workers.shared.errors import SettingsError

SECRETS_DIR: Final = "DOCFLOW_SECRETS_DIR"


class SecretFiles:
    """The files that one environment names; each is read when its setting is.

    Args:
        environment: Names and values.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def value(self, name: str, text: str | None) -> str | None:
        """A secret from wherever it is given; None when it is not.

        Args:
            name: Of the setting.
            text: Its value in the environment.

        Raises:
            ValueError: It is given twice, or its file cannot be read or is empty. The message
                names the setting and no value.
        """
        named = self._environment.get(f"{name}_FILE", "").strip()
        files = [(f"{name}_FILE", Path(named))] if named else []
        if (path := self._in_folder(name)) is not None:
            files.append((f"the file {path.name} in {SECRETS_DIR}", path))
        ways = [*([name] if text is not None else []), *(way for way, _ in files)]
        if len(ways) > 1:
            raise ValueError(f"{name} is given more than once, by {' and '.join(ways)}; keep one")
        return _content(name, files[0][1]) if files else text

    def _in_folder(self, name: str) -> Path | None:
        folder = self._environment.get(SECRETS_DIR, "").strip()
        if not folder:
            return None
        try:
            names = sorted(path.name for path in Path(folder).iterdir())
        except OSError as error:
            raise ValueError(
                f"{SECRETS_DIR} must be a folder with a file for each secret: "
                f"{folder!r} cannot be read ({error.strerror})"
            ) from None
        # As pydantic-settings: upper and lower case are the same.
        found = next((each for each in names if each.upper() == name), None)
        return None if found is None else Path(folder) / found


def _content(name: str, path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(
            f"{name} cannot be read from its file {str(path)!r}: {error.strerror}"
        ) from None
    except UnicodeDecodeError:
        raise ValueError(f"{name} cannot be read from its file {str(path)!r}: not UTF-8") from None
    if not text:
        raise ValueError(f"{name} has an empty file: write the secret into {str(path)!r}")
    return text


logger = logging.getLogger(__name__)

HINT: Final = "set it in the environment, or run `make dev` for a stack that has everything"
_KINDS: Final[Mapping[object, str]] = {int: "whole number", bool: "`true` or `false`", str: "text"}


class Missing(ValueError):
    """A setting is missing because of another one; the message says what to set."""


class WholeMessage(ValueError):
    """The message names the setting by itself."""


@dataclass(frozen=True)
class Setting:
    """What docflow says about a setting, beyond its type; stands in the field's annotation."""

    hint: str = HINT
    """What to set when it is missing."""
    rule: str = ""
    """Completes `NAME ...` when the value does not fit the type."""
    secret: bool = False
    """Its value is never shown, and it may come from a file."""
    former: str | None = None
    """Former name, read with a warning; both names may be set only to the same value."""
    also: str | None = None
    """Another name, read when this one is not set; both may be set only to the same value."""
    kind: str = ""
    """Type as the reference names it, where it is not plain from the annotation."""
    default: str = ""
    """Default as the reference shows it, where it is not the field's."""


@dataclass(frozen=True)
class Whole:
    """A whole number between two limits; `unit` is what one of it counts for."""

    least: int
    most: int
    unit: int = 1

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._parse, handler(source))

    def _parse(self, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            number = int(value)
        except ValueError:
            raise ValueError(f"must be a whole number, not {value!r}") from None
        if not self.least <= number <= self.most:
            raise ValueError(f"must be between {self.least} and {self.most}, not {number}")
        return number * self.unit


def parse_flag(value: object) -> object:
    """Read `true` or `false`, also as yes, no, 1 and 0.

    Raises:
        ValueError: It is none of them.
    """
    if not isinstance(value, str):
        return value
    text = value.lower()
    if text not in ("true", "yes", "1", "false", "no", "0"):
        raise ValueError(f"must be true or false, not {text!r}")
    return text in ("true", "yes", "1")


def parse_list(value: object) -> object:
    """Split at commas; empty parts are left out."""
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


@dataclass(frozen=True)
class DeclaredSetting:
    """One setting as a class declares it."""

    name: str
    field: str
    info: FieldInfo
    setting: Setting

    @property
    def whole(self) -> Whole | None:
        """Its limits, when it is a number."""
        return next((each for each in self.info.metadata if isinstance(each, Whole)), None)

    @property
    def kind(self) -> str:
        """Its type, in words."""
        return self.setting.kind or _KINDS[self.info.annotation]

    @property
    def names(self) -> tuple[str, ...]:
        """Every variable that it is read from; the first one is its own."""
        names = (self.name, self.setting.also, self.setting.former)
        found = tuple(name for name in names if name is not None)
        return (*found, f"{self.name}_FILE") if self.setting.secret else found


class Settings(BaseSettings):
    """A group of settings.

    Class methods read them; the constructor takes values and looks nowhere else.
    """

    title: ClassVar[str] = ""
    """Heading in the reference."""
    used_by: ClassVar[str] = ""
    """Processes and commands, for the reference."""

    model_config = SettingsConfigDict(
        frozen=True,
        populate_by_name=True,
        extra="forbid",
        hide_input_in_errors=True,
        defer_build=True,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Neither the process's environment nor an .env file is read unasked."""
        return (init_settings,)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Everything but secrets."""
        secrets = {each.field for each in self.declared() if each.setting.secret}
        return (pair for pair in super().__repr_args__() if pair[0] not in secrets)

    @classmethod
    def declared(cls) -> tuple[DeclaredSetting, ...]:
        """Its own settings, in the order of the class."""
        return tuple(
            DeclaredSetting(info.validation_alias, name, info, _setting(info))
            for name, info in cls.model_fields.items()
            if isinstance(info.validation_alias, str)
        )

    @classmethod
    def groups(cls) -> "Mapping[str, type[Settings]]":
        """Fields that are groups themselves."""
        return {
            name: info.annotation
            for name, info in cls.model_fields.items()
            if isinstance(info.annotation, type) and issubclass(info.annotation, Settings)
        }

    @classmethod
    def every(cls) -> tuple[DeclaredSetting, ...]:
        """Its settings and those of its groups."""
        inner = (each for group in cls.groups().values() for each in group.every())
        return (*inner, *cls.declared())

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read and check.

        Args:
            environment: Names and values; nothing else is read but files that it names.

        Raises:
            SettingsError: Some are missing or make no sense; all of them are named.
        """
        source = MappingSource(cls, environment)
        settings = cls._built(source)
        for former, name in source.formers:
            logger.warning("%s is now %s; the old name will be removed", former, name)
        return settings

    @classmethod
    def problems(cls, environment: Mapping[str, str]) -> tuple[str, ...]:
        """What `read` would report, a line each; empty when everything is well."""
        try:
            cls._built(MappingSource(cls, environment))
        except SettingsError as error:
            return error.problems
        return ()

    @classmethod
    def _built(cls, source: "MappingSource") -> Self:
        values = source()
        problems = source.problems
        try:
            settings = cls(**values)
        except ValidationError as failure:
            # The cause is left out: it would hold the values.
            formers = {name: former for former, name in source.formers}
            lines = dict.fromkeys((*problems.values(), *_lines(cls, failure, problems, formers)))
            raise SettingsError(*lines) from None
        return settings


class _Refused:
    """Stands for a value that was refused: fits no type, so that rules between settings wait."""


class MappingSource(PydanticBaseSettingsSource):
    """Values of one mapping, and of the files that it names for secrets.

    Attributes:
        problems: What is wrong with files and former names, by the name of the setting.
        formers: Former names that were used, and today's.
    """

    def __init__(self, settings_cls: type[Settings], environment: Mapping[str, str]) -> None:
        super().__init__(settings_cls)
        self._settings = settings_cls
        self._environment = environment
        self._files = SecretFiles(environment)
        self.problems: dict[str, str] = {}
        self.formers: list[tuple[str, str]] = []

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The value of a setting; None when it is not set."""
        name = cast(str, field.validation_alias)
        return self._value(name, _setting(field)), name, False

    def __call__(self) -> dict[str, Any]:
        """Every value that is set, by its name."""
        values: dict[str, Any] = {}
        for field, group in self._settings.groups().items():
            inner = MappingSource(group, self._environment)
            values[field] = inner()
            self.problems |= inner.problems
            self.formers += inner.formers
        for each in self._settings.declared():
            value, name, _ = self.get_field_value(each.info, each.field)
            if value is not None:
                values[name] = value
        return values

    def _value(self, name: str, setting: Setting) -> "str | _Refused | None":
        found = self._environment.get(name)
        text = found if found and found.strip() else None
        if setting.secret:
            try:
                return self._files.value(name, text)
            except ValueError as error:
                self.problems[name] = str(error)
                return _Refused()
        if setting.also and (other := self._environment.get(setting.also, "").strip()):
            if text and text.strip() != other:
                self.problems[name] = (
                    f"{name} and {setting.also} are both set, to different values; remove one of "
                    "them"
                )
                return _Refused()
            text = other
        if setting.former and (former := self._environment.get(setting.former, "").strip()):
            if text and text.strip() != former:
                self.problems[name] = (
                    f"{name} and its former name {setting.former} are both set, to different "
                    f"values; remove {setting.former}"
                )
                return _Refused()
            self.formers.append((setting.former, name))
            text = former
        return text.strip() or None if text else None


def _setting(info: FieldInfo) -> Setting:
    return next((each for each in info.metadata if isinstance(each, Setting)), Setting())


def _lines(
    settings: type[Settings],
    failure: ValidationError,
    known: Mapping[str, str],
    formers: Mapping[str, str],
) -> Iterator[str]:
    # A default that is refused is reported by the name of its field.
    every = settings.every()
    declared = {each.field: each for each in every} | {each.name: each for each in every}
    seen = set(known)
    for error in failure.errors(include_url=False, include_input=False):
        found = next(declared[str(part)] for part in error["loc"] if part in declared)
        if found.name not in seen:
            seen.add(found.name)
            yield _line(found, error, formers.get(found.name))


def _line(declared: DeclaredSetting, error: ErrorDetails, former: str | None) -> str:
    reason = error.get("ctx", {}).get("error")
    if isinstance(reason, WholeMessage):
        return str(reason)
    if isinstance(reason, Missing) or error["type"] == "missing":
        return f"missing setting: {declared.name}; {reason or declared.setting.hint}"
    name = declared.name if former is None else f"{former} (now {declared.name})"
    if isinstance(reason, ValueError):
        return f"{name} {reason}"
    return f"{name} {declared.setting.rule or 'is invalid'}"

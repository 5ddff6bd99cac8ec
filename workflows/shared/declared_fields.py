"""The parts of a declared type: its fields, what must hold of its rows, and where they go."""

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from workflows.shared.conversion import Flaw, read_cells
from workflows.shared.currencies import ISO_4217
from workflows.shared.durations import time_unit
from workflows.shared.errors import RuleViolation
from workflows.shared.fields import (
    DECIMAL_DIGITS,
    LINE_CHARACTERS,
    NUMBERS,
    Bound,
    Clock,
    ColumnKind,
    FieldSpec,
    normalise,
)
from workflows.shared.notations import Notation
from workflows.shared.patterns import compiled_pattern

NAME_CHARACTERS: Final = 40
"""Characters of the name of a type or field: PostgreSQL takes 63, and docflow puts words before."""
MOST_FIELDS: Final = 100
_ALIAS: Final = 100

NAME: Final = rf"^[a-z][a-z0-9_]{{0,{NAME_CHARACTERS - 1}}}$"
LANGUAGE: Final = r"^[a-z]{2}$"
DAYS_KEPT: Final = r"^[1-9][0-9]{0,4}( days?)?$"
OTHER_TABLE: Final = r"^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$"
DATABASE: Final = r"^[a-z][a-z0-9-]{0,39}$"
SOME_TEXT: Final = r"\S"
"""What texts of a declaration match."""

Name = Annotated[str, StringConstraints(pattern=NAME)]
"""What programs and tables call a type or a field: `invoice_lines`."""
Title = Annotated[str, StringConstraints(pattern=SOME_TEXT, min_length=1, max_length=80)]
Alias = Annotated[str, StringConstraints(pattern=SOME_TEXT, min_length=1, max_length=_ALIAS)]
Role = Literal["mapper", "operator", "admin"]
"""People who may upload, by the role in their token."""
Language = Annotated[str, StringConstraints(pattern=LANGUAGE)]


def _in_days(text: str) -> str:
    number = text.partition(" ")[0]
    return f"{number} day{'' if number == '1' else 's'}"


Days = Annotated[
    str,
    StringConstraints(pattern=DAYS_KEPT),
    AfterValidator(_in_days),
    Field(json_schema_extra={"minimum": 1, "maximum": 99_999}),
]
_TRUTHS: Final = MappingProxyType(
    {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
)


def _truth(given: Any) -> Any:
    return _TRUTHS.get(given.lower(), given) if isinstance(given, str) else given


Truth = Annotated[
    bool,
    Field(strict=True),
    BeforeValidator(
        _truth, json_schema_input_type=bool | Literal["true", "yes", "on", "false", "no", "off"]
    ),
]
"""A truth value as YAML has it."""


def _known_currency(code: str) -> str:
    if code not in ISO_4217:
        raise ValueError(f"{code!r} is no currency of ISO 4217; write its code, such as EUR")
    return code


Currency = Annotated[
    str, AfterValidator(_known_currency), Field(json_schema_extra={"enum": [*sorted(ISO_4217)]})
]

Kind = Literal[
    "text",
    "code",
    "integer",
    "decimal",
    "money",
    "date",
    "time",
    "duration",
    "place",
    "timestamp",
    "boolean",
    "choice",
    "email",
    "phone",
    "country",
    "reference",
    "sequence",
    "section",
]
"""How the cells of a column are read; see `KINDS`."""
KINDS: Final[Mapping[str, tuple[ColumnKind, str]]] = MappingProxyType(
    {
        "text": (ColumnKind.TEXT, "free text; line breaks are part of it"),
        "code": (
            ColumnKind.CODE,
            "an identifier: leading zeros stay, and a cell 1200.0 reads `1200`",
        ),
        "integer": (ColumnKind.INTEGER, "a whole number of 32 bits"),
        "decimal": (
            ColumnKind.DECIMAL,
            "an exact number with up to 14 digits before and 6 behind the decimal point",
        ),
        "money": (
            ColumnKind.MONEY,
            "a decimal that may stand with a currency sign; `currency` says which one",
        ),
        "date": (ColumnKind.DATE, "a day"),
        "time": (ColumnKind.TIME, "a time of day"),
        "duration": (
            ColumnKind.DURATION,
            "hours:minutes:seconds; kept as milliseconds. `clock` says what two numbers are, and "
            "`units` what a bare number counts",
        ),
        "place": (
            ColumnKind.PLACE,
            "a place of a list of results: `3`, `3.`, `=3`, `T5`, `2nd`, `12/345`",
        ),
        "timestamp": (
            ColumnKind.TIMESTAMP,
            "a date with a time of day; `zone` says of which clock, if the cell does not",
        ),
        "boolean": (ColumnKind.BOOLEAN, "yes or no, in several languages, or as \u2713 and \u2717"),
        "choice": (ColumnKind.CHOICE, "one of `choices`"),
        "email": (ColumnKind.MAIL, "a mail address"),
        "phone": (ColumnKind.PHONE, "a telephone number, without the signs between its digits"),
        "country": (
            ColumnKind.CHOICE,
            "a country by its name or code; kept as the two letters of ISO 3166",
        ),
        "reference": (ColumnKind.CODE, "a row of another table; `to` or `table` says which"),
        "sequence": (
            ColumnKind.INTEGER,
            "numbers the rows that have the same rest of the key, in the order of the file",
        ),
        "section": (
            ColumnKind.CODE,
            "the headings above a row, unless the file has a column for it",
        ),
    }
)
"""Kind to how its cells are read, and what that means for people."""
NUMBER_KINDS: Final = frozenset({"integer", "decimal", "money"})
_BOUNDED: Final = NUMBER_KINDS | {"date", "duration", "place"}
_WRITTEN: Final = frozenset({"text", "code", "email"})
KEY_KINDS: Final = frozenset(
    {"code", "text", "integer", "date", "choice", "email", "country", "sequence", "section"}
)
"""Kinds that a part of a natural key may have."""
ORDERED_KINDS: Final = _BOUNDED | {"time", "timestamp"}
"""Kinds of which one value is less than another one."""
MAY_BE_EMPTY: Final = frozenset({"text", "code", "choice", "email", "phone", "country"})
"""Kinds of which a text without letters is a value."""
ONLY: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "choices": frozenset({"choice"}),
        "currency": frozenset({"money"}),
        "zone": frozenset({"timestamp"}),
        "clock": frozenset({"duration"}),
        "past": frozenset({"date"}),
        "to": frozenset({"reference"}),
        "table": frozenset({"reference"}),
        "row_key": frozenset({"reference"}),
        "label": frozenset({"reference"}),
        "unknown": frozenset({"reference"}),
        "minimum": _BOUNDED,
        "maximum": _BOUNDED,
        "pattern": _WRITTEN,
        "max_length": _WRITTEN,
        "units": NUMBER_KINDS | {"code", "duration"},
        "words": NUMBER_KINDS | {"place"},
        "part": frozenset({"date"}),
        "default": frozenset(KINDS) - {"sequence", "section"},
    }
)
"""Words that only fields of these kinds have."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a declaration is checked against when a file is read; the context of its validation.

    A version that the database keeps was checked then, and has no context.

    Attributes:
        countries: Two letters of ISO 3166 to the other ways to write a country.
        zones: Time zones.
        why_missing: Says why a check cannot be run here; None: it can.
    """

    countries: Mapping[str, Sequence[str]]
    zones: Collection[str]
    why_missing: Callable[[str], str | None]


class DeclaredPart(BaseModel):
    """A part of a declaration."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        defer_build=True,
        use_attribute_docstrings=True,
        json_schema_extra={"additionalProperties": False},
    )

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, given: Any) -> Any:
        """A word with nothing behind it is as good as none."""
        if not isinstance(given, dict):
            return given
        words = cast("dict[str, Any]", given)
        return {
            word: value
            for word, value in words.items()
            if value is not None or word not in cls.model_fields
        }


class Fault(ValueError):
    """A part of a declaration is wrong.

    Args:
        said: What is wrong, and what to do.
        path: Words and places (from 0) that lead from the checked part to the one that is wrong.
    """

    def __init__(self, said: str, *path: str | int) -> None:
        super().__init__(said)
        self.path = path


def nearest(word: str, known: Iterable[str]) -> str:
    """Which of the known words was meant, or all of them; ends a sentence."""
    words = sorted(known)
    near = _near(word, words)
    return f"did you mean {near!r}?" if near else f"known are {', '.join(words)}"


def meant(word: str, known: Iterable[str]) -> str:
    """Which of the known words was meant; comes before a list of them, and may be empty."""
    near = _near(word, list(known))
    return f"did you mean {near!r}? " if near else ""


def _near(word: str, words: Sequence[str]) -> str | None:
    folded = {each.casefold(): each for each in words}
    found = difflib.get_close_matches(str(word).casefold(), folded, n=1)
    return folded[found[0]] if found else None


_Aliases = tuple[Alias, ...] | Annotated[dict[Language, tuple[Alias, ...]], Field(max_length=30)]
_Choices = (
    Annotated[tuple[Alias, ...], Field(max_length=1_000)]
    | Annotated[dict[Alias, tuple[Alias, ...] | None], Field(max_length=1_000)]
)
"""How people write these words; see the fields."""


COLUMN: Final = r"^[^\x00\x01]+$"
_Column = Annotated[str, StringConstraints(pattern=COLUMN, max_length=63)]
_RowKey = Annotated[
    tuple[_Column, ...],
    Field(min_length=1, max_length=9),
    BeforeValidator(
        lambda given: (given,) if isinstance(given, str) else given,
        json_schema_input_type=_Column | tuple[_Column, ...],
    ),
    PlainSerializer(lambda names: names[0] if len(names) == 1 else list(names)),
]
"""Column of a table; a list of several."""


class DeclaredField(DeclaredPart):
    """One column of a declared type."""

    kind: Kind = "text"
    title: Title | None = None
    """What people call it; its name with spaces when absent."""
    required: Truth = False
    """If a cell is blank, its row is rejected. If a file lacks the column, it is refused."""
    aliases: dict[Language, tuple[Alias, ...]] = Field(default_factory=dict, max_length=30)
    """Other headers that mean it, by language; a plain list is of any language."""
    choices: dict[Alias, tuple[Alias, ...]] = Field(default_factory=dict, max_length=1_000)
    """Value to the other ways to write it."""
    minimum: str | None = Field(default=None, max_length=40)
    """Smallest value, written as a cell is; of a duration `01:30:00`, or a number in the first of
    its `units`, which is seconds when absent."""
    maximum: str | None = Field(default=None, max_length=40)
    """Largest value."""
    pattern: str | None = Field(default=None, max_length=500)
    """Regular expression that the whole text matches. It runs on an engine that needs linear time:
    it has no look-around and no back references."""
    max_length: int | None = Field(default=None, ge=1, le=100_000)
    """Characters; 100 for a code and 255 for a text when absent."""
    default: str | None = Field(default=None, max_length=255)
    """What a blank cell means; `""`: an empty text, so that a part of a key may be blank."""
    units: tuple[Alias, ...] | None = Field(default=None, max_length=50)
    """Units that its header may name beside it; any that does not scale the values when absent. A
    cell may have one of these behind its number: `4.2 kg`. Of a duration (`h`, `min`, `s`, `d`) a
    number is in the unit that the header names, else in the first of these; a number without a
    unit is rejected. With `d` among them, a number of a spreadsheet below 1 is a part of a day."""
    blanks: tuple[Alias, ...] = Field(default=(), max_length=100)
    """Texts that count as a blank cell, beside those that always do."""
    currency: Currency | None = None
    """Currency of its amounts: `EUR`; a cell that names another one is rejected."""
    zone: str | None = Field(default=None, max_length=64)
    """Time zone of cells that name none: `Europe/Berlin`; they are kept in UTC."""
    clock: Clock | None = None
    """What two numbers with a colon are, such as `1:30`. When absent, a cell that says so is
    rejected, unless the header says it: `Pause (hh:mm)`."""
    to: Name | None = None
    """The declared type that it refers to, by that type's key."""
    table: Annotated[str, StringConstraints(pattern=OTHER_TABLE)] | None = None
    """The table or view that it refers to, with its schema unless that is `public`."""
    row_key: _RowKey | None = None
    """The column of `table` that is stored. If several columns name a row, a list of them: the last
    one is stored, and the others are names in `scope`, by whose values rows are looked up."""
    label: _Column | None = None
    """The column of `table` that people write; `row_key` when absent."""
    unknown: Literal["ask", "create", "refuse"] | None = None
    """What happens to a value that the other table does not hold; `ask` when absent. An import of
    a message parks until the row is there, and an upload asks its person. `create` makes a row
    that holds the key alone. `refuse` rejects the row."""
    words: dict[Alias, Alias] = Field(default_factory=dict, max_length=100)
    """Words that stand for a number: `free: 0`, `dozen: 12`."""
    part: Literal["first", "last"] | None = None
    """Which day is meant by a year, or by a month and a year: `2025`, `March 2025`. They are no
    dates when absent."""
    past: Truth = False
    """Years of two digits are years that have been, as of a date of birth."""
    examples: tuple[Alias, ...] = Field(default=(), max_length=10)
    """Cells that are right, for the template of uploads."""

    filled: Truth = False
    """A blank cell is a problem, if the file has the column."""
    was: Name | None = None
    """Its earlier name: `apply` renames the column, and its values stay."""

    @field_validator("aliases", mode="before", json_schema_input_type=_Aliases)
    @classmethod
    def _of_any_language(cls, given: Any) -> Any:
        if isinstance(given, list | tuple):
            return {"en": cast("list[Any]", given)}
        return given

    @field_validator("choices", mode="before", json_schema_input_type=_Choices)
    @classmethod
    def _without_other_spellings(cls, given: Any) -> Any:
        if isinstance(given, list | tuple):
            return {choice: () for choice in cast("list[Any]", given)}
        if isinstance(given, dict):
            choices = cast("dict[str, Any]", given)
            return {name: spellings or () for name, spellings in choices.items()}
        return given

    @model_validator(mode="before")
    @classmethod
    def _may_be_blank(cls, given: Any) -> Any:
        return {} if given is None else given

    @model_validator(mode="after")
    def _holds_values(self, info: ValidationInfo) -> Self:
        known: Surroundings | None = info.context
        # What is no file may list defaults as well.
        said = self.model_dump(exclude_unset=True, exclude_defaults=known is None)
        for word, kinds in ONLY.items():
            if word in said and self.kind not in kinds:
                listed = f"of kind {' or '.join(sorted(kinds))}"
                raise Fault(
                    f"is a word of fields {'that a file fills' if word == 'default' else listed}, "
                    f"and this one is of kind {self.kind}; remove it or change the kind",
                    word,
                )
        if self.kind == "choice" and not self.choices:
            raise Fault("choice needs 'choices'; write `choices: [first, second]`", "kind")
        if self.kind == "reference":
            self._check_reference()
        if self.pattern is not None:
            try:
                compiled_pattern(self.pattern)
            except RuleViolation as error:
                raise Fault(str(error), "pattern") from error
        if known is not None and self.zone is not None and self.zone not in known.zones:
            raise Fault(f"{self.zone!r} is no time zone; write one like Europe/Berlin", "zone")
        self._check_choices()
        if self.kind == "duration" and known is not None:
            for place, unit in enumerate(self.units or ()):
                if time_unit(unit) is None:
                    said = f"{unit!r} is no unit of time; write h, min, s or d"
                    raise Fault(said, "units", place)
        bounds = [_bound(self, word) for word in ("minimum", "maximum")]
        if None not in bounds and cast(Any, bounds[0]) > bounds[1]:
            raise Fault(f"{self.minimum} is more than the maximum {self.maximum}", "minimum")
        self._check_words()
        countries = None if known is None else known.countries
        if self.default is not None and self.required:
            raise Fault("a required field has none; remove it or 'required'", "default")
        if self.default == "" and self.kind not in MAY_BE_EMPTY:
            raise Fault(
                f"is empty, and a value of kind {self.kind} is not; write a value or remove it",
                "default",
            )
        if self.default:
            value_of(self, self.default, "default", countries=countries)
        for place, example in enumerate(self.examples if known else ()):
            _read(field_spec("", _bare(self), countries), example, "examples", place)
        return self

    def _check_choices(self) -> None:
        """See that each text means one thing, and that docflow can tell it from the others."""
        spelled: dict[str, str] = {}
        for choice, spellings in self.choices.items():
            for each in (choice, *spellings):
                if not normalise(each):
                    raise Fault(
                        f"{each!r} has no letter and no digit; write a word", "choices", choice
                    )
                if spelled.setdefault(normalise(each), choice) != choice:
                    raise Fault(
                        f"{each!r} means {spelled[normalise(each)]!r} and {choice!r}; remove it "
                        "from one of them",
                        *("choices", choice),
                    )
        meant = {*spelled, *map(normalise, self.words)}
        for place, each in enumerate(self.blanks):
            if normalise(each) in meant:
                word = "choices" if self.choices else "words"
                raise Fault(f"{each!r} is in '{word}' as well; remove one of them", "blanks", place)

    def _check_words(self) -> None:
        """See that words mean numbers of the field, and are none."""
        plain = field_spec("", _bare(self).model_copy(update={"words": {}}))
        meant: dict[str, str] = {}
        for word, meaning in self.words.items():
            if not normalise(word):
                raise Fault(f"{word!r} has no letter and no digit; write a word", "words", word)
            if meant.setdefault(normalise(word), meaning) != meaning:
                raise Fault(f"{word!r} is there twice; remove one of them", "words", word)
            value = read_text(plain, word)
            if value is not None and not isinstance(value, Flaw):
                raise Fault(f"{word!r} is a number already; remove it", "words", word)
            _read(plain, meaning, "words", word)

    def _check_reference(self) -> None:
        if (self.to is None) == (self.table is None):
            raise Fault(
                "reference needs either 'to' (a declared type) or 'table' with 'row_key'; write "
                "one of them",
                "kind" if self.to is None else "table",
            )
        if self.table is not None and self.row_key is None:
            raise Fault("needs 'row_key', the column whose value is stored; add it", "table")
        for word in ("row_key", "label") if self.to is not None else ():
            if getattr(self, word) is not None:
                raise Fault("belongs to 'table', and 'to' has the type's key; remove it", word)
        if self.table is not None and self.unknown == "create":
            raise Fault(
                "docflow creates rows of declared types alone; use 'ask' or 'refuse', or 'to' "
                "instead of 'table'",
                "unknown",
            )

    @property
    def column_kind(self) -> ColumnKind:
        """How cells are read."""
        return KINDS[self.kind][0]

    @property
    def every_alias(self) -> tuple[str, ...]:
        """Other headers that mean it, in any language."""
        return tuple(alias for aliases in self.aliases.values() for alias in aliases)


def measure_otherwise(one: DeclaredField, other: DeclaredField) -> bool:
    """Return whether a number means one amount in one field, and another amount in the other.

    A length of time is stored in one unit, whatever its cells count.
    """
    if "duration" in (one.kind, other.kind):
        return False
    first, second = (FieldSpec("", units=each.units) for each in (one, other))
    if first.is_percent or second.is_percent:
        return first.is_percent != second.is_percent
    units, others = first.units or (), second.units or ()
    return bool(units and others) and set(units).isdisjoint(others)


Comparison = Literal["<", "<=", "=", ">=", ">"]


class DeclaredRule(DeclaredPart):
    """What must hold of the fields of one row; exactly one of them."""

    any_of: tuple[str, ...] | None = Field(default=None, min_length=2)
    """At least one of these is filled."""
    together: tuple[str, ...] | None = Field(default=None, min_length=2)
    """All of these are filled, or none."""
    compare: tuple[str, Comparison, str] | None = None
    """The first stands so to the second, where both are filled: `[net, "<=", gross]`."""
    required: str | None = None
    """This is filled in rows in which `when` holds."""
    when: dict[str, str] | None = Field(default=None, min_length=1, max_length=10)
    """Field to the value that it has."""
    says: str | None = Field(default=None, max_length=200)
    """What is wrong, for the person who corrects the row."""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        forms = [self.any_of, self.together, self.compare, self.required]
        if sum(form is not None for form in forms) != 1:
            raise Fault(
                "a rule has one of any_of, together, compare, or required with when; remove the "
                "others"
            )
        if (self.required is None) != (self.when is None):
            raise Fault("'required' and 'when' belong together; write both")
        if len(set(self.names)) < len(self.names):
            raise Fault("names a field twice; remove one of them")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that it is about."""
        if self.compare is not None:
            return (self.compare[0], self.compare[2])
        if self.required is not None:
            return (self.required, *(self.when or {}))
        return self.any_of or self.together or ()

    @property
    def places(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Where it names each field, and which."""
        for word in ("any_of", "together", "compare"):
            for place, name in enumerate(getattr(self, word) or ()):
                if word != "compare" or place != 1:
                    yield (word, place), name
        if self.required is not None:
            yield ("required",), self.required
        for name in self.when or ():
            yield ("when", name), name


NOT_STORED: Final = "-"
"""Stands for the column of a scope that a table of yours does not have."""
_PART: Final = r"[^.\x00\x01]{1,63}"
OWN_TABLE: Final = rf"^({_PART}\.)?{_PART}$"


class DeclaredTarget(DeclaredPart):
    """Where rows go, if that is not a table of docflow's: a table of yours, or a file."""

    database: Annotated[str, StringConstraints(pattern=DATABASE)] | None = None
    """The database of `table`: a name in `DOCFLOW_TYPE_DATABASES`; docflow's own when absent."""
    table: Annotated[str, StringConstraints(pattern=OWN_TABLE)] | None = None
    """A table of yours, with its schema unless that is `public`. docflow never changes it."""
    columns: dict[Name, _Column] = Field(default_factory=dict, max_length=MOST_FIELDS + 8)
    """Field to its column in `table`, where the names differ. If the table has no column for a
    name in `scope`, write `-`."""
    file: Literal["parquet", "jsonl", "csv"] | None = None
    """The accepted rows become a file of this format in the blob store."""
    webhook: Name | None = None
    """Who is notified of the file: a name in `DOCFLOW_TYPE_WEBHOOKS`."""

    @model_validator(mode="after")
    def _says_one_place(self) -> Self:
        if (self.table is None) == (self.file is None):
            raise ValueError("write either 'table' or 'file'")
        if self.table is None and (self.database or self.columns):
            word = "database" if self.database else "columns"
            raise Fault("belongs to 'table'; remove it, or write 'table' for 'file'", word)
        if self.table is not None and self.webhook:
            raise Fault("belongs to 'file'; remove it", "webhook")
        return self

    @property
    def schema_name(self) -> str:
        """The schema of `table`."""
        return (self.table or "").rpartition(".")[0] or "public"

    @property
    def name(self) -> str:
        """`table` without its schema."""
        return (self.table or "").rpartition(".")[2]

    def column(self, name: str) -> str | None:
        """The column of a field or a name in the scope; None: it is not stored."""
        found = self.columns.get(name, name)
        return None if found == NOT_STORED else found


def read_text(spec: FieldSpec, text: str) -> Any:
    """Read a text of a declaration as a cell of its field is read.

    Returns:
        A value, None for a blank, or a `Flaw`.
    """
    values, _ = read_cells(spec, [text], Notation.POINT if spec.kind in NUMBERS else None)
    return values[0]


def _read(spec: FieldSpec, text: str, *path: str | int) -> Any:
    """Read the value that stands at a place of a declaration.

    Raises:
        Fault: The field cannot read it, or reads a blank.
    """
    value = read_text(spec, text)
    if isinstance(value, Flaw):
        example = _EXAMPLES.get(spec.kind) if value.reason.startswith("is not a") else None
        cure = f"; write one like {example}" if example and ";" not in value.reason else ""
        raise Fault(f"{text!r} {value.reason}{cure}", *path)
    if value is None:
        raise Fault(f"{text!r} means a blank cell; write a value or remove it", *path)
    return value


def _of_file(spec: FieldSpec) -> FieldSpec:
    """A field as a file of a type writes its values: a bare duration is in seconds."""
    is_bare = spec.kind is ColumnKind.DURATION and spec.units is None
    return replace(spec, units=("s",)) if is_bare else spec


_EXAMPLES: Final[Mapping[ColumnKind, str]] = MappingProxyType(
    {ColumnKind.INTEGER: "12", ColumnKind.DECIMAL: "12.5", ColumnKind.MONEY: "12.50"}
)


def _bare(field: "DeclaredField") -> "DeclaredField":
    """A field in which a blank cell is a blank."""
    return field.model_copy(update={"default": None, "required": False, "filled": False})


def value_of(
    field: "DeclaredField",
    text: str,
    *path: str | int,
    countries: Mapping[str, Sequence[str]] | None = None,
) -> Any:
    """Return the value that a text of a declaration means.

    Args:
        field: Whose value it is.
        text: Written as in a cell; a country by its two letters.
        path: Where it stands.
        countries: As for `field_spec`; None: they were checked when the file was read.

    Raises:
        Fault: The field cannot read it, or reads a blank.
    """
    if field.kind != "country":
        return _read(_of_file(field_spec("", _bare(field))), text, *path)
    if countries is not None and text not in countries:
        raise Fault(f"{text!r} is no code of a country; write its two letters, such as DE", *path)
    return text


def field_spec(
    name: str, field: DeclaredField, countries: Mapping[str, Sequence[str]] | None = None
) -> FieldSpec:
    """How the column of a declared field is recognised and read.

    Args:
        name: What the type calls it.
        field: Its declaration.
        countries: Two letters of ISO 3166 to other names, for fields of kind country.

    Raises:
        Fault: A bound is no value of its kind.
    """
    is_sequence = field.kind == "sequence"
    return FieldSpec(
        name,
        field.column_kind,
        field.required,
        field.every_alias,
        max_length=field.max_length or _LONGEST.get(field.kind),
        minimum=1 if is_sequence else _bound(field, "minimum"),
        maximum=_bound(field, "maximum"),
        choices=(countries or {}) if field.kind == "country" else field.choices,
        blank=_blank(field),
        filled=field.filled or is_sequence,
        units=field.units,
        words=_words(field),
        part=field.part,
        past=field.past,
        examples=field.examples,
        title=field.title or "",
        pattern=field.pattern,
        blanks=field.blanks,
        currency=field.currency,
        zone=field.zone,
        clock=field.clock,
    )


_LONGEST: Final[Mapping[str, int]] = MappingProxyType({"section": LINE_CHARACTERS})


def _blank(field: DeclaredField) -> Any:
    if field.kind == "section":
        return ""
    return value_of(field, field.default) if field.default else field.default


def _words(field: DeclaredField) -> Mapping[str, int | float]:
    """Words of a field as cells of a spreadsheet, which no decimal comma changes."""
    if not field.words:
        return {}
    spec = field_spec("", _bare(field).model_copy(update={"words": {}}))
    values = {word: _read(spec, meaning) for word, meaning in field.words.items()}
    return {word: int(n) if n == int(n) else float(n) for word, n in values.items()}


_MOST: Final = 10**DECIMAL_DIGITS - 1
_WIDEST: Final[Mapping[ColumnKind, tuple[Bound | None, Bound | None]]] = MappingProxyType(
    {
        ColumnKind.INTEGER: (-_MOST, _MOST),
        ColumnKind.PLACE: (-_MOST, _MOST),
        ColumnKind.DATE: (date.min, date.max),
        ColumnKind.TIMESTAMP: (date.min, date.max),
        ColumnKind.DURATION: (None, 999_999 * 3_600_000),
    }
)
"""What a column holds of a kind, whose values have narrower bounds if none are declared."""


def _bound(field: DeclaredField, word: Literal["minimum", "maximum"]) -> Bound | None:
    """A bound as a value of its field; of a duration in milliseconds.

    Raises:
        Fault: It is no value of the field.
    """
    text: str | None = getattr(field, word)
    if text is None:
        return None
    words = {each: getattr(field, each) for each in ("part", "currency", "clock", "units")}
    least, most = _WIDEST.get(field.column_kind, (None, None))
    spec = FieldSpec("", field.column_kind, minimum=least, maximum=most, **words)
    value = _read(_of_file(spec), text, word)
    return int(value) if isinstance(value, Decimal) and value == int(value) else value

"""The parts of a declared type: its fields, what must hold of its rows, and where they go."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    field_validator,
    model_validator,
)

from workflows.shared.conversion import Flaw, read_cells
from workflows.shared.errors import RuleViolation
from workflows.shared.fields import (
    LINE_CHARACTERS,
    NUMBERS,
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

Name = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", min_length=1, max_length=NAME_CHARACTERS)
]
"""What programs and tables call a type or a field: `invoice_lines`."""
Title = Annotated[str, StringConstraints(min_length=1, max_length=80)]
Alias = Annotated[str, StringConstraints(min_length=1, max_length=_ALIAS)]
Days = Annotated[str, StringConstraints(pattern=r"^(1 day|[1-9][0-9]{0,4} days)$")]
Role = Literal["mapper", "operator", "admin"]
"""People who may upload, by the role in their token."""
Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}$")]

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
"""How the cells of a column are read.

text       free text; line breaks are part of it
code       an identifier: leading zeros stay, and a cell 1200.0 reads `1200`
integer    a whole number of 32 bits
decimal    an exact number with up to 14 digits before and 6 behind the decimal point
money      a decimal that may stand with a currency sign; `currency` says which one
date       a day
time       a time of day
duration   hours:minutes:seconds; kept as milliseconds. `clock` says what two numbers are
place      a place of a list of results: `3`, `3.`, `=3`, `T5`, `2nd`, `12/345`
timestamp  a date with a time of day; `zone` says of which clock, if the cell does not
boolean    yes or no, in several languages
choice     one of `choices`
email      a mail address
phone      a telephone number, without the signs between its digits
country    a country by its name or code; kept as the two letters of ISO 3166
reference  a row of another table; `to` or `table` says which
sequence   numbers the rows that have the same rest of the key, in the order of the file
section    the headings above a row, unless the file has a column for it
"""
_COLUMN_KINDS: Final[Mapping[str, ColumnKind]] = MappingProxyType(
    {
        "text": ColumnKind.TEXT,
        "code": ColumnKind.CODE,
        "integer": ColumnKind.INTEGER,
        "decimal": ColumnKind.DECIMAL,
        "money": ColumnKind.MONEY,
        "date": ColumnKind.DATE,
        "time": ColumnKind.TIME,
        "duration": ColumnKind.DURATION,
        "place": ColumnKind.PLACE,
        "timestamp": ColumnKind.TIMESTAMP,
        "boolean": ColumnKind.BOOLEAN,
        "choice": ColumnKind.CHOICE,
        "email": ColumnKind.MAIL,
        "phone": ColumnKind.PHONE,
        "country": ColumnKind.CHOICE,
        "reference": ColumnKind.CODE,
        "sequence": ColumnKind.INTEGER,
        "section": ColumnKind.CODE,
    }
)
NUMBER_KINDS: Final = frozenset({"integer", "decimal", "money"})
_BOUNDED: Final = NUMBER_KINDS | {"date", "duration", "place"}
_WRITTEN: Final = frozenset({"text", "code", "email"})
KEY_KINDS: Final = frozenset(
    {"code", "text", "integer", "date", "choice", "email", "country", "sequence", "section"}
)
"""Kinds that a part of a natural key may have."""
_ONLY: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
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
    }
)
"""Words that only fields of these kinds have."""


class DeclaredPart(BaseModel):
    """A part of a declaration."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        defer_build=True,
        use_attribute_docstrings=True,
        json_schema_extra={"additionalProperties": False},
    )


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
    near = difflib.get_close_matches(str(word), words, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(words)}"


Plain = str | int | float | None
_Aliases = tuple[Alias, ...] | dict[Language, tuple[Alias, ...]]
_Choices = tuple[Alias, ...] | dict[Alias, tuple[Alias, ...] | None]
"""How people write these words; see the fields."""


_Column = Annotated[str, StringConstraints(pattern=r"^[^\x00\x01]+$", max_length=63)]
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
    required: bool = False
    """If a cell is blank, its row is rejected. If a file lacks the column, it is refused."""
    aliases: dict[Language, tuple[Alias, ...]] = Field(default_factory=dict, max_length=30)
    """Other headers that mean it, by language; a plain list is of any language."""
    choices: dict[Alias, tuple[Alias, ...]] = Field(default_factory=dict, max_length=1_000)
    """Value to the other ways to write it."""
    minimum: str | None = Field(default=None, max_length=40)
    maximum: str | None = Field(default=None, max_length=40)
    pattern: str | None = Field(default=None, max_length=500)
    """Regular expression that the whole text matches. It runs on an engine that needs linear time:
    it has no look-around and no back references."""
    max_length: int | None = Field(default=None, ge=1, le=100_000)
    """Characters; 100 for a code and 255 for a text when absent."""
    default: str | None = Field(default=None, max_length=255)
    """What a blank cell means; empty: an empty text, so that a part of a key may be blank."""
    units: tuple[Alias, ...] | None = Field(default=None, max_length=50)
    """Units that its header may name beside it; any that does not scale the values when absent."""
    blanks: tuple[Alias, ...] = Field(default=(), max_length=100)
    """Texts that count as a blank cell, beside those that always do."""
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")] | None = None
    zone: str | None = Field(default=None, max_length=64)
    clock: Literal["hh:mm", "mm:ss"] | None = None
    """What two numbers with a colon are, such as `1:30`; a cell that says so is rejected when
    absent."""
    to: Name | None = None
    """The declared type that it refers to, by that type's key."""
    table: Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$")] | (
        None
    ) = None
    """The table or view that it refers to, with its schema unless that is `public`."""
    row_key: _RowKey | None = None
    """The column of `table` that is stored. If several columns name a row, a list of them: the last
    one is stored, and the others are names in `scope`, by whose values rows are looked up."""
    label: _Column | None = None
    """The column of `table` that people write; `row_key` when absent."""
    unknown: Literal["ask", "create", "refuse"] | None = None
    """What happens to a value that the other table does not hold; `ask` when absent. Without a
    person, `ask` refuses the row."""
    words: dict[Alias, str] = Field(default_factory=dict, max_length=100)
    """Words that stand for a number or date: `today`, `dozen`."""
    part: Literal["first", "last"] | None = None
    """Which day of a month or year a date means that names no day."""
    past: bool = False
    """Years of two digits are years that have been, as of a date of birth."""
    examples: tuple[Alias, ...] = Field(default=(), max_length=10)
    """Cells that are right, for the template of uploads."""

    filled: bool = False
    """A blank cell is a problem, if the file has the column."""
    was: Name | None = None
    """Its earlier name: `apply` renames the column, and its values stay."""

    @field_validator("minimum", "maximum", "default", mode="before", json_schema_input_type=Plain)
    @classmethod
    def _as_text(cls, given: Any) -> Any:
        return str(given) if type(given) in (int, float, date, Decimal) else given

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

    @model_validator(mode="after")
    def _has_words_of_its_kind(self) -> Self:
        for word, kinds in _ONLY.items():
            is_said = getattr(self, word) != type(self).model_fields[word].get_default(
                call_default_factory=True
            )
            if is_said and self.kind not in kinds:
                raise Fault(
                    f"is a word of fields of kind {' or '.join(sorted(kinds))}, and this one is "
                    f"of kind {self.kind}; remove it or change the kind",
                    word,
                )
        if self.pattern is not None:
            try:
                compiled_pattern(self.pattern)
            except RuleViolation as error:
                raise Fault(str(error), "pattern") from error
        spelled: dict[str, str] = {}
        for choice, spellings in self.choices.items():
            for each in (choice, *spellings):
                if spelled.setdefault(normalise(each), choice) != choice:
                    raise Fault(
                        f"{each!r} means {spelled[normalise(each)]!r} and {choice!r}; remove it "
                        "from one of them",
                        *("choices", choice),
                    )
        if self.kind == "choice" and not self.choices:
            raise Fault("choice needs 'choices'; write `choices: [first, second]`", "kind")
        if self.kind == "reference":
            self._check_reference()
        bounds = [
            _bound(word, getattr(self, word), self.column_kind) for word in ("minimum", "maximum")
        ]
        if None not in bounds and cast(Any, bounds[0]) > bounds[1]:
            raise Fault(f"{self.minimum} is more than the maximum {self.maximum}", "minimum")
        if self.default is not None:
            if self.required:
                raise Fault("a required field has none; remove it or 'required'", "default")
            try:
                value_of("default", self, self.default)
            except ValueError as error:
                raise Fault(str(error), "default") from error
        for place, example in enumerate(self.examples):
            try:
                value_of("examples", self, example)
            except ValueError as error:
                raise Fault(str(error), "examples", place) from error
        return self

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
        return _COLUMN_KINDS[self.kind]

    @property
    def every_alias(self) -> tuple[str, ...]:
        """Other headers that mean it, in any language."""
        return tuple(alias for aliases in self.aliases.values() for alias in aliases)


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


class DeclaredTarget(DeclaredPart):
    """Where rows go, if that is not a table of docflow's: a table of yours, or a file."""

    database: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")] | None = None
    """The database of `table`: a name in `DOCFLOW_TYPE_DATABASES`; docflow's own when absent."""
    table: Annotated[str, StringConstraints(pattern=rf"^({_PART}\.)?{_PART}$")] | None = None
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


def value_of(name: str, field: DeclaredField, text: str) -> Any:
    """A text of a declaration as a value of its field, read as a cell is.

    Raises:
        ValueError: The field cannot read it.
    """
    if text == "" or field.kind == "country":
        return text
    spec = field_spec(name, field.model_copy(update={"default": None}))
    values, _ = read_cells(spec, [text], Notation.POINT if spec.kind in NUMBERS else None)
    if isinstance(values[0], Flaw):
        raise ValueError(f"{text!r} {values[0].reason}")
    return values[0]


def field_spec(
    name: str, field: DeclaredField, countries: Mapping[str, Sequence[str]] | None = None
) -> FieldSpec:
    """How the column of a declared field is recognised and read.

    Args:
        name: What the type calls it.
        field: Its declaration.
        countries: Two letters of ISO 3166 to other names, for fields of kind country.

    Raises:
        ValueError: A bound is no value of its kind.
    """
    kind = field.column_kind
    is_sequence = field.kind == "sequence"
    return FieldSpec(
        name,
        kind,
        field.required,
        field.every_alias,
        max_length=field.max_length or _LONGEST.get(field.kind),
        minimum=1 if is_sequence else _bound("minimum", field.minimum, kind),
        maximum=_bound("maximum", field.maximum, kind),
        choices=(countries or {}) if field.kind == "country" else field.choices,
        blank=_blank(name, field),
        filled=field.filled or is_sequence,
        units=field.units,
        words=field.words,
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


def _blank(name: str, field: DeclaredField) -> Any:
    if field.kind == "section":
        return ""
    return None if field.default is None else value_of(name, field, field.default)


_LONGEST: Final[Mapping[str, int]] = MappingProxyType({"section": LINE_CHARACTERS})


def _bound(word: str, text: str | None, kind: ColumnKind) -> int | Decimal | date | None:
    """A bound as a value of its kind; of a duration in milliseconds, given in seconds."""
    if text is None:
        return None
    try:
        if kind is ColumnKind.DATE:
            return date.fromisoformat(text)
        if kind is ColumnKind.INTEGER:
            return int(text)
        if kind is ColumnKind.DURATION:
            return int(Decimal(text) * 1000)
        number = Decimal(text)
        return int(number) if number == number.to_integral_value() else number
    except (ValueError, InvalidOperation, OverflowError) as error:
        written = "2025-03-04" if kind is ColumnKind.DATE else "a number"
        raise Fault(f"{text!r} is no such value; write {written}", word) from error

"""Types of tables as teams declare them: what a file holds, what its rows are, and where they go.

A declaration is data: it is written as a YAML file, checked here, kept in the database under its
digest, and named by that digest in the input of each run that uses it.
"""

import difflib
import hashlib
import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
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
    squash,
    written,
)
from workflows.shared.notations import Notation
from workflows.shared.patterns import compiled_pattern

STAGED: Final = "staged_"
"""What the names of tables begin with whose rows go in all at once."""
OTHER: Final = "other"
"""JSON column of the cells that mean no field, where a type keeps them."""
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
Role = Literal["importer", "operator"]
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
duration   hours:minutes:seconds; kept as milliseconds
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
_NUMBERS: Final = frozenset({"integer", "decimal", "money"})
_BOUNDED: Final = _NUMBERS | {"date", "duration"}
_WRITTEN: Final = frozenset({"text", "code", "email"})
_KEYS: Final = frozenset(
    {"code", "text", "integer", "date", "choice", "email", "country", "sequence", "section"}
)
"""Kinds that a part of a natural key may have."""
_ONLY: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "choices": frozenset({"choice"}),
        "currency": frozenset({"money"}),
        "zone": frozenset({"timestamp"}),
        "to": frozenset({"reference"}),
        "table": frozenset({"reference"}),
        "row_key": frozenset({"reference"}),
        "label": frozenset({"reference"}),
        "unknown": frozenset({"reference"}),
        "minimum": _BOUNDED,
        "maximum": _BOUNDED,
        "pattern": _WRITTEN,
        "max_length": _WRITTEN,
        "units": _NUMBERS | {"code", "duration"},
    }
)
"""Words that only fields of these kinds have."""


class _Declared(BaseModel):
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


_Plain = str | int | float | None
_Aliases = tuple[Alias, ...] | dict[Language, tuple[Alias, ...]]
_Choices = tuple[Alias, ...] | dict[Alias, tuple[Alias, ...] | None]
"""How people write these words; see the fields."""


class DeclaredField(_Declared):
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
    to: Name | None = None
    """The declared type that it refers to, by that type's key."""
    table: Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$")] | (
        None
    ) = None
    """The table or view that it refers to, with its schema unless that is `public`."""
    row_key: Name | None = None
    """The column of `table` that is stored."""
    label: Name | None = None
    """The column of `table` that people write; `row_key` when absent."""
    unknown: Literal["ask", "create", "refuse"] | None = None
    """What happens to a value that the other table does not hold; `ask` when absent. Without a
    person, `ask` refuses the row."""
    words: dict[Alias, str] = Field(default_factory=dict, max_length=100)
    """Words that stand for a number or date: `today`, `dozen`."""
    part: Literal["first", "last"] | None = None
    """Which day of a month or year a date means that names no day."""

    filled: bool = False
    """A blank cell is a problem, if the file has the column."""
    was: Name | None = None
    """Its earlier name: `apply` renames the column, and its values stay."""

    @field_validator("minimum", "maximum", "default", mode="before", json_schema_input_type=_Plain)
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
                _value("default", self, self.default)
            except ValueError as error:
                raise Fault(str(error), "default") from error
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


def check_references(declared: "DeclaredType", known: Mapping[str, "DeclaredType"]) -> None:
    """See that every reference of a type leads somewhere.

    Args:
        declared: The type.
        known: The types that there are, itself included, by name.

    Raises:
        RuleViolation: One does not.
    """
    for name, field in declared.fields.items():
        if field.to is None:
            continue
        target = known.get(field.to)
        if target is None:
            raise RuleViolation(
                f"{declared.name}: {name} refers to the type {field.to}; {nearest(field.to, known)}"
            )
        if len(target.key) > 1:
            raise RuleViolation(
                f"{declared.name}: {name} refers to {field.to}, whose key is "
                f"{', '.join(target.key)}: a cell can name a row by one field alone"
            )
        if lacking := sorted(set(target.scope) - set(declared.scope)):
            raise RuleViolation(
                f"{declared.name}: {name} refers to {field.to}, whose rows belong to "
                f"{lacking[0]}; add it to 'scope'"
            )
        if target.target is not None and target.target.file is not None:
            raise RuleViolation(
                f"{declared.name}: {name} refers to {field.to}, whose rows go into files: docflow "
                "cannot look them up there"
            )
        if field.unknown == "create" and target.target is not None:
            raise RuleViolation(
                f"{declared.name}: {name} cannot create rows of {field.to}, which are in a table "
                "of yours; use 'ask' or 'refuse'"
            )
        others = [n for n, each in target.fields.items() if each.required and n not in target.key]
        if field.unknown == "create" and others:
            raise RuleViolation(
                f"{declared.name}: {name} cannot create rows of {field.to}, which need "
                f"{', '.join(others)}; use 'ask' or 'refuse'"
            )


Comparison = Literal["<", "<=", "=", ">=", ">"]


class DeclaredRule(_Declared):
    """What must hold of the fields of one row; exactly one of them."""

    any_of: tuple[Name, ...] | None = Field(default=None, min_length=2)
    """At least one of these is filled."""
    together: tuple[Name, ...] | None = Field(default=None, min_length=2)
    """All of these are filled, or none."""
    compare: tuple[Name, Comparison, Name] | None = None
    """The first stands so to the second, where both are filled: `[net, "<=", gross]`."""
    required: Name | None = None
    """This is filled in rows in which `when` holds."""
    when: dict[Name, str] | None = Field(default=None, min_length=1, max_length=10)
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
_Column = Annotated[str, StringConstraints(pattern=r"^[^\x00\x01]+$", max_length=63)]
_PART: Final = r"[^.\x00\x01]{1,63}"


class DeclaredTarget(_Declared):
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
    """Who is told of the file: a name in `DOCFLOW_TYPE_WEBHOOKS`."""

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


class DeclaredType(_Declared):
    """A type of table: what its files hold, what makes a row the same row, and where rows go."""

    name: Name
    title: Title
    description: str = Field(default="", max_length=2_000)
    scope: tuple[Name, ...] = Field(default=("project_id",), max_length=8)
    """What a message or upload gives for all rows; the first part of the key. `replace` removes
    rows within it alone. Empty: all rows of the table belong together."""
    key: tuple[Name, ...] = Field(min_length=1, max_length=8)
    """Fields that complete the natural key of a row."""
    fields: dict[Name, DeclaredField] = Field(min_length=1, max_length=MOST_FIELDS)
    period: tuple[Name, Name] | None = None
    """Two dates of which the second is not before the first."""
    needed: Name | None = None
    """A field that is filled in some row of each file."""
    rules: tuple[DeclaredRule, ...] = Field(default=(), max_length=50)
    unmapped: Literal["ignore", "refuse", "keep"] = "ignore"
    """What happens to columns that mean no field: they are named and not used, the file is refused,
    or their cells are kept in the JSON column `other`."""
    left_out: Literal["note", "ask", "keep"] = "note"
    """What happens to rows that are no data (totals, footers, repeated headers), unless a message
    says otherwise."""
    strategy: Literal["merge", "replace", "append", "update_only", "create_only"] = "merge"
    """How rows meet rows that are there, unless a message says otherwise."""
    table: Name | None = None
    """What the table of its rows is called; as the type when absent."""
    retention: Days | None = None
    """How long a row is kept after its last update: `400 days`; for ever when absent."""
    may_import: tuple[Role, ...] | None = Field(default=None, min_length=1)
    """Roles of which a person needs one to upload files of this type; any of them when absent.
    It counts for uploads alone: a message has no person."""

    @field_validator("retention", mode="before", json_schema_input_type=_Plain)
    @classmethod
    def _in_days(cls, given: Any) -> Any:
        if not isinstance(given, str | int):
            return given
        number, _, unit = str(given).strip().partition(" ")
        if unit.strip() not in ("", "day", "days"):
            return given
        return f"{number} day{'' if number == '1' else 's'}"

    target: DeclaredTarget | None = None
    """Where rows go; into a table of docflow's when absent."""

    @model_validator(mode="after")
    def _names_are_fields(self) -> Self:
        known = self.fields
        places: list[tuple[tuple[str | int, ...], tuple[str, ...]]] = [
            *((("key", place), (name,)) for place, name in enumerate(self.key)),
            *((("period", place), (name,)) for place, name in enumerate(self.period or ())),
            (("needed",), (self.needed,) if self.needed else ()),
        ]
        for number, rule in enumerate(self.rules):
            places += [(("rules", number, *path), (name,)) for path, name in rule.places]
        for path, names in places:
            for name in names:
                if name not in known:
                    raise Fault(f"there is no field {name!r}; {nearest(name, known)}", *path)
        if self.table_name.startswith(STAGED):
            raise Fault(
                f"names that begin with {STAGED!r} are docflow's own; choose another one",
                "name" if self.table is None else "table",
            )
        if len(set(self.scope)) < len(self.scope):
            raise Fault("lists a name twice; remove one of both", "scope")
        for name in self.scope:
            if name in known:
                raise Fault(
                    f"{name!r} is in 'scope' as well; a message gives it or the file does: remove "
                    "one of both",
                    *("fields", name),
                )
        for name in (*self.scope, *known):
            if name in OWN_COLUMNS:
                raise Fault(
                    f"{name!r} is a column that docflow keeps; choose another name",
                    *(("fields", name) if name in known else ("scope", self.scope.index(name))),
                )
        before: dict[str, str] = {}
        for name, field in known.items():
            if field.was is None:
                continue
            if field.was in known or field.was in self.scope:
                raise Fault(
                    f"there is {field.was!r} as well; remove 'was', or what has the old name",
                    *("fields", name, "was"),
                )
            if before.setdefault(field.was, name) != name:
                raise Fault(
                    f"{before[field.was]!r} was {field.was!r} as well; remove one of both",
                    *("fields", name, "was"),
                )
        return self

    @model_validator(mode="after")
    def _has_a_key(self) -> Self:
        if len(set(self.key)) < len(self.key):
            raise Fault("lists a field twice; remove one of both", "key")
        for place, name in enumerate(self.key):
            field = self.fields[name]
            if field.kind not in _KEYS:
                raise Fault(
                    f"{name!r} is of kind {field.kind}, and a key has none of that kind; use one "
                    f"of {', '.join(sorted(_KEYS))}",
                    *("key", place),
                )
            if field.kind == "sequence" and place + 1 < len(self.key):
                raise Fault(f"{name!r} is of kind sequence; list it last", "key", place)
            if field.kind in ("sequence", "section"):
                continue
            if not field.required and field.default is None:
                raise Fault(
                    "is part of the key; write 'required: true', or a 'default' for blank cells",
                    *("fields", name),
                )
        if self.fields[self.key[0]].kind == "sequence":
            raise Fault("a sequence numbers rows of the same key; name a field before it", "key")
        for name, field in self.fields.items():
            if field.kind in ("sequence", "section"):
                if name not in self.key:
                    raise Fault(
                        f"{name!r} is of kind {field.kind}; add it to 'key'", "fields", name
                    )
                if name != field.kind:
                    raise Fault(
                        f"a field of kind {field.kind} is called {field.kind}; rename it",
                        *("fields", name),
                    )
        return self

    @model_validator(mode="after")
    def _has_dates(self) -> Self:
        for place, name in enumerate(self.period or ()):
            if (kind := self.fields[name].kind) != "date":
                raise Fault(
                    f"{name!r} is of kind {kind}; give it the kind date, or name another field",
                    *("period", place),
                )
        for number, rule in enumerate(self.rules):
            self._check_rule(number, rule)
        return self

    def _check_rule(self, number: int, rule: DeclaredRule) -> None:
        if rule.compare is not None:
            first, _, second = rule.compare
            kinds = [self.fields[name].kind for name in (first, second)]
            if kinds[0] != kinds[1] and not set(kinds) <= _NUMBERS:
                raise Fault(
                    f"{first!r} is of kind {kinds[0]} and {second!r} of {kinds[1]}; compare two "
                    "fields of one kind",
                    *("rules", number, "compare"),
                )
        for name, value in (rule.when or {}).items():
            try:
                _value(name, self.fields[name], value)
            except ValueError as error:
                raise Fault(str(error), "rules", number, "when", name) from error

    @model_validator(mode="after")
    def _fits_its_target(self) -> Self:
        target = self.target
        if target is not None and self.retention is not None:
            raise Fault("docflow removes rows of its own tables alone; remove it", "retention")
        if target is None or target.table is None:
            return self
        if self.table is not None:
            raise Fault("this is docflow's own table, and 'target' says another one", "table")
        if self.unmapped == "keep":
            raise Fault("'keep' needs docflow's own table; use ignore or refuse", "unmapped")
        known = {*self.scope, *self.fields}
        for name in target.columns:
            if name not in known:
                raise Fault(
                    f"there is no field {name!r}; {nearest(name, known)}", "target", "columns", name
                )
            if target.column(name) is None and name not in self.scope:
                raise Fault("this is a field, and needs a column", "target", "columns", name)
        meant: dict[str, str] = {}
        for name in (*self.scope, *self.fields):
            column = target.column(name)
            if column is not None and meant.setdefault(column, name) != name:
                raise Fault(
                    f"{meant[column]!r} and {name!r} go to the column {column!r}",
                    *("target", "columns"),
                )
        if self.strategy == "replace" and not self.stored_scope:
            raise Fault(
                "'replace' would remove every row of a table of yours; it needs a 'scope' with a "
                "column",
                "strategy",
            )
        return self

    @model_validator(mode="after")
    def _headers_are_distinct(self) -> Self:
        meant: dict[str, str] = {}
        for name, field in self.fields.items():
            own = {
                squash(form)
                for header in (name, field.title or "", *field.every_alias)
                for form in written(header)
            }
            for header in sorted(own - {""}):
                if meant.setdefault(header, name) != name:
                    raise Fault(
                        f"the header {header!r} means {meant[header]!r} and {name!r}; remove it "
                        "from one of them",
                        *("fields", name),
                    )
        return self

    @property
    def kept_days(self) -> int | None:
        """Days that a row is kept after its last update; None: it is kept for ever."""
        return None if self.retention is None else int(self.retention.partition(" ")[0])

    @property
    def table_name(self) -> str:
        """What the table of its rows is called."""
        return self.table or self.name

    @property
    def natural_key(self) -> tuple[str, ...]:
        """Columns that name a row."""
        return self.scope + self.key

    def __hash__(self) -> int:
        return int(self.digest[:15], 16)

    @property
    def stored_scope(self) -> tuple[str, ...]:
        """The names in the scope that its target has columns for."""
        target = self.target
        return tuple(n for n in self.scope if target is None or target.column(n) is not None)

    @cached_property
    def canonical(self) -> str:
        """The declaration as JSON: the same for two files that mean the same."""
        content = self.model_dump(mode="json", exclude_defaults=True)
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))

    @cached_property
    def digest(self) -> str:
        """Names this version of the type: SHA-256 of `canonical`, hexadecimal."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()


OWN_COLUMNS: Final = frozenset(
    {
        *("ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"),
        "version",
        "source_task",
        "source_line",
        "created_at",
        "updated_at",
        "load_id",
        "cells",
        OTHER,
    }
)
"""Columns that docflow keeps in each table."""


_HOLDS: Final[Mapping[str, tuple[Callable[[Any, Any], bool], str]]] = MappingProxyType(
    {
        "<": (operator.lt, "is not less than"),
        "<=": (operator.le, "is more than"),
        "=": (operator.eq, "differs from"),
        ">=": (operator.ge, "is less than"),
        ">": (operator.gt, "is not more than"),
    }
)
"""How a comparison is made, and what is said of one that does not hold."""


def broken_rules(
    declared: DeclaredType, values: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[int, str, str]]:
    """What is wrong with rows beyond single cells.

    Args:
        declared: The type, whose rules must hold of each row.
        values: Converted cells by field; None is a blank, a `Flaw` a cell that is refused already,
            and a field without a column is blank in every row.

    Yields:
        Index of the row, the field that is shown with it, and the reason.
    """
    count = max(map(len, values.values()), default=0)
    for rule in declared.rules:
        wanted = [_value(n, declared.fields[n], text) for n, text in (rule.when or {}).items()]
        columns = [values.get(name) or (None,) * count for name in rule.names]
        for row, cells in enumerate(zip(*columns, strict=True)):
            if any(isinstance(cell, Flaw) for cell in cells):
                continue
            if (wrong := _broken(rule, cells, wanted)) is not None:
                name, reason = wrong
                yield row, name, rule.says or reason


def _broken(
    rule: DeclaredRule, cells: Sequence[Any], wanted: Sequence[Any]
) -> tuple[str, str] | None:
    """The field and the reason, if the cells of a row break a rule."""
    names = rule.names
    filled = [cell is not None for cell in cells]
    if rule.any_of is not None:
        listed = " or ".join(names)
        return None if any(filled) else (names[0], f"is missing; fill in one of {listed}")
    if rule.together is not None:
        if all(filled) or not any(filled):
            return None
        missing, present = names[filled.index(False)], names[filled.index(True)]
        return missing, f"is missing beside {present}"
    if rule.compare is not None:
        holds, said = _HOLDS[rule.compare[1]]
        if all(filled) and not holds(*cells):
            return names[0], f"{said} {names[1]} {cells[1]}"
        return None
    assert rule.when is not None
    if filled[0] or list(cells[1:]) != list(wanted):
        return None
    reason = " and ".join(f"{name} is {value}" for name, value in rule.when.items())
    return names[0], f"is missing, and {reason}"


def _value(name: str, field: DeclaredField, text: str) -> Any:
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
        title=field.title or "",
        pattern=field.pattern,
        blanks=field.blanks,
        currency=field.currency,
        zone=field.zone,
    )


def _blank(name: str, field: DeclaredField) -> Any:
    if field.kind == "section":
        return ""
    return None if field.default is None else _value(name, field, field.default)


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

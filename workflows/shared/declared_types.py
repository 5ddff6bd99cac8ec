"""Types of tables as teams declare them: what a file holds, what its rows are, and where they go.

A declaration is data: it is written as a YAML file, checked here, kept in the database under its
digest, and named by that digest in the input of each run that uses it.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    Field,
    PrivateAttr,
    StringConstraints,
    ValidationInfo,
    model_validator,
)

from workflows.shared.declared_fields import (
    KEY_KINDS,
    MOST_FIELDS,
    NAME_CHARACTERS,
    NUMBER_KINDS,
    ORDERED_KINDS,
    Alias,
    Comparison,
    Days,
    DeclaredField,
    DeclaredPart,
    DeclaredRule,
    DeclaredTarget,
    Fault,
    Name,
    Role,
    Surroundings,
    Title,
    measure_otherwise,
    nearest,
    value_of,
)
from workflows.shared.errors import RuleViolation
from workflows.shared.fields import (
    squash,
    written,
)

ORGANISATION: Final = "organisation_id"
"""The part of a scope that an upload has of itself."""
STAGED: Final = "staged_"
"""What the names of tables begin with whose rows go in all at once."""
OTHER: Final = "other"
"""JSON column of the cells that mean no field, where a type keeps them."""
_GIVEN: Final = ("sequence", "section")
"""Kinds of parts of a key that rows have of those above them."""
RowCheck = Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]]
"""Takes the values of one row by field; gives each field that is wrong, with the reason."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a declaration was read; that is no part of what it means.

    Attributes:
        file: Name of the file.
        line_of: Line of the words and places that lead to a part.
    """

    file: str
    line_of: Callable[[Sequence[str | int]], int]


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
        at = declared.at("fields", name, "to")
        if target is None:
            raise RuleViolation(
                f"{at}: {name} refers to the type {field.to}; {nearest(field.to, known)}"
            )
        if len(target.key) > 1:
            raise RuleViolation(
                f"{at}: {name} refers to {field.to}, whose key is "
                f"{', '.join(target.key)}: a cell can name a row by one field alone; give the "
                "field the kind code, or refer to a type whose key is one field"
            )
        if lacking := sorted(set(target.scope) - set(declared.scope)):
            raise RuleViolation(
                f"{at}: {name} refers to {field.to}, whose rows belong to "
                f"{lacking[0]}; add it to 'scope'"
            )
        is_file = target.target is not None and target.target.file is not None
        if is_file and target.name != declared.name:
            raise RuleViolation(
                f"{at}: {name} refers to {field.to}, whose rows go into files: docflow cannot "
                "look them up there; give the field the kind code"
            )
        at = declared.at("fields", name, "unknown")
        if field.unknown == "create" and target.target is not None:
            raise RuleViolation(
                f"{at}: {name} cannot create rows of {field.to}, which are in a table of yours; "
                "use 'ask' or 'refuse'"
            )
        others = [n for n, each in target.fields.items() if each.required and n not in target.key]
        if field.unknown == "create" and others:
            raise RuleViolation(
                f"{at}: {name} cannot create rows of {field.to}, which need "
                f"{', '.join(others)}; use 'ask' or 'refuse'"
            )


class DeclaredType(DeclaredPart):
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
    period: tuple[str, str] | None = None
    """Two dates of which the second is not before the first."""
    needed: str | None = None
    """A field that is filled in some row of each file."""
    rules: tuple[DeclaredRule, ...] = Field(default=(), max_length=50)
    checks: tuple[Name, ...] = Field(default=(), max_length=20)
    """Checks of installed packages that each row must pass, by name."""
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
    """Roles of which a person needs one to import rows of this type, whether a file holds them or
    a reference creates them. A message on a queue has no person."""

    target: DeclaredTarget | None = None
    """Where rows go; into a table of docflow's when absent."""

    _source: Source | None = PrivateAttr(default=None)

    def read_from(self, source: Source) -> None:
        """Remember where it was read."""
        self._source = source

    def at(self, *path: str | int) -> str:
        """Where a part of it stands: file and line if it was read from a file, else its name."""
        if self._source is None:
            return self.name
        return f"{self._source.file}: line {self._source.line_of(path)}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeclaredType) and self.digest == other.digest

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
        for word in ("scope", "checks"):
            listed: tuple[str, ...] = getattr(self, word)
            if len(set(listed)) < len(listed):
                raise Fault("lists a name twice; remove one of them", word)
        for name in self.scope:
            if name in known:
                raise Fault(
                    f"{name!r} is in 'scope' as well; a message gives it or the file does: remove "
                    "one of them",
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
                    f"{before[field.was]!r} was {field.was!r} as well; remove one of them",
                    *("fields", name, "was"),
                )
        return self

    @model_validator(mode="after")
    def _has_a_key(self) -> Self:
        if len(set(self.key)) < len(self.key):
            raise Fault("lists a field twice; remove one of them", "key")
        for place, name in enumerate(self.key):
            field = self.fields[name]
            if field.kind not in KEY_KINDS:
                raise Fault(
                    f"{name!r} is of kind {field.kind}, and a key has none of that kind; use one "
                    f"of {', '.join(sorted(KEY_KINDS))}",
                    *("key", place),
                )
            if field.kind == "sequence" and place + 1 < len(self.key):
                raise Fault(f"{name!r} is of kind sequence; list it last", "key", place)
            if field.kind in _GIVEN:
                continue
            if not field.required and field.default is None:
                raise Fault(
                    "is part of the key; write 'required: true', or a 'default' for blank cells",
                    *("fields", name),
                )
        if self.key and self.fields[self.key[0]].kind == "sequence":
            raise Fault("a sequence numbers rows of the same key; name a field before it", "key")
        for name, field in self.fields.items():
            if field.kind in _GIVEN:
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
    def _compares_values(self, info: ValidationInfo) -> Self:
        known: Surroundings | None = info.context
        for place, name in enumerate(self.period or ()):
            if (kind := self.fields[name].kind) != "date":
                raise Fault(
                    f"{name!r} is of kind {kind}; give it the kind date, or name another field",
                    *("period", place),
                )
        for number, rule in enumerate(self.rules):
            if rule.compare is not None and known is not None:
                self._check_comparison(rule.compare, "rules", number, "compare")
            for name, value in (rule.when or {}).items():
                value_of(
                    *(self.fields[name], value, "rules", number, "when", name),
                    countries=None if known is None else known.countries,
                )
        for place, name in enumerate(self.checks):
            if known is not None and (reason := known.why_missing(name)) is not None:
                raise Fault(reason, "checks", place)
        return self

    def _check_comparison(self, compare: tuple[str, Comparison, str], *path: str | int) -> None:
        """See that two fields can be compared."""
        (first, one), (second, other) = ((n, self.fields[n]) for n in (compare[0], compare[2]))
        kinds = {one.kind, other.kind}
        if len(kinds) > 1 and not kinds <= NUMBER_KINDS:
            raise Fault(
                f"{first!r} is of kind {one.kind} and {second!r} of {other.kind}; compare two "
                "fields of one kind",
                *path,
            )
        if compare[1] != "=" and not kinds <= ORDERED_KINDS:
            raise Fault(
                f"values of kind {one.kind} are neither more nor less than others; write =, or "
                f"give the fields one of the kinds {', '.join(sorted(ORDERED_KINDS))}",
                *path,
            )
        if (one.zone is None) != (other.zone is None):
            raise Fault(
                f"one of {first!r} and {second!r} has a 'zone'; write one for both, or none", *path
            )
        if None not in (one.currency, other.currency) and one.currency != other.currency:
            raise Fault(
                f"{first!r} is in {one.currency} and {second!r} in {other.currency}; compare two "
                "fields of one currency",
                *path,
            )
        if measure_otherwise(one, other):
            units = [each.units[0] if each.units else "no unit" for each in (one, other)]
            raise Fault(
                f"{first!r} is in {units[0]} and {second!r} in {units[1]}; compare two fields of "
                "one unit",
                *path,
            )

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

    @property
    def creates(self) -> frozenset[str]:
        """The types of which its references create rows."""
        fields = self.fields.values()
        return frozenset(each.to for each in fields if each.to and each.unknown == "create")

    @property
    def row(self) -> str:
        """What a person calls the key of a row."""
        *most, last = (name.replace("_", " ") for name in self.key)
        return f"{', '.join(most)} and {last}" if most else last

    def __hash__(self) -> int:
        return int(self.digest[:15], 16)

    @property
    def first_key(self) -> str:
        """The first part of the key that a file itself gives."""
        given = (name for name in self.key if self.fields[name].kind not in _GIVEN)
        return next(given, self.key[0])

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


_Capitals = Annotated[
    str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=NAME_CHARACTERS)
]
"""What programs call a type about people or its field: `FIRST_NAME`."""


class PeopleField(DeclaredField):
    """One column of a type about people."""

    column: Name | None = None
    """Where its values go; its name in small letters when absent."""
    either: _Capitals | None = None
    """A row or file with this other field can do without."""
    beside: dict[Alias, _Capitals] = Field(default_factory=dict)
    """Headers that mean it only in the company of another field."""
    instead: tuple[Alias, ...] = ()
    """Headers that mean it where neither it nor `either` has a column of its own."""
    stands_in: tuple[_Capitals, ...] = ()
    """Fields in whose cells it may stand: a status in the place of a rank."""


class HookedType(DeclaredType):
    """A type of docflow's own, which may name special code."""

    hook: Literal["assignments"] | None = None
    """What writing a row changes beside it."""


class PeopleType(DeclaredType):
    """A type of docflow's own about people, whose special code is a hook.

    Its rows are found by the person that they are about, within the scope.
    """

    name: _Capitals
    key: tuple[Name, ...] = ()
    fields: dict[_Capitals, PeopleField]  # pyright: ignore[reportIncompatibleVariableOverride]
    hook: Literal["people"] | None = None
    """Who finds the person of each row, by the fields of PERSON; they come before its own."""
    custom_lists: bool = False
    """Rows have choices of the custom lists of the organisation."""

    @property
    def natural_key(self) -> tuple[str, ...]:
        """Columns that name a row."""
        return (*self.scope, "person_key" if self.hook is None else "person_id")


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


def standing_keys(rows: Iterable[tuple[str, Collection[str]]]) -> frozenset[str]:
    """Return the keys of the rows of a file that stand, however long a chain of references is.

    A row falls if no row that stands has a key that it refers to.

    Args:
        rows: Key of each row that is right by itself, and the keys of rows of the file that it
            refers to.
    """
    keys: list[str] = []
    count: Counter[str] = Counter()
    needed_by: defaultdict[str, list[int]] = defaultdict(list)
    for place, (key, needs) in enumerate(rows):
        keys.append(key)
        count[key] += 1
        for each in needs:
            needed_by[each].append(place)
    fallen: set[int] = set()
    absent = [each for each in needed_by if not count[each]]
    while absent:
        for place in needed_by[absent.pop()]:
            if place not in fallen:
                fallen.add(place)
                count[key := keys[place]] -= 1
                if not count[key] and key in needed_by:
                    absent.append(key)
    return frozenset(key for key, number in count.items() if number > 0)


def refuse_strategy(declared: DeclaredType, strategy: str) -> None:
    """See that a table of a team takes rows so.

    Raises:
        RuleViolation: It does not.
    """
    if declared.target is None or declared.target.table is None:
        return
    if strategy == "replace" and not declared.stored_scope:
        raise RuleViolation(
            f"strategy 'replace' would remove every row of {declared.target.table}: the type has "
            "no scope with a column there; use strategy 'merge'"
        )
    if strategy == "append" and declared.fields[declared.key[-1]].kind == "sequence":
        raise RuleViolation(
            "strategy 'append' numbers rows anew, which docflow does in its own tables alone; use "
            "strategy 'merge'"
        )

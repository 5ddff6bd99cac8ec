"""The import types there are: those about people, docflow's other types, and those of teams."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType

from activities.spreadsheets.types.base import SheetType
from activities.spreadsheets.types.declared import club_sheet, declared_sheet
from activities.spreadsheets.types.people import people_sheet
from adapters.database.engine import Database
from adapters.types.files import (
    builtin_types,
    club_types,
    own_types,
    people_types,
)
from adapters.types.references import referred_by, table_of
from adapters.types.store import SqlDeclaredTypes
from workflows.shared.declared_fields import meant
from workflows.shared.declared_types import DeclaredType
from workflows.shared.errors import RuleViolation


@cache
def discover() -> Mapping[str, SheetType]:
    """The types about people, by name."""
    declared = people_types().items()
    return MappingProxyType({name: people_sheet(each) for name, each in declared if each.hook})


def _by_name(types: Iterable[SheetType]) -> dict[str, SheetType]:
    named: dict[str, SheetType] = {}
    for each in types:
        if named.setdefault(each.name, each) is not each:
            raise ValueError(f"two import types are called {each.name}")
    return named


class SheetTypes:
    """The import types that an installation knows.

    Every method raises `Unavailable` if it needs the database and that is down.

    Args:
        database: Where declared types are kept; None: there are none.
        types: Types about people; docflow's own when absent.
    """

    def __init__(
        self, database: Database | None = None, types: Iterable[SheetType] | None = None
    ) -> None:
        self._types = discover() if types is None else _by_name(types)
        self._declared = None if database is None else SqlDeclaredTypes(database)

    async def every(self) -> Sequence[SheetType]:
        """The types of new imports, by name."""
        known = await self._in_force()
        found = dict(self._types)
        if self._declared is not None:
            found |= {name: _club(declared) for name, declared in club_types().items()}
            for name, declared in {**builtin_types(), **known}.items():
                found[name] = _sheet(declared, known)
        return sorted(found.values(), key=lambda each: each.name)

    async def get(self, name: str, digest: str | None = None) -> SheetType:
        """One type.

        Args:
            name: What it is called.
            digest: The version of a declared type; that in force when absent.

        Raises:
            RuleViolation: There is none.
        """
        if name in self._types:
            return self._types[name]
        if self._declared is not None and digest is not None:
            declared = await self._version(name, digest)
            if declared is not None and name in club_types():
                return _club(declared)
            if declared is not None:
                return _sheet(declared, await self._in_force())
            if name not in own_types():
                raise RuleViolation(f"there is no version {digest[:12]} of the type {name}")
        known = {each.name: each for each in await self.every()}
        if name in known:
            return known[name]
        listed = f"{meant(name, known)}there are {', '.join(known)}"
        raise RuleViolation(f"there is no import type {name}; {listed}")

    async def written_by(self, name: str, digest: str | None = None) -> Sequence[DeclaredType]:
        """The declared types of the rows that an upload writes, if they are no people's or clubs'.

        Args:
            name: Of the type of the upload.
            digest: The version that the upload has; None: that in force.
        """
        if self._declared is None or name in self._types or name in club_types():
            return ()
        return await self._declared.written_by(name, digest)

    async def _version(self, name: str, digest: str) -> DeclaredType | None:
        own = own_types().get(name)
        if own is not None and own.digest == digest:
            return own
        found = None if self._declared is None else await self._declared.version(digest)
        return found if found is not None and found.name == name else None

    async def _in_force(self) -> Mapping[str, DeclaredType]:
        return {} if self._declared is None else await self._declared.in_force()


def _sheet(declared: DeclaredType, known: Mapping[str, DeclaredType]) -> SheetType:
    targets = {each.to for each in declared.fields.values() if each.to is not None}
    used = tuple(known[name] for name in sorted(targets & known.keys()))
    return _made(declared, used)


@cache
def _club(declared: DeclaredType) -> SheetType:
    return club_sheet(declared)


@lru_cache(maxsize=256)
def _made(declared: DeclaredType, used: tuple[DeclaredType, ...]) -> SheetType:
    known = {each.name: each for each in used}
    return declared_sheet(declared, table_of(declared), referred_by(declared, known))

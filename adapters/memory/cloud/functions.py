"""Functions and grants of a cloud in memory."""

from collections.abc import AsyncIterator
from typing import Final

from adapters.memory.cloud.state import CloudState, MemoryFunction
from adapters.ports import Denied, NoRoom, NotYet, SourceFunction
from contracts.batches import BatchKey, BatchPlan, Names, Resource, key_of
from domain.batches.resources import FoundResource

PAUSE: Final = 0.01
"""Seconds until what is being made is looked at again."""


class MemoryFunctions:
    """`BatchFunctions` in memory."""

    def __init__(self, cloud: CloudState) -> None:
        self._cloud = cloud

    async def source(self, plan: BatchPlan) -> SourceFunction:
        """Facts of the function to clone."""
        with self._cloud.call("source"):
            return self._source(plan)

    async def exists(self, function: str) -> bool:
        """Whether there is such a function."""
        with self._cloud.call("exists"):
            return function in self._cloud.functions_by_name

    async def clone(self, names: Names, plan: BatchPlan, key: BatchKey, owner: str) -> None:
        """Make the batch's function."""
        with self._cloud.call("clone"):
            self._source(plan)
            pending = self._cloud.pending_looks
            made = MemoryFunction(
                owner, self._cloud.clock(), pending=pending, mapping_pending=pending
            )
            function = self._cloud.functions_by_name.setdefault(names.function, made)
            if function.owner != owner:
                raise Denied(f"a function {names.function} exists and belongs to another owner")
            if function.pending > 0:
                function.pending -= 1
                raise NotYet(f"{names.function} is pending", PAUSE)

    async def attach(self, names: Names, plan: BatchPlan) -> None:
        """Let the queue invoke the function."""
        with self._cloud.call("attach"):
            self._cloud.queue(names.queue)
            function = self._function(names)
            function.mapped = True
            if function.mapping_pending > 0:
                function.mapping_pending -= 1
                raise NotYet(f"the mapping of {names.function} is being made", PAUSE)

    async def is_fed(self, names: Names) -> bool:
        """Whether the function is mapped."""
        with self._cloud.call("is_fed"):
            function = self._cloud.functions_by_name.get(names.function)
            return function is not None and function.mapped

    async def detach(self, names: Names) -> bool:
        """Delete the mapping."""
        with self._cloud.call("detach"):
            function = self._cloud.functions_by_name.get(names.function)
            if function is None or not function.mapped:
                return False
            function.mapped = False
            return True

    async def reserve(self, names: Names, plan: BatchPlan) -> None:
        """Reserve the function's concurrency."""
        with self._cloud.call("reserve"):
            function = self._function(names)
            others = sum(
                one.reserved or 0
                for one in self._cloud.functions_by_name.values()
                if one is not function
            )
            most = self._cloud.reservable
            if most is not None and others + plan.concurrency > most:
                raise NoRoom(f"{plan.concurrency} of concurrency are more than may be reserved")
            function.reserved = plan.concurrency

    async def delete(self, function: str, owner: str) -> bool:
        """Delete a function, unless it belongs to another owner."""
        with self._cloud.call("delete_function"):
            here = self._cloud.functions_by_name.get(function)
            if here is None:
                return False
            if here.owner != owner:
                raise Denied(f"the function {function} belongs to {here.owner}, not to {owner}")
            del self._cloud.functions_by_name[function]
            return True

    async def found(self, prefix: str) -> AsyncIterator[FoundResource]:
        """Functions, mappings and reservations of every batch of an installation."""
        with self._cloud.call("found_functions"):
            for name, function in list(self._cloud.functions_by_name.items()):
                key = key_of(prefix, name)
                if key is None:
                    continue
                yield FoundResource(key, Resource.FUNCTION, name, function.made_at, function.owner)
                if function.mapped:
                    yield FoundResource(key, Resource.MAPPING, name)
                if function.reserved is not None:
                    yield FoundResource(key, Resource.CONCURRENCY, name)

    def _source(self, plan: BatchPlan) -> SourceFunction:
        if self._cloud.source is None:
            raise Denied(f"there is no function {plan.source_function}")
        return self._cloud.source

    def _function(self, names: Names) -> MemoryFunction:
        if names.function not in self._cloud.functions_by_name:
            raise Denied(f"there is no function {names.function}")
        return self._cloud.functions_by_name[names.function]


class MemoryGrants:
    """`BatchGrants` in memory."""

    def __init__(self, cloud: CloudState) -> None:
        self._cloud = cloud

    async def grant(self, names: Names, plan: BatchPlan, role: str) -> None:
        """Allow what the batch needs."""
        with self._cloud.call("grant"):
            self._check(role)
            self._cloud.policies.add(names.policy)

    async def grant_once(self, plan: BatchPlan, role: str) -> None:
        """Allow what the plan grants, for all batches together."""
        with self._cloud.call("grant_once"):
            self._check(role)
            self._cloud.policies.add(f"{plan.prefix}_doc_loader_grants")

    async def revoke(self, names: Names, role: str) -> bool:
        """Take it back."""
        with self._cloud.call("revoke"):
            there = names.policy in self._cloud.policies
            self._cloud.policies.discard(names.policy)
            return there

    async def found(self, prefix: str, role: str) -> AsyncIterator[FoundResource]:
        """Policies of every batch of an installation."""
        with self._cloud.call("found_policies"):
            for name in sorted(self._cloud.policies):
                key = key_of(prefix, name)
                if key is not None:
                    yield FoundResource(key, Resource.PERMISSIONS, name)

    def _check(self, role: str) -> None:
        if self._cloud.source is None or role != self._cloud.source.role:
            raise Denied(f"there is no role {role}")

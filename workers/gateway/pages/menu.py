"""The links at the top of every page."""

from dataclasses import dataclass

from workers.services.identity import Identity


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A link at the top of every page."""

    address: str
    title: str
    writes: bool = False
    """Only for people who may write."""
    operators: bool = False
    """Only for operators."""

    def is_for(self, who: Identity) -> bool:
        """Whether a person sees it."""
        return (who.may_write or not self.writes) and (who.is_operator or not self.operators)

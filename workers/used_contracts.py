"""The contracts that a worker uses, built before it takes work."""

from collections.abc import Iterable, Iterator

from contracts.base import Contract


def build_contracts(definitions: Iterable[object]) -> None:
    """Build the validators of contracts: of the pipelines that these belong to, and of all.

    A contract is built when it is used, once per process; but decoding a payload builds only what
    decodes it. Each run has a converter of its own, so that a contract which a worker decodes and
    never makes would be built again for every run.

    Args:
        definitions: Classes of workflows and methods of activities.
    """
    words = {_word(str(getattr(each, "__module__", ""))) for each in definitions}
    for contract in _subclasses(Contract):
        package, _, name = contract.__module__.partition(".")
        if package == "contracts" and ("." not in name or name.partition(".")[0] in words):
            contract.model_rebuild()


def _word(module: str) -> str:
    """The name of the pipeline that a module in a package of its layer belongs to."""
    _, _, name = module.partition(".")
    return name.partition(".")[0]


def _subclasses(contract: type[Contract]) -> Iterator[type[Contract]]:
    for each in contract.__subclasses__():
        yield each
        yield from _subclasses(each)

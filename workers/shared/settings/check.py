"""Settings at the start of a process, all problems at once; and the reference page of them."""

import importlib
import logging
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from workers.shared.errors import SettingsError
from workers.shared.settings.base import SECRETS_DIR, Settings

logger = logging.getLogger(__name__)

_PREFIX: Final = "DOCFLOW_"
ELSEWHERE: Final = frozenset(
    {
        SECRETS_DIR,
        # Read by `docflow.client`, which knows no groups.
        "DOCFLOW_ADDRESS",
        "DOCFLOW_CONTEXT",
        "DOCFLOW_CONTEXTS",
        "DOCFLOW_TOKEN",
        # Set by docflow in the functions that it makes for batches.
        "DOCFLOW_CASE_ID",
        "DOCFLOW_BATCH_ID",
        # Read by tests, whose processes inherit them.
        "DOCFLOW_CHAOS",
        "DOCFLOW_CHROMIUM",
        "DOCFLOW_CRASH_SEED",
        "DOCFLOW_TEST_AWS",
    }
)
"""Names that no group of settings declares."""


def check_settings(
    environment: Mapping[str, str],
    *groups: type[Settings],
    others: Iterable[Callable[[Mapping[str, str]], object]] = (),
) -> None:
    """See whether all groups of settings can be read.

    Args:
        environment: Names and values.
        groups: Groups of this package.
        others: What reads settings that are in no group.

    Raises:
        SettingsError: Some are missing or make no sense; all of them are named, each once.
    """
    problems: dict[str, None] = {}
    for group in groups:
        problems |= dict.fromkeys(group.problems(environment))
    for read in others:
        try:
            read(environment)
        except SettingsError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise SettingsError(*problems)


def check_at_start(
    environment: Mapping[str, str],
    *groups: type[Settings],
    others: Iterable[Callable[[Mapping[str, str]], object]] = (),
) -> None:
    """Warn of names that nothing reads, then check what a process needs.

    Raises:
        SettingsError: Some are missing or make no sense; all of them are named, each once.
    """
    for warning in unread_names(environment):
        logger.warning("%s", warning)
    check_settings(environment, *groups, others=others)


def declared_groups() -> tuple[type[Settings], ...]:
    """Every group: of this package, then of each pipeline, in the order of their text."""
    own = importlib.import_module("workers.shared.settings")
    modules = sorted(each.name for each in pkgutil.iter_modules(own.__path__, f"{own.__name__}."))
    workers = importlib.import_module("workers")
    rooms = sorted(each.name for each in pkgutil.iter_modules(workers.__path__) if each.ispkg)
    of_pipelines = [f"workers.{room}.settings" for room in rooms if room != "shared"]
    modules += [module for module in of_pipelines if find_spec(module) is not None]
    found: list[type[Settings]] = []
    for loaded in map(importlib.import_module, modules):
        found += [
            each
            for each in vars(loaded).values()
            if isinstance(each, type)
            and issubclass(each, Settings)
            and each is not Settings
            and each.__module__ == loaded.__name__
        ]
    return tuple(found)


def unread_names(environment: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with names that look like docflow's and are read by nothing; never a value."""
    declared = [each for group in declared_groups() for each in group.declared()]
    known = ELSEWHERE.union(*(each.names for each in declared))
    for name in sorted(environment):
        if name.startswith(_PREFIX) and name not in known:
            yield f"{name} is not a setting and is ignored{_nearest(name, known)}"
    secrets = {each.name for each in declared if each.setting.secret}
    for file in _files(environment):
        name = file.upper()
        if name in known - secrets:
            yield f"the file {file!r} in {SECRETS_DIR} is ignored: {name} is not a secret, set it"
        elif name.startswith(_PREFIX) and name not in secrets:
            yield f"the file {file!r} in {SECRETS_DIR} is ignored{_nearest(name, secrets)}"


def _files(environment: Mapping[str, str]) -> list[str]:
    folder = environment.get(SECRETS_DIR, "").strip()
    try:
        return sorted(path.name for path in Path(folder).iterdir()) if folder else []
    except OSError:
        # Reported by the first secret that is read.
        return []


def _nearest(name: str, known: frozenset[str] | set[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]}?" if near else "; docs/reference/settings.md lists them"

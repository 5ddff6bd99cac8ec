"""Bring the catalogues of the pages up to date with what pages and declarations say.

`python -m stack.messages` adds what is new to each `docflow.po`, still empty, and takes out what
is no longer said; `python -m stack.messages fr` begins a new language.
"""

import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po, write_po

from workers import catalogue
from workers.shared.gateway.pages.renderer import CATALOGUE, LOCALE
from workers.shared.register import load
from workers.shared.services.errors import ServiceError

_ROOT: Final = Path(__file__).parents[1]
_WORKERS: Final = _ROOT / "workers"
_KEYWORDS: Final[dict[str, Any]] = {
    "_": None,
    "gettext": None,
    "N_": None,
    "counted": (1, 2),
    "pgettext": ((1, "c"), 2),
}
_WIDTH: Final = 100


def extracted() -> Catalog:
    """Every message, in English."""
    found = Catalog(project="docflow", charset="utf-8", fuzzy=False)
    for path in sorted([*_WORKERS.rglob("*.py"), *_WORKERS.rglob("*.html")]):
        method = "python" if path.suffix == ".py" else "jinja2.ext:babel_extract"
        options = {"trim_blocks": "true", "lstrip_blocks": "true", "silent": "false"}
        place = path.relative_to(_ROOT).as_posix()
        for _, message, _, context in extract_from_file(
            method, path, _KEYWORDS, options=options if method != "python" else None
        ):
            found.add(message, locations=[(place, None)], context=context)  # pyright: ignore[reportArgumentType]
    for word in sorted(set(_declared())):
        found.add(word)
    return found


def _declared() -> Iterator[str]:
    for pipeline in catalogue.PIPELINES:
        name = f"workers.{pipeline.name}.declared_words"
        if find_spec(name) is not None:
            yield from import_module(name).declared_words()
        if pipeline.gateway is not None:
            load(pipeline.gateway)
    kinds: list[type[ServiceError]] = [ServiceError]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if kind.__module__.startswith("workers."):
            yield kind.title


def catalogues() -> Iterator[tuple[Path, Catalog]]:
    """The catalogue of each language, with its file."""
    for path in sorted(LOCALE.glob(f"*/{CATALOGUE}")):
        with path.open("rb") as file:
            yield path, read_po(file, locale=path.relative_to(LOCALE).parts[0])


def update(path: Path, known: Catalog, template: Catalog) -> int:
    """Write a catalogue anew; returns how many messages it has no words for."""
    template.creation_date = known.creation_date
    known.update(template, no_fuzzy_matching=True)
    known.obsolete.clear()
    known.project, known.version = "docflow", "1"
    known.header_comment = "# Messages of the pages; `python -m stack.messages` adds what is new."
    with path.open("wb") as file:
        write_po(file, known, width=_WIDTH, sort_output=True, include_lineno=False)
    return sum(1 for each in known if each.id and not _is_complete(each.string))


def _is_complete(text: str | Iterable[str] | None) -> bool:
    return bool(text) and (isinstance(text, str) or all(text))


def main(new: list[str]) -> None:
    """Update all languages, and begin those that are named."""
    for name in new:
        path = LOCALE / name / CATALOGUE
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            update(path, Catalog(locale=name, charset="utf-8", fuzzy=False), extracted())
    template = extracted()
    for path, known in catalogues():
        missing = update(path, known, template)
        print(f"{path.relative_to(_ROOT)}: {len(known)} messages, {missing} without words")


if __name__ == "__main__":
    main(sys.argv[1:])

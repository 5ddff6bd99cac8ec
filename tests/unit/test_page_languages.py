"""Pages in more than one language: catalogues are complete, and no page has words beside them."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog, Message
from jinja2 import Environment, nodes

from stack import messages
from workers.shared.gateway.pages import renderer
from workers.shared.gateway.pages.renderer import (
    LOCALE,
    counted,
    gettext,
    language,
    languages,
    localised,
    negotiated,
    number,
    use_locale,
)

WORKERS = Path(__file__).parents[2] / "workers"
TEMPLATES = sorted(
    [
        *(WORKERS / "shared" / "gateway" / "pages" / "templates").glob("*.html"),
        *(WORKERS / "spreadsheets" / "templates").glob("*.html"),
        *(WORKERS / "transfers" / "templates").glob("transfer*.html"),
    ]
)
CATALOGUES = list(messages.catalogues())
PLACEHOLDER = re.compile(r"%\(\w+\)s")
WORD = re.compile(r"[A-Za-z]{2,}")
SHOWN = {"aria-label", "placeholder", "data-label", "title", "label", "alt"}
OUR_NAME = "docflow"
ATTRIBUTES = re.compile(r'hx-[a-z]+="[^"]*"')
"""Of a tag that more than one form has: a template keeps them in a variable."""


def forms(message: Message) -> tuple[list[str], list[str]]:
    """A message in English and in its language, each form of its plural."""
    known = message.string or ""
    return (
        [message.id] if isinstance(message.id, str) else list(message.id),
        [known] if isinstance(known, str) else list(known),
    )


@pytest.mark.parametrize(("path", "known"), CATALOGUES, ids=lambda it: getattr(it, "name", ""))
def test_every_message_is_in_every_catalogue(path: Path, known: Catalog) -> None:
    wanted = {str(each.id) for each in messages.extracted() if each.id}
    assert {str(each.id) for each in known if each.id} == wanted, "run python -m stack.messages"
    assert not [each.id for each in known if each.fuzzy and each.id]
    for message in known:
        if not message.id:
            continue
        ours, theirs = forms(message)
        assert all(theirs), message.id
        wanted = set(PLACEHOLDER.findall(ours[-1]))
        assert set(PLACEHOLDER.findall(theirs[-1])) == wanted, message.id
        for text in theirs[:-1]:
            # A singular may leave the number out, as in “the first”.
            assert wanted - {"%(count)s"} <= set(PLACEHOLDER.findall(text)) <= wanted, message.id


_LITERALS = {"_": 1, "counted": 2, "pgettext": 2}
"""How many arguments of a message's function are literals that translators see."""


def test_german_is_among_the_languages() -> None:
    assert set(languages()) >= {"en", "de"}
    assert sorted(path.name for path in LOCALE.iterdir()) == sorted(languages().keys() - {"en"})


class _Words(HTMLParser):
    """Collects what a page shows that stands in no message."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self._note(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in SHOWN:
                self._note(value or "")

    def _note(self, text: str) -> None:
        if WORD.search(ATTRIBUTES.sub("", text.replace(OUR_NAME, ""))):
            self.found.append(text.strip())


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_templates_show_no_words_but_messages(path: Path) -> None:
    source = path.read_text()
    environment = Environment(extensions=["jinja2.ext.i18n"])
    words = _Words()
    words.feed("".join(text for _, kind, text in environment.lex(source) if kind == "data"))
    assert words.found == []
    tree = environment.parse(source)
    messages_of = [
        call
        for call in tree.find_all(nodes.Call)
        if isinstance(call.node, nodes.Name) and call.node.name in _LITERALS
    ]
    ours: set[int] = set()
    for call in messages_of:
        literals = call.args[: _LITERALS[call.node.name]]  # type: ignore[attr-defined]
        assert all(isinstance(each, nodes.Const) for each in literals), call.lineno
        ours |= {id(each) for each in literals}
    stray = [
        const.value
        for const in tree.find_all(nodes.Const)
        if id(const) not in ours and _is_sentence(const.value)
    ]
    assert stray == []


def _is_sentence(value: Any) -> bool:
    """Whether a literal of an expression is for people: `Removed file`, not `FAILED` or `open`."""
    return isinstance(value, str) and bool(re.match(r"[A-Z][a-z]|\w+ \w", value))


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("de", "de"),
        ("de-AT, en;q=0.5", "de"),
        ("de-CH-1996", "de"),
        ("DE", "de"),
        ("en-US,en;q=0.9,de;q=0.8", "en"),
        ("fr, de;q=0.4, en;q=0.3", "de"),
        ("en;q=0.2, de;q=0.9", "de"),
        ("de;q=0", "en"),
        ("de;q=2", "en"),
        ("de;q=x", "en"),
        ("*, de;q=0.5", "en"),
        ("fr", "en"),
        ("", "en"),
        (";;,=", "en"),
        ("de-" * 100_000, "de"),
    ],
)
def test_the_language_is_what_the_browser_likes_best(header: str, code: str) -> None:
    assert negotiated(header).code == code


async def test_two_requests_at_a_time_keep_their_languages() -> None:
    meet = asyncio.Barrier(2)

    async def ask(header: str) -> str:
        with use_locale(negotiated(header)):
            await meet.wait()
            return await asyncio.to_thread(gettext, "Save")

    assert await asyncio.gather(ask("de"), ask("en")) == ["Speichern", "Save"]
    assert language().code == "en"


def test_numbers_times_and_plurals_follow_the_language() -> None:
    now = datetime(2026, 11, 23, 17, 5, tzinfo=UTC)
    three_days, five_minutes = now - timedelta(days=3, hours=20), now - timedelta(minutes=5)
    rows = ("%(count)s row", "%(count)s rows")
    assert (number(12345), number(None)) == ("12,345", "–")  # noqa: RUF001
    assert renderer.stamp(now) == "23 Nov 2026, 17:05 UTC"
    assert renderer.ago(three_days, now) == "3 days"
    assert renderer.before_now(five_minutes, now) == "5 minutes ago"
    assert [counted(*rows, count) for count in (1, 2000)] == ["1 row", "2,000 rows"]
    with use_locale(languages()["de"]):
        assert number(12345) == "12.345"
        assert renderer.stamp(now) == "23.11.2026, 17:05 UTC"
        assert renderer.ago(three_days, now) == "3 Tage"
        assert renderer.before_now(five_minutes, now) == "vor 5 Minuten"
        assert [counted(*rows, count) for count in (1, 2000)] == ["1 Zeile", "2.000 Zeilen"]
        assert localised("") == ""
        assert localised("Shirt size of the club") == "Shirt size of the club"

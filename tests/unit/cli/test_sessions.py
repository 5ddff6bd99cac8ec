"""`docflow session`: links, who is signed in, and the end of a session."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from adapters.database.engine import open_database
from adapters.database.models.access import audit
from adapters.database.sessions import SqlSessions
from adapters.ports.access import Session
from tests.support.cli import run_docflow_in_thread
from tests.support.fresh_database import fresh_url
from workers.shared.cli.context import CliContext


async def test_links_are_made_and_sessions_are_ended() -> None:
    settings = {"DATABASE_URL": fresh_url(), "DOCFLOW_PUBLIC_URL": "https://docflow.example.org"}
    context = CliContext({**settings, "USER": "olga"})
    made = await run_docflow_in_thread(
        *("session", "link", "root", "--organisation", "1", "--minutes", "5"), context=context
    )
    assert made.exit_code == 0, made.output
    address, secret = made.stdout.strip().split("#token=")
    assert address == "https://docflow.example.org/sign-in"
    now = datetime.now(UTC)
    async with open_database(settings["DATABASE_URL"]) as database:
        store = SqlSessions(database)
        taken = await store.take_link(secret, now)
        assert taken is not None and await store.take_link(secret, now) is None
        assert (taken.subject, taken.roles, taken.organisations) == ("root", ("admin",), (1,))
        assert timedelta(minutes=4) < taken.expires_at - now < timedelta(minutes=5)
        for subject, ends in (("club:ada", 5), ("club:ada", 9), ("club:ida", -1)):
            session = Session(
                subject, (1,), ("mapper",), now + timedelta(hours=ends), provider="club"
            )
            await store.add(session, f"{subject} {ends}", now)
        shown = await run_docflow_in_thread("session", "list", "-o", "json", context=context)
        assert [each["subject"] for each in json.loads(shown.stdout)] == ["club:ada"] * 2
        ended = await run_docflow_in_thread("session", "end", "club:ada", context=context)
        assert ended.stdout == "ended 2 sessions of club:ada\n"
        assert await store.find("club:ada 5") is None
        empty = await run_docflow_in_thread("session", "list", context=context)
        assert empty.stdout == "nobody is signed in\n"
        async with database.reading() as connection:
            noted = (await connection.execute(select(audit).order_by(audit.c.id))).mappings().all()
    assert [(each["who"], each["action"], each["object"], each["status"]) for each in noted] == [
        ("olga", "session link", "root", 0),
        ("olga", "session end", "club:ada", 0),
    ]
    assert secret not in str(noted)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["root", "--role", "boss"], "unknown role 'boss'"), (["a\nb"], "NAME must have")],
)
async def test_a_link_for_nobody_is_not_made(arguments: list[str], said: str) -> None:
    context = CliContext({"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/docflow"})
    done = await run_docflow_in_thread("session", "link", *arguments, context=context)
    assert done.exit_code == 2 and said in done.output

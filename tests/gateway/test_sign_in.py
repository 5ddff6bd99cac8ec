"""Signing in by a real provider of OpenID Connect, by tokens and by links; and how it ends."""

import base64
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

import httpx
import pytest
import pytest_asyncio
import yaml
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from playwright.async_api import expect

from adapters.database.access import SqlAudit
from adapters.database.records import SqlOldRows
from adapters.database.sessions import SqlSessions, old_sessions
from adapters.ports.access import AuditEntry, AuditFilter, Session, hash_of
from stack.children import free_port
from tests.support.chromium import browser
from tests.support.gateway import Stack, served, sign_in, token
from tests.support.oidc import Person, RunningProvider, oidc_provider
from tests.support.pages import faults
from workers.shared.gateway.http.oidc import OidcProvider, ProviderUnavailable, SignInFailed
from workers.shared.gateway.http.requests import COOKIE
from workers.shared.services.sessions import make_link
from workers.shared.settings.sign_in import DeclaredProvider, Grant, Provider

pytestmark = pytest.mark.asyncio(loop_scope="session")

ADMIN = token("alma", 1, "admin")
ATTEMPT = "docflow_sign_in"


@dataclass
class Site:
    """Two gateways of one installation, and what people sign in by."""

    stack: Stack
    address: str
    second: str
    club: RunningProvider
    late: timedelta = timedelta()
    """How far the gateways' clock is ahead."""

    def now(self) -> datetime:
        return datetime.now(UTC) + self.late

    async def sessions(self, subject: str) -> list[Session]:
        """Those of a person that are not over."""
        store = SqlSessions(self.stack.resources.database)
        found = await store.list(self.now(), self.now() - timedelta(hours=8))
        return [each for each in found if each.subject == subject]

    async def noted(self, subject: str) -> list[AuditEntry]:
        """The trail of a person, the newest first."""
        audit = SqlAudit(self.stack.resources.database)
        wanted = AuditFilter(organisations=[1], others=True, who=subject)
        return list(await audit.list(wanted, 50))

    async def begun(self, person: Person, account: str = "ada") -> str:
        """Address by which the provider sends somebody back."""
        form = await person.open(f"{self.address}/sign-in/club")
        back = await person.log_in(form, account, to=f"{self.address}/sign-in/club/callback")
        return back.headers["location"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("sign-in")
    ports = [free_port() for _ in range(5)]
    addresses = [f"http://127.0.0.1:{port}" for port in ports[:2]]
    async with AsyncExitStack() as exits:
        club, other = [
            await exits.enter_async_context(oidc_provider(folder, port, [name], addresses))
            for port, name in zip(ports[2:4], ("club", "other"), strict=True)
        ]
        declared = {
            "organisations": ["2"],
            "providers": {
                "club": club.declared(),
                "other": other.declared("Other login"),
                "away": club.declared("Lost login", issuer=f"http://localhost:{ports[4]}"),
            },
        }
        found = Site(stack, *addresses, club)
        for port, address in zip(ports[:2], addresses, strict=True):
            app = stack.gateway(
                public_url=address,
                environment=_environment(folder, address, declared),
                now=found.now,
            )
            await exits.enter_async_context(served(app, port=port))
        yield found


def _environment(folder: Path, address: str, declared: Mapping[str, Any]) -> dict[str, str]:
    (folder / "sign-in.yaml").write_text(yaml.safe_dump(declared))
    return {
        "DOCFLOW_SIGN_IN": str(folder / "sign-in.yaml"),
        "DOCFLOW_PUBLIC_URL": address,
        "CLUB_SECRET": "s3cret of tests",
    }


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def nobody_stays(stack: Stack) -> AsyncIterator[None]:
    """Each test begins without sessions of its people."""
    yield
    store = SqlSessions(stack.resources.database)
    for subject in ("club:ada", "other:ada", "club:olga", "ada"):
        await store.end_all(subject)


def heading(page: str) -> str:
    found = re.search(r"<strong>([^<]*)</strong><p>([^<]*)</p>", page)
    return unescape(f"{found[1]}: {found[2]}") if found else ""


async def test_groups_of_a_provider_become_roles(site: Site) -> None:
    async with Person() as ada:
        page = await ada.signs_in(site.address, "club", "ada", next="/runs?state=FAILED")
        assert (page.status_code, str(page.url)) == (200, f"{site.address}/runs?state=FAILED")
        assert "Ada Lovelace" in page.text
        # A mapper in one organisation, and an operator nowhere.
        assert (await ada.client.get(f"{site.address}/uploads/new")).status_code == 200
        assert (await ada.client.get(f"{site.address}/routes")).status_code in (403, 404)
        [session] = await site.sessions("club:ada")
        assert (session.organisations, session.roles) == ((1,), ())
        assert session.roles_in == {1: ("mapper",)}
        assert (session.email, session.provider) == ("ada@example.org", "club")
        secret = ada.client.cookies[COOKIE]
        [noted, *_] = await site.noted("club:ada")
        assert (noted.action, noted.object, noted.status) == ("signIn", "club", 303)
        assert secret not in noted.model_dump_json()


async def test_a_group_without_organisations_counts_everywhere(site: Site) -> None:
    async with Person() as olga:
        assert (await olga.signs_in(site.address, "club", "olga")).status_code == 200
        [session] = await site.sessions("club:olga")
    assert session.roles == ("operator",) and set(session.organisations) == {1, 2}


async def test_nobody_without_a_role_is_let_in(site: Site) -> None:
    async with Person() as stray:
        page = await stray.signs_in(site.address, "club", "stray")
        assert page.status_code == 403
        assert heading(page.text) == (
            "You have no role here: Club login knows you as stray@example.org, but none of your "
            "groups there has a role in docflow. Ask the people who run docflow which group you "
            "need."
        )
        assert COOKIE not in stray.client.cookies and not await site.sessions("club:stray")
    [noted, *_] = await site.noted("club:stray")
    assert (noted.action, noted.object, noted.status) == ("signIn", "club", 403)


async def test_who_is_unknown_to_the_provider_is_told_so(site: Site) -> None:
    async with Person() as nobody:
        page = await nobody.signs_in(site.address, "club", "nobody")
    assert page.status_code == 403
    assert heading(page.text) == "You are not signed in: Club login did not let you in."


def _changed(person: Person, **changes: object) -> None:
    """Change what the browser keeps of its attempt."""
    kept = json.loads(unquote(person.client.cookies[ATTEMPT]))
    person.client.cookies.delete(ATTEMPT)
    changed = quote(json.dumps({**kept, **changes}), safe="")
    person.client.cookies.set(ATTEMPT, changed, domain="127.0.0.1", path="/")


LOST = "This sign-in was not begun in this browser, or you began another one. Try again."
INVALID = (
    "docflow cannot accept what Club login answered. Try again; if that does not help, tell the "
    "people who run docflow."
)


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"state": "another"}, 400, LOST),
        ({"provider": "other"}, 400, LOST),
        ({"state": 7}, 400, LOST),
        ({"nonce": "another"}, 403, INVALID),
        ({"verifier": "v" * 43}, 403, INVALID),
        ({"begun": 0}, 400, "The sign-in took too long. Try again."),
    ],
)
async def test_an_answer_to_another_attempt_is_refused(
    site: Site, changes: Mapping[str, object], status: int, said: str
) -> None:
    async with Person() as ada:
        address = await site.begun(ada)
        _changed(ada, **changes)
        page = await ada.open(address)
        assert (page.status_code, heading(page.text)) == (status, f"You are not signed in: {said}")
        assert COOKIE not in ada.client.cookies
        # What the browser kept is of no more use.
        assert ATTEMPT not in ada.client.cookies


@pytest.mark.parametrize(
    ("changes", "status"),
    [({"state": "x"}, 400), ({"iss": "https://evil.example"}, 403), ({"code": "x"}, 403)],
)
async def test_an_answer_that_was_changed_is_refused(
    site: Site, changes: Mapping[str, str], status: int
) -> None:
    async with Person() as ada:
        address, _, query = (await site.begun(ada)).partition("?")
        given = {name: values[0] for name, values in parse_qs(query).items()}
        page = await ada.open(f"{address}?{urlencode({**given, **changes})}")
        assert page.status_code == status and COOKIE not in ada.client.cookies


async def test_an_answer_works_once_and_in_its_browser_alone(site: Site) -> None:
    async with Person() as ada, Person() as thief:
        address = await site.begun(ada)
        kept = ada.client.cookies[ATTEMPT]
        assert (await thief.open(address)).status_code == 400
        assert (await ada.open(address)).status_code == 200
        assert (await ada.open(address)).status_code == 400
        thief.client.cookies.set(ATTEMPT, kept, domain="127.0.0.1", path="/")
        assert (await thief.open(address)).status_code == 403
        assert COOKIE not in thief.client.cookies


@pytest.mark.parametrize(
    "next", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:1", "x"]
)
async def test_a_provider_leads_to_no_other_site(site: Site, next: str) -> None:
    async with Person() as ada, Person() as other:
        page = await ada.signs_in(site.address, "club", "ada", next=next)
        assert str(page.url) == f"{site.address}/"
        address = await site.begun(other)
        _changed(other, next=next)
        assert str((await other.open(address)).url) == f"{site.address}/"
        form = await other.open(f"{site.address}/sign-in", params={"next": next})
        assert 'href="/sign-in/club?next=/"' in form.text


async def test_a_provider_that_is_away_leaves_other_ways(site: Site) -> None:
    async with Person() as ada:
        page = await ada.open(f"{site.address}/sign-in/away?next=/runs")
        assert page.status_code == 503
        assert heading(page.text) == (
            "You are not signed in: Lost login does not answer at the moment. Try again in a "
            "moment, or sign in another way."
        )
        assert 'href="/sign-in/club?next=/runs"' in page.text
        assert "<details>" in page.text
        refused = await ada.open(f"{site.address}/sign-in", data={"token": "x.y.z"})
        assert (refused.status_code, "<details open>" in refused.text) == (401, True)
        sent = {"token": token("ada"), "next": "/runs"}
        assert (await ada.open(f"{site.address}/sign-in", data=sent)).status_code == 200
        assert (await ada.open(f"{site.address}/sign-in/nosuch")).status_code == 404


async def test_two_providers_know_two_people(site: Site) -> None:
    for name in ("club", "other"):
        async with Person() as ada:
            assert (await ada.signs_in(site.address, name, "ada")).status_code == 200
    assert len(await site.sessions("club:ada")) == len(await site.sessions("other:ada")) == 1


async def test_gateways_share_sessions_and_signing_out_ends_both(site: Site) -> None:
    async with Person() as ada:
        await ada.signs_in(site.address, "club", "ada")
        secret = ada.client.cookies[COOKIE]
        page = await ada.open(f"{site.second}/runs")
        assert page.status_code == 200 and "Ada Lovelace" in page.text
        again = await ada.open(f"{site.second}/sign-in/club")
        # The provider knows them still.
        assert urlsplit(str(again.url)).path == "/"
        csrf = re.search(r'name="csrf" value="([^"]+)"', again.text)
        assert csrf is not None and secret != ada.client.cookies[COOKIE]
        confirm = await ada.open(f"{site.second}/sign-out", data={"csrf": csrf[1]})
        form = re.search(r'name="xsrf" value="([^"]+)"', confirm.text)
        action = re.search(r'action="([^"]+)"', confirm.text)
        assert form is not None and action is not None, confirm.text
        done = await ada.open(action[1], data={"xsrf": form[1], "logout": "yes"})
        assert str(done.url).startswith(f"{site.second}/sign-in")
        assert not await site.sessions("club:ada")
        for left in (secret, "x"):
            ada.client.cookies.set(COOKIE, left, domain="127.0.0.1", path="/")
            asked = await ada.client.get(f"{site.address}/runs")
            assert asked.headers["location"] == "/sign-in?next=/runs"
        assert "Log in" in (await ada.open(f"{site.address}/sign-in/club")).text
    [out, *_] = await site.noted("club:ada")
    assert (out.action, out.object, out.status) == ("POST /sign-out", "club", 200)


@pytest.mark.parametrize(
    ("steps", "ends"),
    [
        # Hours between requests: eight without one, and 24 in all.
        ([7.9, 7.9, 7.9], False),
        ([8.1], True),
        ([7, 7, 7, 4], True),
    ],
)
async def test_sessions_end_by_themselves(site: Site, steps: list[float], ends: bool) -> None:
    async with Person() as ada:
        await ada.signs_in(site.address, "club", "ada")
        try:
            for hours in steps:
                site.late += timedelta(hours=hours)
                answer = await ada.client.get(f"{site.address}/runs")
            assert answer.is_redirect == ends
        finally:
            site.late = timedelta()


async def test_sessions_that_are_over_are_removed(site: Site) -> None:
    async with Person() as ada:
        await ada.signs_in(site.address, "club", "ada")
        key = (hash_of(ada.client.cookies[COOKIE]),)
    old: SqlOldRows = old_sessions(site.stack.resources.database)
    for hours, removed in ((23, 0), (25, 1)):
        before = site.now() + timedelta(hours=hours)
        due = [each for each in await old.due(before, 10_000) if each.key == key]
        assert await old.remove(due, before) == removed
    assert not await site.sessions("club:ada")


async def test_the_session_of_a_token_ends_with_it(stack: Stack) -> None:
    new = {"name": "kiosk", "organisation_id": 1, "roles": ["viewer"]}
    async with stack.browser(ADMIN) as admin, stack.browser("") as kiosk:
        made = (await admin.post("/api/v1/tokens", json=new)).json()
        secret = await sign_in(kiosk, made["token"])
        assert secret not in made["token"] and made["token"] not in secret
        assert (await kiosk.get("/runs")).status_code == 200
        assert (await admin.delete(f"/api/v1/tokens/{made['id']}")).status_code == 204
        # Another gateway has not read it before.
        other = stack.gateway()
    async with stack.browser("", app=other) as kiosk:
        kiosk.cookies.set(COOKIE, secret)
        assert (await kiosk.get("/runs")).headers["location"] == "/sign-in?next=/runs"


async def test_a_long_token_signs_in_and_its_end_counts(stack: Stack) -> None:
    long = token("ida", 1, "mapper", email=f"{'i' * 300}@example.org")
    async with stack.browser("") as ida:
        await sign_in(ida, long)
        assert "i" * 300 not in ida.cookies[COOKIE]
    store, now = SqlSessions(stack.resources.database), datetime.now(UTC)
    [session] = [s for s in await store.list(now, now - timedelta(hours=1)) if s.subject == "ida"]
    assert timedelta(hours=11) < session.expires_at - now <= timedelta(hours=12)


async def test_a_link_signs_the_first_admin_in_once(stack: Stack) -> None:
    store = SqlSessions(stack.resources.database)
    link = await make_link(store, "root", [1], ["admin"], "Root", timedelta(minutes=5))
    async with stack.browser("") as root, stack.browser("") as other:
        # Opening the page, as a preview of the link does, uses nothing up.
        assert (await root.get("/sign-in")).status_code == 200
        root.cookies.set(COOKIE, link)
        assert (await root.get("/runs")).is_redirect
        root.cookies.clear()
        await sign_in(root, link)
        assert "Root" in (await root.get("/runs")).text
        refused = await other.post("/sign-in", data={"token": link})
        assert (refused.status_code, heading(refused.text)) == (
            401,
            "You are not signed in: The link has expired or was used; ask for a new one.",
        )
    over = await make_link(store, "root", [1], ["admin"], "Root", timedelta(seconds=-1))
    async with stack.browser("") as root:
        assert (await root.post("/sign-in", data={"token": over})).status_code == 401


async def test_https_has_cookies_that_no_other_host_can_set(stack: Stack) -> None:
    app = stack.gateway(public_url="https://gateway")
    async with stack.browser("", app=app) as ada:
        answer = await ada.post("/sign-in", data={"token": token("ada")})
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"__Host-{COOKIE}=")
        assert {"HttpOnly", "Path=/", "SameSite=strict", "Secure"} <= set(cookie.split("; "))
        # One without the prefix is anybody's.
        value = cookie.partition("=")[2].partition(";")[0]
        asked = await ada.get("/runs", headers={"cookie": f"{COOKIE}={value}"})
        assert asked.is_redirect
        asked = await ada.get("/runs", headers={"cookie": f"__Host-{COOKIE}={value}"})
        assert asked.status_code == 200


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_browser_signs_in_and_out_by_buttons_alone(site: Site, scripts: bool) -> None:
    async with browser() as chromium:
        context = await chromium.new_context(
            base_url=site.address, java_script_enabled=scripts, locale="en"
        )
        page = await context.new_page()
        await page.goto("/runs?state=FAILED")
        assert not scripts or await faults(page) == []
        await page.get_by_role("link", name="Continue with Club login").click()
        await page.get_by_label("Account").fill("ada")
        await page.get_by_role("button", name="Log in").click()
        # The provider's name is another site's: the session cookie is sent nevertheless.
        await page.wait_for_url("**/runs?state=FAILED")
        await expect(page.get_by_text("Ada Lovelace")).to_be_visible()
        [cookie] = [each for each in await context.cookies(site.address) if each["name"] == COOKIE]
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        await page.get_by_role("button", name="Sign out").click()
        await page.get_by_role("button", name="Yes, sign me out").click()
        await page.wait_for_url("**/sign-in")
        await page.goto("/runs")
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        await page.get_by_role("link", name="Continue with Club login").click()
        await page.get_by_label("Account").fill("stray")
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("alert")).to_contain_text("You have no role here")
        assert not scripts or await faults(page) == []
        await page.get_by_role("link", name="Use another account").click()
        await page.get_by_role("button", name="Yes, sign me out").click()
        await page.wait_for_url("**/sign-in")
        await page.get_by_role("link", name="Continue with Club login").click()
        await expect(page.get_by_label("Account")).to_be_visible()


PRIVATE = RSAKey.generate_key(2048, {"kid": "k1", "use": "sig"})
ISSUER = "https://id.example.org"


def _provider(
    claims: Mapping[str, Any], header: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
) -> tuple[OidcProvider, dict[str, str]]:
    """A provider of made-up answers, and the nonce that its ID tokens name when it is filled in."""
    nonce = dict[str, str]()

    def answer(request: httpx.Request) -> httpx.Response:
        match request.url.path:
            case "/.well-known/openid-configuration":
                ends = ("authorization", "token", "userinfo")
                found = {f"{each}_endpoint": f"{ISSUER}/{each}" for each in ends}
                found |= {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/jwks", **(metadata or {})}
                return httpx.Response(200, json=found)
            case "/jwks":
                secret = {"kty": "oct", "kid": "k2", "k": "c2VjcmV0IG9mIHRlc3Rz"}
                return httpx.Response(200, json={"keys": [PRIVATE.as_dict(private=False), secret]})
            case "/token":
                return httpx.Response(200, json={"id_token": signed(), "access_token": "t"})
            case _:
                return httpx.Response(200, json={"sub": "another", "groups": ["g"]})

    def signed() -> str:
        now = int(datetime.now(UTC).timestamp())
        said = {"iss": ISSUER, "aud": "docflow", "sub": "ada", "iat": now, "exp": now + 60}
        said |= {"groups": ["g"], "name": "Ada", "email": "ada@example.org", **nonce, **claims}
        whole = {"alg": "RS256", "kid": "k1", **header}
        if whole["alg"] == "none":
            return f"{_part(whole)}.{_part(said)}."
        key = OctKey.import_key("s3cret of tests") if whole["alg"] == "HS256" else PRIVATE
        return jwt.encode(whole, {k: v for k, v in said.items() if v is not None}, key)

    grants = {"g": Grant(roles=("mapper",), organisations=(1,)), "*": Grant(roles=("viewer",))}
    declared = Provider(title="ID", issuer=ISSUER, client_id="docflow", groups=grants)
    whole = DeclaredProvider("id", declared, "s3cret of tests", (1,), "https://docflow.example")
    return OidcProvider(whole, transport=httpx.MockTransport(answer)), nonce


def _part(said: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=").decode()


async def _finished(provider: OidcProvider, nonce: dict[str, str]) -> Session:
    address, attempt = await provider.begin("/")
    query = parse_qs(urlsplit(address).query)
    assert query["code_challenge_method"] == ["S256"] and query["nonce"] == [attempt.nonce]
    assert query["code_challenge"] != [attempt.verifier]
    nonce["nonce"] = attempt.nonce
    return await provider.finish(attempt, {"state": attempt.state, "code": "c"}, datetime.now(UTC))


async def test_an_id_token_of_a_provider_names_a_person() -> None:
    session = await _finished(*_provider({}, {}))
    assert (session.subject, session.roles, session.roles_in) == (
        "id:ada",
        ("viewer",),
        {1: ("mapper",)},
    )
    # A group of the whole provider, and one that is no text.
    session = await _finished(*_provider({"groups": ["x", 7]}, {}))
    assert (session.roles, session.organisations) == (("viewer",), (1,))


@pytest.mark.parametrize(
    ("claims", "header", "why"),
    [
        ({}, {"alg": "none"}, "cannot be 'none'"),
        ({}, {"alg": "HS256"}, "cannot be 'HS256'"),
        ({}, {"kid": "k2"}, "not published"),
        ({"iss": "https://evil.example"}, {}, "iss"),
        ({"aud": "another"}, {}, "aud"),
        ({"aud": ["docflow", "another"], "azp": "another"}, {}, "another client"),
        ({"exp": 1}, {}, "expired"),
        ({"exp": None}, {}, "exp"),
        ({"iat": 4_000_000_000}, {}, "future"),
        ({"nonce": "another"}, {}, "nonce"),
        ({"nonce": None}, {}, "nonce"),
        ({"sub": None}, {}, "sub"),
        ({"sub": "a\x00"}, {}, "claim sub"),
        # The answer beside the token is about another person.
        ({"email": None}, {}, "another person"),
    ],
)
async def test_an_id_token_that_is_not_for_us_is_refused(
    claims: Mapping[str, Any], header: Mapping[str, Any], why: str
) -> None:
    with pytest.raises(SignInFailed, match=re.escape(why)) as failed:
        await _finished(*_provider(claims, header))
    assert failed.value.reason == "invalid"


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"issuer": f"{ISSUER}/"}, "write that as `issuer`"),
        ({"token_endpoint": "http://id.example.org/token"}, "no usable token_endpoint"),
        ({"jwks_uri": None}, "no usable jwks_uri"),
        ({"padding": "x" * 2_000_000}, "too large"),
    ],
)
async def test_a_provider_that_is_not_as_declared_is_named(
    metadata: Mapping[str, Any], why: str
) -> None:
    with pytest.raises(ProviderUnavailable, match=why):
        await _provider({}, {}, metadata)[0].check()

"""Which tokens are accepted, and whose they are."""

import base64
import hmac
import json
import time
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, Key, KeySet, OctKey, OKPKey, RSAKey

from workers.shared.errors import SettingsError
from workers.shared.gateway.http.auth import Tokens, Unauthorised, mint_token
from workers.shared.gateway.http.keys import KeysUnavailable
from workers.shared.settings.gateway import GatewaySettings, TokenSettings
from workers.spreadsheets.settings import SpreadsheetSettings

SHARED = TokenSettings(key="k" * 32)
URL = "https://login.example.org/keys"


def claims(**changes: Any) -> dict[str, Any]:
    """Claims that are accepted; a change to None leaves one out."""
    now = int(time.time())
    good = {
        "iss": "docflow",
        "aud": "docflow",
        "sub": "anna",
        "exp": now + 3600,
        "organisations": [1, 2],
        "roles": ["mapper"],
    }
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def signed(payload: dict[str, Any], *, key: str = "k" * 32, algorithm: str = "HS256") -> str:
    return jwt.encode({"alg": algorithm}, payload, OctKey.import_key(key), algorithms=[algorithm])


def encoded(*parts: dict[str, Any]) -> str:
    texts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts)
    return ".".join(text.rstrip("=") for text in texts)


def unsigned(payload: dict[str, Any]) -> str:
    return encoded({"alg": "none", "typ": "JWT"}, payload) + "."


async def test_a_minted_token_identifies_its_owner() -> None:
    token = mint_token(
        SHARED,
        subject="anna",
        organisations=[3, 1],
        roles=["viewer", "operator"],
        name="Anna B.",
        email="anna@example.org",
    )
    who = await Tokens(SHARED).identify(token)
    assert (who.subject, who.organisations, who.name) == ("anna", (3, 1), "Anna B.")
    assert who.email == "anna@example.org"
    assert who.roles == {"viewer", "operator"}
    assert who.may_read
    assert who.may_write
    assert who.is_operator


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("", "not valid"),
        ("a.b.c", "not valid"),
        ("x" * 20_000, "longer than"),
        (signed(claims(), key="j" * 32), "not valid"),
        (signed(claims(), algorithm="HS512"), "not valid"),
        (unsigned(claims()), "not valid"),
        (signed(claims(iss="somebody")), "iss"),
        (signed(claims(iss=None)), "iss"),
        (signed(claims(aud="other")), "aud"),
        (signed(claims(aud=None)), "aud"),
        (signed(claims(exp=None)), "exp"),
        (signed(claims(exp="soon")), "exp"),
        (signed(claims(exp=int(time.time()) - 120)), "expired"),
        (signed(claims(nbf=int(time.time()) + 3600)), "not valid"),
        (signed(claims(sub=None)), "sub"),
        (signed(claims(sub=7)), "sub"),
        (signed(claims(sub="x" * 201)), "sub"),
        (signed(claims(sub="a\nb")), "sub"),
        (signed(claims(organisations="1")), "organisations"),
        (signed(claims(organisations=[True])), "organisations"),
        (signed(claims(organisations=["1"])), "organisations"),
        (signed(claims(organisations=[0])), "organisations"),
        (signed(claims(roles="mapper")), "roles"),
        (signed(claims(roles=[1])), "roles"),
        (signed(claims(roles={"1": "mapper"})), "roles"),
        (signed(claims(roles={"x": ["mapper"]})), "roles"),
    ],
)
async def test_invalid_tokens_are_refused(token: str, reason: str) -> None:
    with pytest.raises(Unauthorised, match=reason) as refused:
        await Tokens(SHARED).identify(token)
    assert 'error="invalid_token"' in refused.value.challenge


async def test_clocks_may_differ_by_half_a_minute() -> None:
    now = int(time.time())
    tokens = Tokens(SHARED)
    await tokens.identify(signed(claims(exp=now - 20)))
    await tokens.identify(signed(claims(nbf=now + 20)))


async def test_unknown_roles_mean_nothing() -> None:
    who = await Tokens(SHARED).identify(signed(claims(roles=["importer"], organisations=None)))
    assert not who.may_read
    assert not who.may_write
    assert who.organisations == ()


@pytest.mark.parametrize(
    ("roles", "role", "organisation", "may"),
    [
        (["operator"], "mapper", 1, True),
        (["operator"], "operator", None, True),
        (["operator"], "admin", 1, False),
        (["operator"], "viewer", 3, False),
        ({"1": ["operator"], "3": ["viewer"]}, "mapper", 1, True),
        ({"1": ["operator"], "3": ["viewer"]}, "viewer", 3, True),
        ({"1": ["operator"], "3": ["viewer"]}, "mapper", 3, False),
        ({"1": ["operator"]}, "viewer", 2, False),
        ({"1": ["operator"]}, "viewer", None, False),
    ],
)
async def test_a_role_counts_where_it_is_given(
    roles: Any, role: str, organisation: int | None, may: bool
) -> None:
    who = await Tokens(SHARED).identify(signed(claims(roles=roles)))
    assert who.may(role, organisation) == may


class Publisher:
    """Publishes keys, and counts how often it is asked."""

    def __init__(self, *keys: Key) -> None:
        self.keys = list(keys)
        self.asked = 0
        self.status = 200

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        if self.status != 200:
            return httpx.Response(self.status)
        return httpx.Response(200, json=KeySet(self.keys).as_dict(private=False))


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def tokens_of(publisher: Publisher, clock: Callable[[], float], algorithm: str) -> Tokens:
    settings = TokenSettings(algorithm=algorithm, jwks_url=URL)
    return Tokens(settings, transport=httpx.MockTransport(publisher), clock=clock)


def signed_by(key: Key, algorithm: str) -> str:
    header = {"alg": algorithm, "kid": key.kid}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        return jwt.encode(header, claims(), key, algorithms=[algorithm])


@pytest.mark.parametrize(
    ("algorithm", "make"),
    [
        ("RS256", lambda: RSAKey.generate_key(2048, auto_kid=True)),
        ("ES256", lambda: ECKey.generate_key("P-256", auto_kid=True)),
        ("Ed25519", lambda: OKPKey.generate_key("Ed25519", auto_kid=True)),
        ("EdDSA", lambda: OKPKey.generate_key("Ed25519", auto_kid=True)),
    ],
)
async def test_public_keys_are_fetched_once(algorithm: str, make: Callable[[], Key]) -> None:
    key = make()
    publisher = Publisher(key)
    tokens = tokens_of(publisher, Clock(), algorithm)
    for _ in range(3):
        assert (await tokens.identify(signed_by(key, algorithm))).subject == "anna"
    assert publisher.asked == 1


async def test_an_unknown_key_is_asked_for_now_and_then_only() -> None:
    first, second = (ECKey.generate_key("P-256", auto_kid=True) for _ in range(2))
    publisher, clock = Publisher(first), Clock()
    tokens = tokens_of(publisher, clock, "ES256")
    await tokens.identify(signed_by(first, "ES256"))
    for _ in range(5):
        with pytest.raises(Unauthorised, match="does not publish"):
            await tokens.identify(signed_by(second, "ES256"))
    assert publisher.asked == 1

    publisher.keys.append(second)
    clock.now += 31
    await tokens.identify(signed_by(second, "ES256"))
    assert publisher.asked == 2


async def test_a_withdrawn_key_is_forgotten_within_an_hour() -> None:
    first, second = (ECKey.generate_key("P-256", auto_kid=True) for _ in range(2))
    publisher, clock = Publisher(first, second), Clock()
    tokens = tokens_of(publisher, clock, "ES256")
    await tokens.identify(signed_by(first, "ES256"))
    publisher.keys.remove(first)
    clock.now += 3601
    with pytest.raises(Unauthorised, match="does not publish"):
        await tokens.identify(signed_by(first, "ES256"))


async def test_the_provider_is_unavailable() -> None:
    key = ECKey.generate_key("P-256", auto_kid=True)
    publisher, clock = Publisher(key), Clock()
    publisher.status = 503
    tokens = tokens_of(publisher, clock, "ES256")
    for _ in range(3):
        with pytest.raises(KeysUnavailable):
            await tokens.identify(signed_by(key, "ES256"))
    assert publisher.asked == 1

    publisher.status = 200
    clock.now += 6
    await tokens.identify(signed_by(key, "ES256"))
    publisher.status = 503
    clock.now += 3601
    assert (await tokens.identify(signed_by(key, "ES256"))).subject == "anna"


async def test_a_public_key_is_no_shared_secret() -> None:
    """A token signed with HMAC over the published key must not pass as one of the provider's."""
    key = RSAKey.generate_key(2048, auto_kid=True)
    signing_input = encoded({"alg": "HS256", "kid": key.kid}, claims())
    digest = hmac.digest(key.as_pem(private=False), signing_input.encode(), "sha256")
    forged = f"{signing_input}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"
    with pytest.raises(Unauthorised):
        await tokens_of(Publisher(key), Clock(), "RS256").identify(forged)


async def test_a_published_secret_is_not_used() -> None:
    """A provider that publishes a symmetric key by mistake has given it away."""
    secret = OctKey.generate_key(256, auto_kid=True)
    other = ECKey.generate_key("P-256", auto_kid=True)

    def publish(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=KeySet([secret, other]).as_dict(private=True))

    settings = TokenSettings(algorithm="ES256", jwks_url=URL)
    tokens = Tokens(settings, transport=httpx.MockTransport(publish))
    forged = jwt.encode({"alg": "HS256", "kid": secret.kid}, claims(), secret)
    with pytest.raises(Unauthorised):
        await tokens.identify(forged)


async def test_far_too_many_keys_are_not_read() -> None:
    def publish(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=b" " * (2 << 20))

    settings = TokenSettings(algorithm="ES256", jwks_url=URL)
    key = ECKey.generate_key("P-256", auto_kid=True)
    with pytest.raises(KeysUnavailable):
        await Tokens(settings, transport=httpx.MockTransport(publish)).identify(
            signed_by(key, "ES256")
        )


def test_tokens_of_a_provider_cannot_be_made_here() -> None:
    settings = TokenSettings(algorithm="ES256", jwks_url=URL)
    with pytest.raises(SettingsError, match="identity provider"):
        mint_token(settings, subject="anna", organisations=[1])
    with pytest.raises(SettingsError, match="unknown role 'king'"):
        mint_token(SHARED, subject="anna", organisations=[1], roles=["king"])


async def test_a_minted_token_expires() -> None:
    token = mint_token(SHARED, subject="a", organisations=[1], lasts=timedelta(minutes=-2))
    with pytest.raises(Unauthorised, match="expired"):
        await Tokens(SHARED).identify(token)


KEY = {"DOCFLOW_JWT_KEY": "k" * 32}


def test_settings_have_sensible_defaults() -> None:
    settings = GatewaySettings.read(KEY)
    assert settings.cors_origins == ()
    assert settings.tokens.algorithm == "HS256"
    assert "k" * 32 not in repr(settings)
    uploads = SpreadsheetSettings.read({})
    assert uploads.upload_limit == 500_000_000
    assert uploads.create_per_minute == 30
    assert uploads.patience.remind_after == 3 * 86_400


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({}, "DOCFLOW_JWT_KEY"),
        ({**KEY, "DOCFLOW_JWT_JWKS_URL": URL}, "either"),
        ({"DOCFLOW_JWT_KEY": "short"}, "at least 32 bytes"),
        ({"DOCFLOW_JWT_JWKS_URL": "keys"}, "DOCFLOW_JWT_JWKS_URL must be an address"),
        ({**KEY, "DOCFLOW_JWT_ALGORITHM": "RS256"}, "HS256, not 'RS256'"),
        ({"DOCFLOW_JWT_JWKS_URL": URL, "DOCFLOW_JWT_ALGORITHM": "HS256"}, "not 'HS256'"),
        ({**KEY, "DOCFLOW_CORS_ORIGINS": "*"}, "is not an origin"),
        ({**KEY, "DOCFLOW_CORS_ORIGINS": "https://a.org/path"}, "is not an origin"),
        ({**KEY, "DOCFLOW_PUBLIC_URL": "docflow"}, "DOCFLOW_PUBLIC_URL must be an address"),
    ],
)
def test_invalid_settings(environment: dict[str, str], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        GatewaySettings.read(environment)


@pytest.mark.parametrize(("limit", "reason"), [("many", "a whole number"), ("0", "between 1 and")])
def test_invalid_limits_of_uploads(limit: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=f"DOCFLOW_UPLOAD_LIMIT_MB must be {reason}"):
        SpreadsheetSettings.read({"DOCFLOW_UPLOAD_LIMIT_MB": limit})


def test_origins_are_separated_by_commas() -> None:
    settings = GatewaySettings.read(
        {**KEY, "DOCFLOW_CORS_ORIGINS": "https://a.org, http://localhost:3000/"}
    )
    assert settings.cors_origins == ("https://a.org", "http://localhost:3000")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
HEADERS = st.fixed_dictionaries(
    {}, optional={name: JSON | st.just("HS256") for name in ("alg", "kid", "typ", "crit", "b64")}
)


@given(header=JSON | HEADERS, payload=JSON, tail=st.text(max_size=5))
async def test_whatever_is_sent_is_refused_in_the_same_way(
    header: Any, payload: Any, tail: str
) -> None:
    published = TokenSettings(algorithm="ES256", jwks_url=URL)
    publisher = httpx.MockTransport(Publisher(ECKey.generate_key("P-256", auto_kid=True)))
    for token in (tail, f"{encoded(header, payload)}.{tail}"):
        with pytest.raises(Unauthorised):
            await Tokens(SHARED).identify(token)
        with pytest.raises(Unauthorised):
            await Tokens(published, transport=publisher).identify(token)


@given(changes=st.dictionaries(st.sampled_from(sorted(claims())), JSON))
async def test_whatever_a_provider_claims_is_read_or_refused(changes: dict[str, Any]) -> None:
    payload = {**claims(), **changes}
    try:
        who = await Tokens(SHARED).identify(signed(payload))
    except Unauthorised:
        return
    assert who.subject == payload["sub"]
    assert all(organisation > 0 for organisation in who.organisations)

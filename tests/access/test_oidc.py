"""Logins at an issuer: a good one comes in, and nothing that is wrong does."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from joserfc import jws
from joserfc.jwk import OctKey
from pydantic import SecretStr
from tests.access.issuer import (
    CLIENT,
    SECRET,
    Claims,
    Issuer,
    answer,
    answer_without_end,
    ec_key,
    ed_key,
    encode,
    redirect_elsewhere,
    rsa_key,
    sign,
    sign_raw,
)

from longthread.access.identities import Identity
from longthread.access.login_state import (
    LoginState,
    login_key,
    new_login,
    own_path,
    seal_login,
    unseal_login,
)
from longthread.access.oidc import LoginProvider
from longthread.errors import IssuerAnswerRefused, IssuerUnreachable, LoginDenied, LoginExpired, LongthreadError
from longthread.settings import OidcIssuer, Settings
from longthread.store.driver import Driver
from longthread.store.open import open_store

BACK = "https://longthread.example/api/oidc/sso/callback"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer().running() as running:
        yield running


def provider_of(running: Issuer, clock: Callable[[], float] = time.monotonic, **changes: Any) -> LoginProvider:
    given = {"id": "sso", "issuer": running.url, "client_id": CLIENT, "client_secret": SecretStr(SECRET)} | changes
    return LoginProvider(OidcIssuer(**given), BACK, clock=clock)


async def go(url: str) -> dict[str, str]:
    """What a browser comes back with from the issuer's page."""
    async with httpx.AsyncClient(trust_env=False, verify=False) as browser:
        back = (await browser.get(url)).headers["location"]
    assert back.startswith(f"{BACK}?")
    return dict(parse_qsl(urlsplit(back).query))


async def log_in(provider: LoginProvider) -> Identity:
    login = new_login("sso", "/")
    return await provider.finish(login, await go(await provider.begin(login)))


async def test_a_person_comes_in_with_what_the_token_says(issuer: Issuer) -> None:
    found = await log_in(provider_of(issuer))
    assert found == Identity(
        issuer=issuer.url,
        subject="248289761001",
        name="ada",
        display="Ada Lovelace",
        email="ada@example.org",
        email_verified=True,
        groups=frozenset({"analysts"}),
    )
    assert issuer.asked == ["/.well-known/openid-configuration", "/authorize", "/token", "/jwks"]


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        *((each, rsa_key("k")) for each in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
        ("ES256", ec_key("k")),
        ("EdDSA", ed_key("k")),
        ("Ed25519", ed_key("k")),
    ],
)
@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
async def test_each_algorithm_with_a_private_key_is_accepted(issuer: Issuer, algorithm: str, key: Any) -> None:
    issuer.keys, issuer.forge = [key], lambda claims: sign(claims, key, algorithm)
    assert (await log_in(provider_of(issuer))).subject == "248289761001"


async def test_a_token_without_a_key_id_is_of_the_only_key(issuer: Issuer) -> None:
    issuer.forge = lambda claims: sign(claims, issuer.keys[0], kid=None)
    assert (await log_in(provider_of(issuer))).name == "ada"
    issuer.keys = [rsa_key("one"), rsa_key("two")]
    with pytest.raises(IssuerAnswerRefused, match="not signed with a key"):
        await log_in(provider_of(issuer))


async def test_a_client_without_a_secret_and_one_that_posts_it_come_in(issuer: Issuer) -> None:
    issuer.discovery = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    assert (await log_in(provider_of(issuer))).name == "ada"
    issuer.secret = None
    assert (await log_in(provider_of(issuer, client_secret=None))).name == "ada"
    issuer.secret = "another"
    with pytest.raises(IssuerAnswerRefused, match="status 401"):
        await log_in(provider_of(issuer))


async def test_an_issuer_may_be_written_without_its_last_slash(issuer: Issuer) -> None:
    issuer.discovery = {"issuer": f"{issuer.url}/"}
    issuer.lie = lambda claims: claims | {"iss": f"{issuer.url}/"}
    login, provider = new_login("sso", "/"), provider_of(issuer)
    answered = await go(await provider.begin(login)) | {"iss": f"{issuer.url}/"}
    assert (await provider.finish(login, answered)).issuer == f"{issuer.url}/"


@pytest.mark.parametrize(
    ("token", "userinfo", "is_verified"),
    [
        ({"email_verified": True}, {"email": "eve@example.org"}, False),
        ({"email_verified": True}, {"email": "eve@example.org", "email_verified": False}, False),
        ({"email_verified": False}, {"email": "eve@example.org", "email_verified": True}, True),
        ({"email": "eve@example.org"}, {"email": "ada@example.org", "email_verified": True}, False),
        ({"email": "eve@example.org"}, {"email": "eve@example.org", "email_verified": True}, True),
        ({"email": "eve@example.org"}, {"email_verified": True}, False),
    ],
)
async def test_an_address_is_verified_by_what_says_it(
    issuer: Issuer, token: Claims, userinfo: Claims, is_verified: bool
) -> None:
    named = ("email", "email_verified", "groups")
    issuer.lie = lambda claims: {name: value for name, value in claims.items() if name not in named} | token
    issuer.userinfo = {"sub": issuer.person["sub"], **userinfo}
    found = await log_in(provider_of(issuer))
    assert (found.email, found.email_verified) == (
        (token | userinfo if "email" not in token else token)["email"],
        is_verified,
    )


async def test_groups_may_be_deep_in_the_token_or_in_userinfo(issuer: Issuer) -> None:
    issuer.person["realm_access"] = {"roles": ["a", "b", 3]}
    assert (await log_in(provider_of(issuer, groups_claim="realm_access.roles"))).groups == {"a", "b"}
    del issuer.person["groups"]
    assert (await log_in(provider_of(issuer))).groups == frozenset()
    issuer.userinfo = {"sub": issuer.person["sub"], "groups": ["c"], "email_verified": False}
    found = await log_in(provider_of(issuer))
    assert (found.groups, found.email_verified) == ({"c"}, True), "the token is signed, and counts first"
    issuer.userinfo = {"sub": "another", "groups": ["admins"]}
    with pytest.raises(IssuerAnswerRefused, match="of somebody else"):
        await log_in(provider_of(issuer))


NOW = int(time.time())
FOREIGN = rsa_key("foreign")


def two_signatures(claims: Claims) -> str:
    """A token in the JSON form, with two signatures, as text."""
    key = rsa_key("one")
    members = [{"protected": {"alg": "RS256", "kid": "one"}}, {"protected": {"alg": "RS256", "kid": "one"}}]
    return json.dumps(jws.serialize_json(members, json.dumps(claims), key, ["RS256"]))  # type: ignore[arg-type]


def hmac_with_the_public_key(claims: Claims) -> str:
    public = rsa_key("one").as_pem(private=False)
    header, payload = encode({"alg": "HS256", "kid": "one"}), encode(claims)
    return f"{header}.{payload}.{encode(hmac.digest(public, f'{header}.{payload}'.encode(), hashlib.sha256))}"


def changed_payload(claims: Claims) -> str:
    header, _, signature = sign(claims, rsa_key("one")).split(".")
    return f"{header}.{encode(claims | {'sub': 'root'})}.{signature}"


def with_its_own_key(claims: Claims) -> str:
    return sign(claims, FOREIGN, kid="one", jwk=FOREIGN.as_dict(private=False))


LIES: dict[str, Callable[[Claims], Claims]] = {
    "another issuer": lambda claims: claims | {"iss": "https://evil.example"},
    "no issuer": lambda claims: {name: value for name, value in claims.items() if name != "iss"},
    "another audience": lambda claims: claims | {"aud": "another"},
    "no audience": lambda claims: claims | {"aud": []},
    "several audiences without a party": lambda claims: claims | {"aud": [CLIENT, "another"]},
    "another party": lambda claims: claims | {"azp": "another"},
    "another party of several": lambda claims: claims | {"aud": [CLIENT, "another"], "azp": "another"},
    "another nonce": lambda claims: claims | {"nonce": "n"},
    "no nonce": lambda claims: {name: value for name, value in claims.items() if name != "nonce"},
    "a nonce that is no text": lambda claims: claims | {"nonce": [claims["nonce"]]},
    "expired": lambda claims: claims | {"exp": NOW - 120},
    "never expires": lambda claims: {name: value for name, value in claims.items() if name != "exp"},
    "expires at a text": lambda claims: claims | {"exp": "9999999999"},
    "issued in the future": lambda claims: claims | {"iat": time.time() + 120},
    "never issued": lambda claims: {name: value for name, value in claims.items() if name != "iat"},
    "not yet valid": lambda claims: claims | {"nbf": time.time() + 120},
    "nobody": lambda claims: claims | {"sub": ""},
    "a number": lambda claims: claims | {"sub": 1},
    "a very long subject": lambda claims: claims | {"sub": "x" * 300},
    "a subject with a line break": lambda claims: claims | {"sub": "ada\n"},
    "too many groups": lambda claims: claims | {"groups": [str(number) for number in range(1_001)]},
    "too large": lambda claims: claims | {"about": "x" * 70_000},
}
FORGERIES: dict[str, Callable[[Claims], str]] = {
    "no signature": lambda claims: f"{encode({'alg': 'none'})}.{encode(claims)}.",
    "HMAC with the public key": hmac_with_the_public_key,
    "HMAC with a key of its own": lambda claims: sign(claims, OctKey.import_key("k" * 32, {"kid": "one"}), "HS256"),
    "a changed payload": changed_payload,
    "no signature under an accepted name": lambda claims: f"{encode({'alg': 'RS256'})}.{encode(claims)}.",
    "an unknown key": lambda claims: sign(claims, FOREIGN),
    "the id of a key that is another's": lambda claims: sign(claims, FOREIGN, kid="one"),
    "a key in the token": with_its_own_key,
    "a key of another type": lambda claims: sign(claims, ec_key("e"), "ES256", kid="one"),
    "two signatures": two_signatures,
    "an unknown extension that counts": lambda claims: sign_raw(
        {"alg": "RS256", "kid": "one", "crit": ["x"], "x": 1}, claims, rsa_key("one")
    ),
    "encrypted": lambda claims: ".".join("abcde"),
    "no token": lambda claims: "token",
    "claims that are no object": lambda claims: sign_raw({"alg": "RS256", "kid": "one"}, [], rsa_key("one")),
    "a key id that is no text": lambda claims: sign_raw({"alg": "RS256", "kid": 1}, claims, rsa_key("one")),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
async def test_a_token_that_says_something_wrong_is_refused(issuer: Issuer, lie: Callable[[Claims], Claims]) -> None:
    issuer.lie = lie
    with pytest.raises(IssuerAnswerRefused):
        await log_in(provider_of(issuer))


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
@pytest.mark.filterwarnings("ignore:This key")
async def test_a_forged_token_is_refused(issuer: Issuer, forge: Callable[[Claims], str]) -> None:
    issuer.forge = forge
    with pytest.raises(IssuerAnswerRefused):
        await log_in(provider_of(issuer))


async def test_a_header_that_is_not_known_is_left_alone(issuer: Issuer) -> None:
    issuer.forge = lambda claims: sign_raw({"alg": "RS256", "kid": "one", "pi.atm": "x"}, claims, rsa_key("one"))
    assert (await log_in(provider_of(issuer))).name == "ada"


@pytest.mark.filterwarnings("ignore:Key size")
async def test_a_short_key_signs_nothing(issuer: Issuer) -> None:
    for size in (1_024, 2_048):
        key = rsa_key(f"of {size}", size)
        issuer.answers["/jwks"] = lambda handler, key=key: answer(handler, {"keys": [key.as_dict(private=False)]})
        issuer.forge = lambda claims, key=key: sign(claims, key)
        if size < 2_048:
            with pytest.raises(IssuerAnswerRefused, match="not signed with a key"):
                await log_in(provider_of(issuer))
    assert (await log_in(provider_of(issuer))).name == "ada"


async def test_a_token_within_a_minute_of_this_clock_is_taken(issuer: Issuer) -> None:
    issuer.lie = lambda claims: claims | {"iat": time.time() + 50, "exp": time.time() - 50}
    assert (await log_in(provider_of(issuer))).name == "ada"


@pytest.mark.parametrize(
    "keys",
    [
        [{"kty": "oct", "k": encode(b"k" * 32), "kid": "one"}],
        [rsa_key("one").as_dict(private=False) | {"use": "enc"}],
        [rsa_key("one").as_dict(private=False) | {"alg": "PS256"}],
        [{"kty": "RSA", "kid": "one", "n": "!", "e": "AQAB"}],
        [rsa_key("one").as_dict(private=False)] * 101,
        "keys",
        None,
        [],
    ],
)
async def test_keys_that_are_none_sign_nothing(issuer: Issuer, keys: Any) -> None:
    issuer.answers["/jwks"] = lambda handler: answer(handler, {"keys": keys})
    with pytest.raises(IssuerAnswerRefused):
        await log_in(provider_of(issuer))


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/jwks"])
@pytest.mark.parametrize(
    "lie",
    [
        answer_without_end,
        redirect_elsewhere,
        lambda handler: answer(handler, b"{"),
        lambda handler: answer(handler, b"[" * 100_000),
        lambda handler: answer(handler, []),
        lambda handler: answer(handler, {}),
        lambda handler: answer(handler, {}, 500),
    ],
    ids=["without end", "elsewhere", "cut", "deep", "a list", "empty", "an error"],
)
async def test_each_answer_has_a_bound_and_a_form(issuer: Issuer, path: str, lie: Any) -> None:
    issuer.answers[path] = lie
    with pytest.raises(IssuerAnswerRefused):
        await log_in(provider_of(issuer))


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"authorization_endpoint": None},
        {"authorization_endpoint": "http://evil.example/authorize"},
        {"token_endpoint": "http://evil.example/token"},
        {"token_endpoint": "file:///etc/passwd"},
        {"token_endpoint": 1},
        {"jwks_uri": "https://"},
        {"jwks_uri": "http://[::1"},
        {"end_session_endpoint": "javascript:alert(1)"},
    ],
)
async def test_discovery_leads_to_nobody_else(issuer: Issuer, discovery: dict[str, Any]) -> None:
    issuer.discovery = discovery
    with pytest.raises(IssuerAnswerRefused):
        await provider_of(issuer).begin(new_login("sso", "/"))


async def test_an_issuer_that_is_not_there_is_asked_again_after_a_moment(issuer: Issuer) -> None:
    at = 100.0
    provider = provider_of(issuer, clock=lambda: at, issuer="http://127.0.0.1:9")
    with pytest.raises(IssuerUnreachable):
        await provider.begin(new_login("sso", "/"))
    issuer.answers["/.well-known/openid-configuration"] = lambda handler: answer(handler, {}, 503)
    provider = provider_of(issuer, clock=lambda: at)
    for _ in range(3):
        with pytest.raises(IssuerAnswerRefused):
            await provider.begin(new_login("sso", "/"))
    assert len(issuer.asked) == 1
    issuer.answers.clear()
    at = 106.0
    assert (await log_in(provider)).name == "ada"


async def test_a_new_key_is_fetched_at_most_once_a_minute(issuer: Issuer) -> None:
    at = 1_000.0
    provider = provider_of(issuer, clock=lambda: at)
    await log_in(provider)
    issuer.keys = [rsa_key("two")]
    for _ in range(3):
        with pytest.raises(IssuerAnswerRefused, match="not signed with a key"):
            await log_in(provider)
    assert issuer.asked.count("/jwks") == 1
    at += 61
    assert (await log_in(provider)).name == "ada"
    assert issuer.asked.count("/jwks") == 2
    issuer.keys = [rsa_key("one")]
    at += 3_601
    with pytest.raises(IssuerAnswerRefused):  # a key that the issuer took back is forgotten, too
        issuer.forge = lambda claims: sign(claims, rsa_key("two"))
        await log_in(provider)


async def test_an_answer_counts_once_and_for_its_login_alone(issuer: Issuer) -> None:
    provider, login, other = provider_of(issuer), new_login("sso", "/"), new_login("sso", "/")
    answered = await go(await provider.begin(login))
    for wrong in ({}, answered | {"state": other.state}, {"code": answered["code"]}):
        with pytest.raises(LoginExpired):
            await provider.finish(login, wrong)
    with pytest.raises(LoginExpired):
        await provider.finish(other, answered)
    with pytest.raises(LoginExpired):
        await provider.finish(replace(login, issuer="another"), answered)
    with pytest.raises(IssuerAnswerRefused, match="of another issuer"):
        await provider.finish(login, answered | {"iss": "https://evil.example"})
    assert "/token" not in issuer.asked
    assert (await provider.finish(login, answered)).name == "ada"
    with pytest.raises(IssuerAnswerRefused, match="status 400"):
        await provider.finish(login, answered)


async def test_a_code_of_another_login_is_of_no_use(issuer: Issuer) -> None:
    """PKCE: who catches a code has not the verifier."""
    provider, login, mine = provider_of(issuer), new_login("sso", "/"), new_login("sso", "/")
    caught = (await go(await provider.begin(login)))["code"]
    answered = await go(await provider.begin(mine))
    with pytest.raises(IssuerAnswerRefused, match="status 400"):
        await provider.finish(mine, answered | {"code": caught})


async def test_an_issuer_that_names_itself_must(issuer: Issuer) -> None:
    issuer.discovery = {"authorization_response_iss_parameter_supported": True}
    provider, login = provider_of(issuer), new_login("sso", "/")
    answered = await go(await provider.begin(login))
    with pytest.raises(IssuerAnswerRefused):
        await provider.finish(login, {name: value for name, value in answered.items() if name != "iss"})


async def test_a_person_who_is_not_let_in_is_no_failure(issuer: Issuer) -> None:
    issuer.denies = True
    with pytest.raises(LoginDenied):
        await log_in(provider_of(issuer))


async def test_the_login_ends_at_the_issuer_where_it_says_so(issuer: Issuer) -> None:
    found = await provider_of(issuer).find_logout("https://longthread.example/login")
    assert found is not None and found.startswith(f"{issuer.url}/logout?client_id=longthread&post_logout_redirect_uri=")
    issuer.discovery = {"end_session_endpoint": None}
    assert await provider_of(issuer).find_logout("https://longthread.example/login") is None


async def test_no_error_tells_the_secret(issuer: Issuer) -> None:
    issuer.answers["/token"] = lambda handler: answer(handler, {"error": SECRET}, 400)
    with pytest.raises(LongthreadError) as error:
        await log_in(provider_of(issuer))
    assert SECRET not in str(error.value) + repr(provider_of(issuer).of)


@pytest.fixture
async def both(store: Driver, store_address: str) -> AsyncIterator[tuple[Driver, Driver]]:
    """Two servers of one store."""
    async with open_store(store_address) as other:
        yield store, other


async def test_what_a_browser_carries_is_sealed_for_all_servers(both: tuple[Driver, Driver]) -> None:
    settings = Settings.of()
    keys = [await login_key(store, settings) for store in both]
    assert keys[0] == keys[1] == await login_key(both[0], settings)
    login = new_login("sso", "/c/1")
    sealed = seal_login(keys[0], login)
    assert unseal_login(keys[1], sealed) == login
    assert login.state not in sealed and login.verifier not in sealed
    own = await login_key(both[0], Settings.of(secret_key="k" * 32))
    assert own not in keys and unseal_login(own, sealed) is None
    for wrong in ("", "x", sealed[:-2], "A" + sealed[1:], sealed + "AAAA", "é", "A" * 5_000):
        assert unseal_login(keys[0], wrong) is None


def test_a_login_is_of_use_for_ten_minutes() -> None:
    key, login = b"k" * 32, new_login("sso", "/")
    assert 590 < login.until - time.time() <= 600
    old = LoginState(login.issuer, login.state, login.nonce, login.verifier, "/", time.time() - 1)
    assert unseal_login(key, seal_login(key, old)) is None


@pytest.mark.parametrize(
    "path", ["//evil.example", "/\\evil.example", "https://evil.example", "", "x", "/\n", "/" * 600]
)
def test_a_login_leads_to_this_server_alone(path: str) -> None:
    assert own_path(path) == "/"
    assert own_path("/c/1?x=2") == "/c/1?x=2"

"""ID tokens of OpenID Connect: which keys may sign them, and what they must say. Pure: nothing is fetched here."""

from __future__ import annotations

import hmac
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from joserfc.jwk import Key

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Signatures that are accepted: with a private key that the issuer alone has. Neither `none` nor HMAC is among them."""
LEEWAY = 60
"""Seconds by which the issuer's clock may differ."""
LONGEST_TOKEN = 65_536
_MOST_KEYS = 100
_SHORTEST_RSA = 2_048
_KEY_TYPES = ("RSA", "EC", "OKP")


class TokenRefused(Exception):
    """A token or a set of keys is not what it must be. The text says what is wrong, and repeats nothing of it."""


@dataclass(frozen=True, slots=True)
class ExpectedToken:
    """What an ID token must say: who issued it, for which client, and for which login."""

    issuer: str
    client_id: str
    nonce: str


def read_keys(document: Mapping[str, Any]) -> dict[str, list[Key]]:
    """Return the keys of a JWKS by their ids, "" for those without one. Keys of other types and uses are left out.
    Raises TokenRefused: the document is no set of keys."""
    from joserfc.errors import JoseError, SecurityWarning
    from joserfc.jwk import JWKRegistry

    given = document.get("keys")
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) > _MOST_KEYS:
        raise TokenRefused("Its keys are no list, or too many.")
    found: dict[str, list[Key]] = {}
    for each in given:
        if not isinstance(each, dict) or each.get("kty") not in _KEY_TYPES or each.get("use", "sig") != "sig":
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SecurityWarning)  # of a short key, which is left out below
                key = JWKRegistry.import_key(each)
        except (JoseError, ValueError, TypeError, LookupError):
            continue
        if key.key_type != "RSA" or key.get_op_key("verify").key_size >= _SHORTEST_RSA:  # type: ignore[union-attr]
            kid = each.get("kid")
            found.setdefault(kid if isinstance(kid, str) else "", []).append(key)
    return found


def read_key_id(token: str) -> str:
    """Return the id of the key that a token says it is signed with; "" if it says none. Raises TokenRefused: it is no
    signed token, or its algorithm is not accepted."""
    from joserfc.errors import JoseError
    from joserfc.jws import extract_compact

    if len(token) > LONGEST_TOKEN or not token.isascii() or token.count(".") != 2:
        raise TokenRefused("The ID token is no signed token, or too long.")
    try:
        header = extract_compact(token.encode()).headers()
    except (JoseError, ValueError, TypeError) as error:
        raise TokenRefused("The ID token cannot be read.") from error
    if header.get("alg") not in ALGORITHMS:
        raise TokenRefused("The ID token is signed with an algorithm that is not accepted.")
    kid = header.get("kid", "")
    if not isinstance(kid, str):
        raise TokenRefused("The ID token names no key.")
    return kid


def pick_keys(keys: Mapping[str, Sequence[Key]], key_id: str) -> Sequence[Key]:
    """Return the keys of an id; for a token that names none, the only key there is."""
    if key_id:
        return keys.get(key_id, ())
    every = [key for each in keys.values() for key in each]
    return every if len(every) == 1 else ()


def validate_token(token: str, keys: Sequence[Key], expected: ExpectedToken) -> Mapping[str, Any]:
    """Return the claims of an ID token that one of the keys signed. Raises TokenRefused."""
    from joserfc.errors import JoseError
    from joserfc.jwt import JWTClaimsRegistry

    claims = _verify(token, keys)
    registry = JWTClaimsRegistry(
        leeway=LEEWAY,
        iss={"essential": True, "value": expected.issuer},
        aud={"essential": True, "value": expected.client_id},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
    )
    try:
        registry.validate(dict(claims))
    except JoseError as error:
        raise TokenRefused(f"The ID token is not for this login: {error.error}.") from error
    audience, party = claims["aud"], claims.get("azp")
    names_party = party is not None or (isinstance(audience, list) and len(audience) > 1)
    if names_party and party != expected.client_id:
        raise TokenRefused("The ID token was made for another client.")
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), expected.nonce.encode()):
        raise TokenRefused("The ID token is of another login.")
    return claims


def _verify(token: str, keys: Sequence[Key]) -> Mapping[str, Any]:
    from joserfc import jwt
    from joserfc.errors import JoseError, SecurityWarning
    from joserfc.jws import JWSRegistry

    # Headers that are not known are left alone, but for those that `crit` names.
    registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    for key in keys:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SecurityWarning)  # of the name EdDSA, which issuers still use
                return jwt.decode(token, key, registry=registry).claims
        except (JoseError, ValueError, TypeError):
            continue
    raise TokenRefused("The ID token is not signed with a key of the issuer.")

"""A small issuer of OpenID Connect on a real socket: as strict as one must be, and made to lie as a test wants."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jwt
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey

CLIENT, SECRET = "longthread", "s3cret/of the client"
Claims = dict[str, Any]


@cache
def rsa_key(kid: str, size: int = 2048) -> RSAKey:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)  # of a short key, which a test wants
        return RSAKey.generate_key(size, {"kid": kid, "use": "sig"})


@cache
def ec_key(kid: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": kid, "use": "sig"})


@cache
def ed_key(kid: str) -> OKPKey:
    return OKPKey.generate_key("Ed25519", {"kid": kid, "use": "sig"})


def sign(claims: Claims, key: Key, algorithm: str = "RS256", **header: Any) -> str:
    """A token that a key signs."""
    given = {"alg": algorithm, "kid": key.kid, **header}
    return jwt.encode({name: value for name, value in given.items() if value is not None}, claims, key, [algorithm])


def sign_raw(header: Claims, claims: Any, key: RSAKey) -> str:
    """A token with any header and payload, whose signature is right."""
    signed = f"{encode(header)}.{encode(claims)}"
    private = key.get_op_key("sign")
    assert isinstance(private, RSAPrivateKey)
    return f"{signed}.{encode(private.sign(signed.encode(), PKCS1v15(), SHA256()))}"


def encode(value: Any) -> str:
    """A part of a token, as it is written."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class Issuer:
    """An issuer and its one client. Who logs in is `person`; `lie` may change the claims of the token, `forge` the
    token, `discovery` what is found at the issuer, `answers` whole answers by their path."""

    def __init__(self) -> None:
        self.person: Claims = {
            "sub": "248289761001",
            "preferred_username": "ada",
            "name": "Ada Lovelace",
            "email": "ada@example.org",
            "email_verified": True,
            "groups": ["analysts"],
        }
        self.keys: list[Key] = [rsa_key("one")]
        self.lie: Callable[[Claims], Claims] = lambda claims: claims
        self.forge: Callable[[Claims], str] = lambda claims: sign(claims, self.keys[0])
        self.discovery: dict[str, Any] = {}
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.userinfo: Claims | None = None
        self.asked: list[str] = []
        self.secret: str | None = SECRET
        self.denies = False
        self._codes: dict[str, dict[str, str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator[Issuer]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def describe(self) -> dict[str, Any]:
        found = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "end_session_endpoint": f"{self.url}/logout",
            "id_token_signing_alg_values_supported": ["RS256"],
        }
        if self.userinfo is not None:
            found["userinfo_endpoint"] = f"{self.url}/userinfo"
        return {name: value for name, value in (found | self.discovery).items() if value is not None}

    def authorize(self, query: dict[str, str]) -> str:
        """Where a browser goes back to after the person has logged in."""
        assert query["response_type"] == "code" and query["code_challenge_method"] == "S256"
        assert query["client_id"] == CLIENT and "openid" in query["scope"].split()
        if self.denies:
            return f"{query['redirect_uri']}?{urlencode({'error': 'access_denied', 'state': query['state']})}"
        code = secrets.token_urlsafe(16)
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state'], 'iss': self.url})}"

    def exchange(self, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        """What the token endpoint answers. A code works once, for its client and its verifier."""
        query = self._codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if query is None or query["redirect_uri"] != form["redirect_uri"] or query["code_challenge"] != encode(digest):
            return 400, {"error": "invalid_grant"}
        if not self._knows(form, authorization):
            return 401, {"error": "invalid_client"}
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": query["nonce"], **self.person}
        token = self.forge(self.lie(claims))
        return 200, {"access_token": "at", "token_type": "Bearer", "expires_in": 300, "id_token": token}

    def _knows(self, form: dict[str, str], authorization: str) -> bool:
        if self.secret is None:
            return form.get("client_id") == CLIENT and not authorization
        if authorization:
            given = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
            return (unquote(given[0]), unquote(given[2])) == (CLIENT, self.secret)
        return (form.get("client_id"), form.get("client_secret")) == (CLIENT, self.secret)

    def _handler(issuer) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: Any) -> None: ...

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                issuer.asked.append(parts.path)
                if parts.path in issuer.answers:
                    issuer.answers[parts.path](self)
                elif parts.path == "/.well-known/openid-configuration":
                    answer(self, issuer.describe())
                elif parts.path == "/jwks":
                    answer(self, {"keys": [key.as_dict(private=False) for key in issuer.keys]})
                elif parts.path == "/userinfo" and self.headers["Authorization"] == "Bearer at":
                    answer(self, issuer.userinfo)
                elif parts.path == "/authorize":
                    self.send_response(302)
                    self.send_header("Location", issuer.authorize(dict(parse_qsl(parts.query))))
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                else:
                    answer(self, {}, 404)

            def do_POST(self) -> None:
                issuer.asked.append(self.path)
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                if self.path in issuer.answers:
                    issuer.answers[self.path](self)
                    return
                form = {name: values[0] for name, values in parse_qs(body).items()}
                status, found = issuer.exchange(form, self.headers["Authorization"] or "")
                answer(self, found, status)

        return Handler


def answer(handler: BaseHTTPRequestHandler, found: Any, status: int = 200) -> None:
    """Answer with JSON, or with these bytes."""
    content = found if isinstance(found, bytes) else json.dumps(found).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def answer_without_end(handler: BaseHTTPRequestHandler) -> None:
    """Begin an answer, and go on with it until the client is gone."""
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b'{"keys": [' + b" " * 65_536)
    except OSError:
        handler.close_connection = True


def redirect_elsewhere(handler: BaseHTTPRequestHandler) -> None:
    """Send the client to another place."""
    handler.send_response(302)
    handler.send_header("Location", "http://localhost:1/")
    handler.send_header("Content-Length", "0")
    handler.end_headers()

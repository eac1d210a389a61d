"""API tools against a server on a socket: what is sent, what comes back, and where nothing is sent at all."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import ssl
import subprocess
import time
import zlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
from tests.tools.api.conftest import Server, answer

from longthread.errors import ToolInvalid
from longthread.tools.api_exchange import Network
from longthread.tools.api_request import by_the_system
from longthread.tools.secrets import Secrets
from longthread.tools.tool import Observation
from longthread.tools.types.api import build, check

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Search query"},
        "limit": {"type": "integer", "default": 10},
        "tags": {"type": "array", "items": {"type": "string"}},
        "lang": {"type": "string"},
        "flag": {"type": "boolean"},
    },
    "required": ["query"],
}
PRINTED: dict[str, Any] = {
    "type": "api",
    "endpoint": "https://api.example.com/search",
    "method": "POST",
    "headers": {"Authorization": "Bearer ${API_KEY}"},
    "body_template": {"q": "{{query}}", "num": "{{limit}}"},
}
KEY = "sk-live/0123+456=789"


@dataclass(frozen=True)
class Definition:
    implementation: dict[str, Any]
    parameters: dict[str, Any] = field(default_factory=lambda: PARAMETERS)
    name: str = "search_web"
    description: str = "Search the web for information"


async def ask(
    server: Server | str, implementation: dict[str, Any], network: Network | None = None, **arguments: Any
) -> Observation:
    url = server if isinstance(server, str) else server.url
    endpoint = implementation.get("endpoint", "/search").replace("https://api.example.com", url)
    endpoint = endpoint if "://" in endpoint else url + endpoint
    made = {"allow_private": True} | implementation | {"endpoint": endpoint}
    tool = build(Definition(made), secrets=Secrets({"API_KEY": KEY}), network=network)
    return await tool.call({"query": "AI agents"} | arguments)


def problem(observation: Observation, kind: str) -> str:
    assert not observation["ok"], observation
    assert observation["error"]["type"] == kind, observation
    return str(observation["error"]["message"])


def named(**hosts: str) -> Network:
    """A resolver that knows some names."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        known = {name.replace("_", "."): address for name, address in hosts.items()}
        if host not in known:
            raise OSError(f"unknown {host}")
        return [known[host]]

    return Network(resolve=resolve)


async def test_the_documents_tool_runs_as_it_is_printed(server: Server) -> None:
    check(PRINTED, PARAMETERS)
    server.says(answer(json.dumps({"results": ["one", "二"]})))
    found = await ask(server, PRINTED, limit=3)
    assert found["data"]["body"] == {"results": ["one", "二"]}
    assert found["data"]["status"] == 200
    (request,) = server.came
    assert (request.method, request.target) == ("POST", "/search")
    assert request.json == {"q": "AI agents", "num": 3}
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["host"] == f"127.0.0.1:{server.port}"


async def test_values_keep_their_types_and_their_places(server: Server) -> None:
    body = {
        "q": "about {{query}}!", "n": "{{limit}}", "t": "{{tags}}", "f": ["{{flag}}", "{{lang}}"], "l": "{{lang}}",
        "fixed": [1, None, True, "x"], "k": "${API_KEY}",
    }  # fmt: skip
    await ask(server, {"body_template": body}, query='"}, {"admin": "1', tags=["a", "b"], flag=False)
    assert server.came[0].json == {
        "q": 'about "}, {"admin": "1!', "n": 10, "t": ["a", "b"], "f": [False, None], "fixed": [1, None, True, "x"],
        "k": KEY,
    }  # fmt: skip


async def test_a_body_may_be_written_as_text(server: Server) -> None:
    await ask(server, {"body_template": '{"q": "{{query}}", "n": "{{limit}}"}'}, query='x"\\\n')
    assert server.came[0].json == {"q": 'x"\\\n', "n": 10}


async def test_a_form_is_encoded(server: Server) -> None:
    await ask(server, {"body_template": {"q": "{{query}}", "n": "{{limit}}"}, "body_format": "form"}, query="a&n=9 b")
    assert server.came[0].body == b"q=a%26n%3D9+b&n=10"


@pytest.mark.parametrize(
    ("query", "target"),
    [
        ("AI agents", "/v1/AI%20agents/x?q=AI%20agents&n=10"),
        ("a/b?c#d&e=f", "/v1/a%2Fb%3Fc%23d%26e%3Df/x?q=a%2Fb%3Fc%23d%26e%3Df&n=10"),
        ("%2e%2e%2f", "/v1/%252e%252e%252f/x?q=%252e%252e%252f&n=10"),
        ("中文", "/v1/%E4%B8%AD%E6%96%87/x?q=%E4%B8%AD%E6%96%87&n=10"),
        ("\r\nX-Admin: 1", "/v1/%0D%0AX-Admin%3A%201/x?q=%0D%0AX-Admin%3A%201&n=10"),
        ("{{limit}}${API_KEY}", "/v1/%7B%7Blimit%7D%7D%24%7BAPI_KEY%7D/x?q=%7B%7Blimit%7D%7D%24%7BAPI_KEY%7D&n=10"),
        ("@evil.example", "/v1/%40evil.example/x?q=%40evil.example&n=10"),
    ],
)
async def test_values_in_a_url_are_data(server: Server, query: str, target: str) -> None:
    await ask(server, {"endpoint": "/v1/{{query}}/x?q={{query}}&n={{limit}}&l={{lang}}"}, query=query)
    assert server.came[0].target == target
    assert server.came[0].method == "GET"


@pytest.mark.parametrize("query", ["", ".", "..", "../admin", "a/../b", "..\\x"])
async def test_a_value_does_not_lead_out_of_its_place_in_a_path(server: Server, query: str) -> None:
    said = problem(await ask(server, {"endpoint": "/v1/{{query}}/x"}, query=query), "arguments_invalid")
    assert said.startswith("The call of search_web was not made. `query` is part of a path")
    assert server.came == []


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nb", "é", "\0", "\x7f"])
async def test_a_value_does_not_make_a_header(server: Server, value: str) -> None:
    problem(await ask(server, {"headers": {"X-Lang": "{{lang}}"}}, lang=value), "arguments_invalid")
    assert server.came == []


async def test_headers_take_values_and_are_left_out_without_them(server: Server) -> None:
    implementation = {"headers": {"X-Lang": "is {{lang}}", "X-N": "{{limit}}", "Accept": "text/plain"}}
    await ask(server, implementation, lang="zh")
    await ask(server, implementation)
    assert server.came[0].headers["x-lang"] == "is zh"
    assert "x-lang" not in server.came[1].headers
    assert (server.came[0].headers["x-n"], server.came[0].headers["accept"]) == ("10", "text/plain")


async def test_secrets_in_a_url_are_encoded(server: Server) -> None:
    await ask(server, {"endpoint": "/x?key=${API_KEY}&q={{query}}"}, query="${API_KEY}")
    assert server.came[0].target == "/x?key=sk-live%2F0123%2B456%3D789&q=%24%7BAPI_KEY%7D"


@pytest.mark.parametrize("status", [200, 400, 500])
async def test_what_comes_back_holds_no_secret(server: Server, status: int, caplog: pytest.LogCaptureFixture) -> None:
    def echo(request: Any) -> bytes:
        body = {"headers": request.headers, "target": request.target, "url": f"key={KEY}", KEY: [KEY, 5]}
        return answer(json.dumps(body), status, x_echo=request.headers["authorization"], x_url=request.target)

    server.answering = echo
    implementation = PRINTED | {"endpoint": "/x?key=${API_KEY}", "retry_safe": False}
    with caplog.at_level(logging.DEBUG):
        found = await ask(server, implementation)
    told = f"{found} {caplog.text}"
    assert found["ok"] is (status == 200)
    assert "***" in told
    for form in (KEY, "sk-live%2F0123", "0123+456", "0123%2B456"):
        assert form not in told


async def test_a_missing_secret_is_named_and_nothing_is_sent(server: Server) -> None:
    found = await ask(server, {"headers": {"Authorization": "${OTHER}"}})
    assert "LONGTHREAD_SECRET_OTHER" in problem(found, "secret_unusable")
    assert server.came == []


async def test_secrets_come_from_the_settings(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTHREAD_SECRET_API_KEY", "from-environment")
    monkeypatch.setenv("API_KEY", "not-this-one")
    tool = build(Definition(PRINTED | {"endpoint": server.url, "allow_private": True}))
    assert (await tool.call({"query": "x"}))["ok"]
    assert server.came[0].headers["authorization"] == "Bearer from-environment"


# Where nothing is sent.

LOOPBACK = ["127.0.0.1", "127.1", "0x7f.1", "0x7f000001", "2130706433", "0177.0.0.1", "017700000001", "localhost",
            "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0", "0.0.0.0", "[::]", "127.0.0.1."]  # fmt: skip
ELSEWHERE = ["169.254.169.254", "2852039166", "0xa9fea9fe", "[fe80::1]", "[fd00:ec2::254]", "10.0.0.1", "192.168.0.1",
             "172.16.0.1", "100.64.0.1", "224.0.0.1", "[ff02::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
             "[64:ff9b::a9fe:a9fe]", "168.63.129.16", "255.255.255.255"]  # fmt: skip


PUBLIC = "93.184.216.34"


class Rerouted(httpx.AsyncHTTPTransport):
    """Makes connections to a public address end at the test's server, and writes down where they were to go."""

    port = 0
    went: ClassVar[list[str]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.went.append(request.url.host)
        if request.url.host != PUBLIC:
            raise httpx.ConnectError("nothing is there")
        request.url = request.url.copy_with(host="127.0.0.1", port=self.port)
        return await super().handle_async_request(request)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """How often a request is sent again is tested, not how long it is waited between."""
    monkeypatch.setattr("longthread.tools.types.api._PAUSE", 0.005)


@pytest.fixture
def internet(server: Server) -> Network:
    """`public.example` is the test's server, by a public address; other names are what the system says."""
    Rerouted.port, Rerouted.went = server.port, []

    async def resolve(host: str, port: int) -> Sequence[str]:
        return [PUBLIC] if host == "public.example" else await by_the_system(host, port)

    return Network(resolve=resolve, transport=Rerouted)


@pytest.mark.parametrize("host", [*LOOPBACK, *ELSEWHERE])
async def test_no_spelling_of_a_private_address_is_asked(server: Server, host: str) -> None:
    made = {"endpoint": f"http://{host}:{server.port}/x", "allow_private": False}
    try:
        found = await ask("x", made)
    except ToolInvalid:  # it is no host that a URL may have
        pass
    else:
        assert found["error"]["type"] in {"api_refused", "api_failed"}
        assert "address" in found["error"]["message"]
    assert server.connections == 0


@pytest.mark.parametrize("host", [*LOOPBACK, *ELSEWHERE])
async def test_no_redirect_leads_there(server: Server, internet: Network, host: str) -> None:
    """Not even to a host that the tool lists."""
    for status in (301, 302, 303, 307, 308):
        server.says(answer("", status, location=f"http://{host}/x"))
        listed = [] if host == "0177.0.0.1" else [host.rstrip(".")]
        made = {"endpoint": "http://public.example/x", "hosts": listed, "allow_private": False}
        found = await ask("x", made, internet)
        assert found["error"]["type"] in {"api_refused", "api_failed"}, found
    assert Rerouted.went == [PUBLIC] * 5
    assert len(server.came) == 5


@pytest.mark.parametrize(
    "target",
    [
        "http://evil.example/x", "//evil.example/x", "ftp://127.0.0.1/x", "file:///etc/passwd", "gopher://127.0.0.1/",
        "http://user:pass@127.0.0.1/", "http://127.0.0.1:1/x", "http://[::1", "http://127.0.0.1:99999/", "data:,x",
        "javascript:1", "http://127.0.0.1.evil.example/", "http://127.0.0.1@evil.example/",
        "http://evil.example\\@127.0.0.1/", "http://169.254.169.254/latest/meta-data/",
    ],
)  # fmt: skip
async def test_a_redirect_is_checked_as_the_first_request_was(server: Server, target: str) -> None:
    server.says(answer("", 302, location=target))
    found = await ask(server, {})
    assert found["error"]["type"] == "api_refused"
    assert len(server.came) == 1


async def test_metadata_is_never_reached_by_a_redirect(server: Server) -> None:
    server.says(answer("", 302, location="http://169.254.169.254/latest/meta-data/"))
    found = await ask(server, {"hosts": ["169.254.169.254"]})
    assert "169.254.169.254" in problem(found, "api_refused")


async def test_a_name_is_resolved_once_and_the_connection_goes_to_what_was_checked(internet: Network) -> None:
    """DNS rebinding: the name stands for a public address, and for this machine when it is asked again."""
    asked: list[str] = []

    async def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return [PUBLIC] if len(asked) == 1 else ["127.0.0.1"]

    made = {"endpoint": "http://rebound.example/x", "allow_private": False}
    assert (await ask("x", made, replace(internet, resolve=rebinding)))["ok"]
    assert (asked, Rerouted.went) == (["rebound.example"], [PUBLIC])
    found = await ask("x", made, replace(internet, resolve=rebinding))
    assert "127.0.0.1" in problem(found, "api_refused")
    assert Rerouted.went == [PUBLIC]


async def test_a_name_that_turns_private_is_refused_at_the_next_hop(server: Server) -> None:
    """The first answer comes from an allowed private server, the redirect's name stands for metadata by then."""
    addresses = ["127.0.0.1", "169.254.169.254"]

    async def turning(host: str, port: int) -> Sequence[str]:
        return [addresses.pop(0)]

    server.says(answer("", 302, location="/again"))
    found = await ask(f"http://turning.example:{server.port}", {}, Network(resolve=turning))
    assert "169.254.169.254" in problem(found, "api_refused")
    assert [request.target for request in server.came] == ["/search"]


async def test_a_public_name_of_a_private_address_is_refused(server: Server) -> None:
    found = await ask(
        f"http://intranet.example:{server.port}", {"allow_private": False}, named(intranet_example="10.0.0.5")
    )
    assert "10.0.0.5" in problem(found, "api_refused")


async def test_the_host_is_told_by_its_name(server: Server) -> None:
    found = await ask(f"http://API.Example:{server.port}", {}, named(api_example="127.0.0.1"))
    assert found["ok"]
    assert server.came[0].headers["host"] == f"api.example:{server.port}"


async def test_the_environments_proxy_is_not_used(
    server: Server, other: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, other.url)
    assert (await ask(server, {}))["ok"]
    assert (len(server.came), other.connections) == (1, 0)


# Redirects that are followed.


async def test_a_redirect_of_the_same_host_keeps_what_it_had(server: Server) -> None:
    server.says(answer("", 307, location="/there"), answer('{"a": 1}'))
    found = await ask(server, PRINTED)
    assert found["data"]["body"] == {"a": 1}
    assert [one.target for one in server.came] == ["/search", "/there"]
    assert server.came[1].json == {"q": "AI agents", "num": 10}
    assert server.came[1].headers["authorization"] == f"Bearer {KEY}"


async def test_another_host_is_told_no_secret(server: Server, other: Server) -> None:
    server.says(answer("", 302, location=f"{other.url}/there"))
    implementation = PRINTED | {"hosts": [f"127.0.0.1:{other.port}"]}
    implementation["headers"] = {"Authorization": "Bearer ${API_KEY}", "X-Key": "${API_KEY}", "X-Plain": "1"}
    assert (await ask(server, implementation))["ok"]
    (request,) = other.came
    assert (request.method, request.body) == ("GET", b"")
    assert KEY not in str(request)
    assert request.headers["x-plain"] == "1"


async def test_a_secret_in_a_body_is_not_redirected(server: Server, other: Server) -> None:
    server.says(answer("", 307, location=f"{other.url}/there"))
    implementation = {"body_template": {"key": "${API_KEY}"}, "hosts": [f"127.0.0.1:{other.port}"]}
    assert "secret" in problem(await ask(server, implementation), "api_refused")
    assert other.connections == 0


async def test_redirects_end(server: Server) -> None:
    server.says(answer("", 302, location="/search"))
    assert "more than 5 times" in problem(await ask(server, {}), "api_failed")
    assert len(server.came) == 6


async def test_no_cookie_is_kept(server: Server) -> None:
    server.says(answer("", 302, location="/there", set_cookie="a=1; Path=/"), answer(set_cookie="b=2"))
    await ask(server, {})
    await ask(server, {})
    assert all("cookie" not in request.headers for request in server.came)


# What comes back.


async def test_bytes_are_capped(server: Server) -> None:
    server.says(answer("x" * 500_000, content_type="text/plain"))
    found = await ask(server, {"max_bytes": 1000})
    assert found["data"]["body"] == "x" * 1000
    assert "longer" in found["data"]["notes"][0]


async def test_what_is_shown_is_capped_too(server: Server) -> None:
    server.says(answer(json.dumps(["x" * 100] * 5000)))
    found = await ask(server, {})
    assert len(found["data"]["body"]) == 64_000
    assert found["data"]["notes"]


@pytest.mark.parametrize("start", [63_990, 127_995, 128_000])
async def test_a_secret_where_an_answer_is_cut_is_not_shown_in_part(server: Server, start: int) -> None:
    server.says(answer("x" * start + KEY * 10_000, content_type="text/plain"))
    found = await ask(server, {"headers": {"A": "${API_KEY}"}})
    assert len(found["data"]["body"]) <= 64_000
    assert "sk-" not in found["data"]["body"]
    server.says(answer("x" * 990 + KEY, content_type="text/plain"))
    found = await ask(server, {"headers": {"A": "${API_KEY}"}, "max_bytes": 1000})
    assert found["data"]["body"] == "x" * 990 + "***"


async def test_an_endless_answer_is_capped(server: Server) -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 10_000)
                await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.close()

    listening = await asyncio.start_server(endless, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        found = await ask(f"http://127.0.0.1:{port}", {"max_bytes": 50_000})
    assert len(found["data"]["body"]) == 50_000


@pytest.mark.parametrize("packed", [gzip.compress, zlib.compress, lambda data: zlib.compress(data)[2:-4]])
async def test_packed_answers_are_capped_by_what_they_unpack_to(server: Server, packed: Any) -> None:
    bomb = packed(b"x" * 200_000_000)
    assert len(bomb) < 1_000_000
    server.says(answer(bomb, content_type="text/plain", content_encoding="gzip"))
    found = await ask(server, {"max_bytes": 10_000})
    assert found["data"]["body"] == "x" * 10_000
    server.says(answer(packed(b'{"a": 1}'), content_encoding="deflate"))
    assert (await ask(server, {}))["data"]["body"] == {"a": 1}


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "x" * 1000])
async def test_another_packing_is_refused(server: Server, encoding: str) -> None:
    server.says(answer(b"\x1f\x8b junk", content_encoding=encoding))
    assert "not asked for" in problem(await ask(server, {}), "api_failed")


async def test_a_packing_that_is_none_is_one_error(server: Server) -> None:
    server.says(answer(b"\x1f\x8b junk", content_encoding="gzip"))
    assert "unpacked" in problem(await ask(server, {}), "api_failed")


async def test_time_is_capped_over_all(server: Server) -> None:
    async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        try:
            for _ in range(1000):
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)
        except ConnectionError:
            return
        finally:
            writer.close()

    listening = await asyncio.start_server(dripping, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        started = time.monotonic()
        found = await ask(f"http://127.0.0.1:{port}", {"timeout_seconds": 0.3})
    assert "within 0.3 s" in problem(found, "api_failed")
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"junk\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", b"HTTP/1.1 99999 X\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    ],
)  # fmt: skip
async def test_what_is_no_http_is_one_error(server: Server, raw: bytes) -> None:
    server.answering = lambda _: raw
    problem(await ask(server, {"body_template": {}}), "api_failed")


@pytest.mark.parametrize(
    ("content_type", "body", "shown"),
    [
        ("application/json", b"not json", "not json"),
        ("application/json", b'{"a": NaN}', '{"a": NaN}'),
        ("application/json", b'"\\ud800"', "?"),
        ("application/json", b"\xef\xbb\xbf[1]", [1]),
        ("application/problem+json", b'{"a": 1}', {"a": 1}),
        ("text/html; charset=gbk", "中文".encode("gbk"), "中文"),
        ("text/plain; charset=no-such", "中".encode(), "中"),
        ("text/plain; charset=utf-7", b"+2AA-", "?"),
        *((f"text/plain; charset={name}", "中-".encode(), "中-") for name in ("idna", "undefined", "punycode", "hex")),
        ("application/json", b'{"a": 1e999}', '{"a": 1e999}'),
        ("image/png", b"\x89PNG", "<4 bytes of image/png>"),
        ("", b'{"a": 1}', {"a": 1}),
        ("text/plain", b"\xff\xfe\x00", "\ufffd\ufffd\x00"),
    ],
)
async def test_answers_are_json_or_text(server: Server, content_type: str, body: bytes, shown: object) -> None:
    server.says(answer(body, content_type=content_type))
    found = await ask(server, {})
    assert found["data"]["body"] == shown
    json.dumps(found, ensure_ascii=False).encode()


async def test_a_deep_answer_is_text(server: Server) -> None:
    for depth in (60, 900, 100_000):
        server.says(answer("[" * depth + "]" * depth))
        assert str((await ask(server, {}))["data"]["body"]).startswith("[[[[")


async def test_an_error_tells_what_the_server_says(server: Server) -> None:
    server.says(answer('{"error": "no such thing"}', 404))
    assert "status 404: {'error': 'no such thing'}" in problem(await ask(server, {}), "api_status")


# Retries.


@pytest.mark.parametrize(
    ("implementation", "sent"),
    [
        ({"method": "GET"}, 3),
        ({"method": "PUT", "body_template": {}}, 3),
        ({"method": "DELETE"}, 3),
        ({"method": "POST", "body_template": {}}, 1),
        ({"method": "PATCH", "body_template": {}}, 1),
        ({"method": "POST", "body_template": {}, "retry_safe": True}, 3),
    ],
)
async def test_only_what_may_be_repeated_is(server: Server, implementation: dict[str, Any], sent: int) -> None:
    server.says(answer("", 503))
    problem(await ask(server, implementation), "api_status")
    assert len(server.came) == sent
    server.came.clear()
    server.answering = lambda _: b""  # the connection breaks: nobody knows what was done
    problem(await ask(server, implementation), "api_failed")
    assert len(server.came) == sent
    made = implementation | {"endpoint": server.url}
    assert build(Definition(made), secrets=Secrets({})).retry_safe is (sent > 1)


async def test_a_retry_may_work(server: Server) -> None:
    server.says(answer("", 503), answer('{"a": 1}'))
    assert (await ask(server, {}))["data"]["body"] == {"a": 1}


async def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = await ask(f"http://127.0.0.1:{taken.getsockname()[1]}", {})
    assert "no connection to 127.0.0.1" in problem(found, "api_failed")


# TLS.


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=api.example", "-addext", "subjectAltName=DNS:api.example", "-keyout", path, "-out",
         path.with_suffix(".crt")],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    path.write_bytes(path.read_bytes() + path.with_suffix(".crt").read_bytes())
    return path


@pytest.fixture
async def secure(certificate: Path) -> AsyncIterator[Server]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    one = Server(scheme="https")
    listening = await asyncio.start_server(one.serve, "127.0.0.1", 0, ssl=context)
    one.port = listening.sockets[0].getsockname()[1]
    yield one
    listening.close()
    await listening.wait_closed()


async def test_tls_is_checked_by_the_name_and_not_by_the_address(secure: Server, certificate: Path) -> None:
    trusting = ssl.create_default_context(cafile=str(certificate.with_suffix(".crt")))
    resolve = named(api_example="127.0.0.1", evil_example="127.0.0.1").resolve
    network = Network(resolve=resolve, tls=trusting)
    assert (await ask(f"https://api.example:{secure.port}", {}, network))["ok"]
    for host in ("evil.example", "127.0.0.1"):
        where = Network(resolve=named(evil_example="127.0.0.1").resolve, tls=trusting) if host[0] == "e" else None
        where = where or Network(tls=trusting)
        assert "TLS with" in problem(await ask(f"https://{host}:{secure.port}", {}, where), "api_failed")
    unknown = Network(resolve=resolve)
    assert "TLS with" in problem(await ask(f"https://api.example:{secure.port}", {}, unknown), "api_failed")
    assert len(secure.came) == 1


async def test_https_is_not_left(secure: Server, server: Server, certificate: Path) -> None:
    trusting = ssl.create_default_context(cafile=str(certificate.with_suffix(".crt")))
    network = Network(resolve=named(api_example="127.0.0.1").resolve, tls=trusting)
    secure.says(answer("", 302, location=f"http://api.example:{server.port}/"))
    made = {"hosts": [f"api.example:{server.port}"]}
    assert "from https" in problem(await ask(f"https://api.example:{secure.port}", made, network), "api_refused")
    assert server.connections == 0


# What is refused when it is applied.


@pytest.mark.parametrize(
    ("implementation", "said"),
    [
        ({}, "`endpoint` is missing"),
        ({"endpoint": "ftp://example.com/"}, "`endpoint` is not an http"),
        ({"endpoint": "https://{{query}}/x"}, "Hosts cannot be arguments"),
        ({"endpoint": "https://${HOST}/x"}, "Hosts cannot be arguments"),
        ({"endpoint": "{{query}}"}, "`endpoint` is not an http"),
        ({"endpoint": "https://user:pass@example.com/"}, "holds a user or a password"),
        ({"endpoint": "https://example.com:99999/"}, "is not a URL"),
        ({"endpoint": "https://example.com/#x"}, "without a fragment"),
        ({"endpoint": "https://example.com/{{qeury}}"}, "The nearest are: query"),
        ({"endpoint": "https://example.com/{{tags}}"}, "whose type in the schema is not"),
        ({"method": "TRACE"}, "`method` is none of"),
        ({"method": "CONNECT"}, "`method` is none of"),
        ({"headers": {"Host": "evil"}}, "follows from the request"),
        ({"headers": {"X-A": "a\r\nB: c"}}, "a character that a header cannot have"),
        ({"headers": {"X A": "a"}}, "no name of a header"),
        ({"headers": {"X-{{query}}": "a"}}, "no name of a header"),
        ({"headers": ["a"]}, "`headers` is not an object"),
        ({"body_template": {"{{query}}": 1}}, "Only values may be places"),
        ({"body_template": "{not json: {{query}}}"}, "is not JSON"),
        ({"body_template": {"q": "x {{tags}}"}}, "whose type in the schema is not"),
        ({"method": "GET", "body_template": {}}, "cannot be sent by GET"),
        ({"body_template": {"a": []}, "body_format": "form"}, "`body_format`"),
        ({"body_template": {}, "body_format": "xml"}, "`body_format`"),
        ({"hosts": ["http://example.com"]}, "`hosts` has"),
        ({"hosts": ["example.com:0"]}, "`hosts` has"),
        ({"hosts": "example.com"}, "`hosts` is not a list"),
        ({"headers": {"A": "${KEY}"}, "secrets": []}, "not in its list"),
        ({"allow_private": "yes"}, "`allow_private` is neither"),
        ({"timeout_seconds": 0}, "`timeout_seconds`"),
        ({"timeout_seconds": 10**6}, "`timeout_seconds`"),
        ({"max_bytes": 10**12}, "`max_bytes`"),
        ({"enpdoint": "x"}, "`enpdoint` is no field"),
        ({"type": "query"}, "its `type` is not api"),
    ],
)
def test_what_cannot_be_used_is_refused_when_it_is_applied(implementation: dict[str, Any], said: str) -> None:
    usual = {} if implementation == {} else {"endpoint": "https://example.com/x"}
    with pytest.raises(ToolInvalid) as caught:
        check(usual | implementation, PARAMETERS)
    assert said in str(caught.value)


async def test_hosts_may_be_all_of_a_domain(server: Server) -> None:
    server.says(answer("", 302, location=f"http://a.b.example:{server.port}/x"), answer())
    network = named(api_example="127.0.0.1", a_b_example="127.0.0.1", b_example="127.0.0.1")
    made = {"hosts": [f"*.b.example:{server.port}"]}
    assert (await ask(f"http://api.example:{server.port}", made, network))["ok"]
    for target in ("b.example", "ab.example", "a.b.example.evil.example"):
        server.says(answer("", 302, location=f"http://{target}:{server.port}/x"))
        problem(await ask(f"http://api.example:{server.port}", made, network), "api_refused")

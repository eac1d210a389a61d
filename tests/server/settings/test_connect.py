"""A provider or a server of one's own is connected: its address, its key, its models and their window."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from tests.llm.servers import completion, ollama, serving

from longthread.errors import InvalidInput, ModelUnavailable
from longthread.llm.connections import Connection, ProviderKeys, apply_connection
from longthread.llm.models import resolve_model
from longthread.llm.openai import OpenAIModel
from longthread.llm.providers import ROWS, Provider, bare_name, provider_of
from longthread.llm.server_facts import read_address
from longthread.settings import Settings
from longthread.store import endpoints
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator

KEY, OTHER = "sk-canary-4711", "sk-another-0815"
KEYS = "/api/models/keys"


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none() -> list[Any]:
        return []

    monkeypatch.setattr("longthread.server.routes.models.local_servers", none)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def own() -> Iterator[ProviderEmulator]:
    script = [{"finish": "Forty-one."}]
    with ProviderEmulator(script, loop=True, api_key=KEY, models=["qwen3:4b", "audio-analyst"]) as emulator:
        yield emulator


def row_of(running: Any, provider: str) -> dict[str, Any]:
    [found] = [each for each in running.client.get("/api/models").json()["providers"] if each["provider"] == provider]
    return dict(found)


def models_of(running: Any, provider: str) -> list[str]:
    listed = running.client.get("/api/models").json()["models"]
    return [each["name"] for each in listed if each["provider"] == provider]


def test_a_server_of_ones_own_is_found_stored_and_asked(serve: Any, own: ProviderEmulator, tmp_path: Path) -> None:
    running = serve(None, model="demo")
    given = {"url": own.base_url.removesuffix("/v1") + "/", "key": KEY}
    checked = running.client.post(f"{KEYS}/own:gpu/check", json=given).json()
    names = ["own:gpu/audio-analyst", "own:gpu/qwen3:4b"]  # all that it has
    assert checked == {"provider": "own:gpu", "url": own.base_url, "models": names}
    assert models_of(running, "own:gpu") == []  # nothing is stored yet
    assert running.client.put(f"{KEYS}/own%3Agpu", json=given).json() == checked
    row = row_of(running, "own:gpu")
    assert (row["kind"], row["name"], row["connected"], row["key"]) == ("own", "gpu", True, "stored")
    assert (row["url"], row["problem"], models_of(running, "own:gpu")) == (own.base_url, None, names)
    asked = running.answer("How many?", model="own:gpu/qwen3:4b")
    assert running.history(asked["thread_id"])["runs"][0]["model"] == "own:gpu/qwen3:4b"
    assert own.requests[-1].body["model"] == "qwen3:4b"
    assert own.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    kept = [file for file in (tmp_path / "data").iterdir() if file.is_file()]
    assert kept and all(KEY.encode() not in file.read_bytes() for file in kept)
    running.stop()
    again = serve(None, model="demo")
    again.answer("How many?", model="own:gpu/qwen3:4b")
    assert again.client.delete(f"{KEYS}/own:gpu").status_code == 204
    gone = again.client.post("/api/chat", json={"question": "How many?", "model": "own:gpu/qwen3:4b"})
    assert (gone.status_code, gone.json()["code"]) == (409, "model_unavailable")
    assert "not connected" in gone.json()["detail"]


def test_several_servers_work_beside_each_other_and_beside_the_settings(serve: Any, own: ProviderEmulator) -> None:
    with ProviderEmulator(["Two."], loop=True, models=["b"]) as second, ProviderEmulator(["3"], models=["c"]) as third:
        running = serve(None, model="c", base_url=third.base_url, api_key=SecretStr(OTHER))
        running.client.put(f"{KEYS}/own:one", json={"url": own.base_url, "key": KEY})
        running.client.put(f"{KEYS}/own:two", json={"url": second.base_url})
        listed = {each["name"] for each in running.client.get("/api/models").json()["models"]}
        assert {"own:one/qwen3:4b", "own:two/b", "c"} <= listed
        running.answer("How many?", model="own:two/b")
        running.answer("How many?", model="own:one/qwen3:4b")
        running.answer("How many?")
        assert second.requests[-1].headers["authorization"] == "Bearer not-needed"
        assert third.requests[-1].headers["authorization"] == f"Bearer {OTHER}"
        sent = [dict(each.headers) for each in (*second.requests, *second.lookups, *third.requests, *third.lookups)]
        assert KEY not in repr(sent) and OTHER not in repr([dict(each.headers) for each in own.requests])


def test_a_stored_key_goes_to_no_other_address(serve: Any, own: ProviderEmulator) -> None:
    with ProviderEmulator(models=["m"]) as other:
        running = serve(None, model="demo")
        running.client.put(f"{KEYS}/own:gpu", json={"url": own.base_url, "key": KEY})
        moved = running.client.post(f"{KEYS}/own:gpu/check", json={"url": other.base_url})
        assert moved.json()["models"] == ["own:gpu/m"]
        assert running.client.put(f"{KEYS}/own:gpu", json={"url": other.base_url}).status_code == 200
        assert KEY not in repr([dict(each.headers) for each in other.lookups])
        assert row_of(running, "own:gpu")["key"] is None


def test_the_same_address_keeps_its_key(serve: Any, own: ProviderEmulator) -> None:
    running = serve(None, model="demo")
    running.client.put(f"{KEYS}/own:gpu", json={"url": own.base_url, "key": KEY})
    assert running.client.put(f"{KEYS}/own:gpu", json={"url": own.base_url}).status_code == 200
    assert row_of(running, "own:gpu")["key"] == "stored"


@pytest.mark.parametrize(
    ("provider", "body", "status", "code"),
    [
        ("own:gpu", {}, 422, "invalid_input"),
        ("own:gpu", {"url": "ftp://gpu"}, 422, "invalid_input"),
        ("own:gpu", {"url": "http://me:pw@gpu/v1"}, 422, "invalid_input"),
        ("own:gpu", {"url": "http://gpu/v1?key=1"}, 422, "invalid_input"),
        ("own:gpu", {"url": "http://127.0.0.1:9/v1"}, 502, "provider_unreachable"),
        ("own:GPU", {"url": "http://gpu/v1"}, 422, "invalid_input"),
        ("own:gpu", {"url": "[::1:8000"}, 422, "invalid_input"),
        ("own:", {"url": "http://gpu/v1"}, 422, "invalid_input"),
        ("ollama", {"url": "http://gpu/v1"}, 422, "invalid_input"),
        ("azure", {"key": KEY}, 422, "invalid_input"),
        ("dashscope", {}, 404, "key_not_found"),
        ("dashscope", {"key": KEY, "url": "https://elsewhere.example/v1"}, 422, "invalid_input"),
    ],
)
def test_what_cannot_be_connected_is_refused(
    serve: Any, provider: str, body: dict[str, str], status: int, code: str
) -> None:
    running = serve(None, model="demo")
    for method, path in (("PUT", ""), ("POST", "/check")):
        answer = running.client.request(method, f"{KEYS}/{provider}{path}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert not any(each["connected"] for each in running.client.get("/api/models").json()["providers"])


def test_a_wrong_key_of_a_server_is_told(serve: Any, own: ProviderEmulator) -> None:
    running = serve(None, model="demo")
    for body in ({"url": own.base_url, "key": OTHER}, {"url": own.base_url}):
        answer = running.client.put(f"{KEYS}/own:gpu", json=body)
        assert (answer.status_code, answer.json()["code"]) == (409, "key_refused")


def test_openai_is_not_connected_where_its_names_go_elsewhere(serve: Any, own: ProviderEmulator) -> None:
    running = serve(None, model="demo", base_url=f"{own.base_url}?token={OTHER}", api_key=KEY)
    answer = running.client.put(f"{KEYS}/openai", json={"key": OTHER})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert "as a server of your own" in answer.json()["detail"]
    assert not row_of(running, "openai")["connected"]
    assert row_of(running, "own")["url"] == own.base_url, "a query may hold a secret"


def test_a_key_of_the_settings_is_not_copied(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"GET /v1/models": {"data": [{"id": "gpt-5"}]}}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        running = serve(None, model="demo")
        for body in ({}, {"url": f"{server.url}/v1", "check": False}):
            assert running.client.put(f"{KEYS}/openai", json=body).status_code == 200
        assert row_of(running, "openai")["key"] == "environment"
        running.client.put(f"{KEYS}/openai", json={"key": OTHER}).raise_for_status()
        assert row_of(running, "openai")["key"] == "stored"


@pytest.mark.parametrize("models", [None, []])
def test_a_server_without_a_model_has_an_empty_list(serve: Any, models: Any) -> None:
    with serving({"GET /v1/models": {"data": models}}) as server:
        running = serve(None, model="demo")
        assert running.client.put(f"{KEYS}/own:gpu", json={"url": server.url}).json()["models"] == []


def test_a_model_whose_name_is_a_path_keeps_it(serve: Any) -> None:
    with serving({"GET /v1/models": {"data": [{"id": "models/Qwen"}]}}) as server:
        running = serve(None, model="demo")
        stored = running.client.put(f"{KEYS}/own:gpu", json={"url": server.url}).json()
        assert stored["models"] == ["own:gpu/models/Qwen"]


def test_a_server_without_a_list_is_connected_and_asked_by_name(serve: Any) -> None:
    answers = {"POST /v1/chat/completions": completion("ready", 9)}
    with serving(answers) as server:
        running = serve(None, model="demo")
        stored = running.client.put(f"{KEYS}/own:bare", json={"url": server.url}).json()
        assert stored == {"provider": "own:bare", "url": f"{server.url}/v1", "models": None}
        assert row_of(running, "own:bare")["problem"] is None
        assert running.client.post("/api/models/check", json={"model": "own:bare/any"}).status_code == 200


def without_window(said: Any) -> dict[str, Any]:
    """A server that says this to a call for more tokens than a window has."""

    def answer(body: Any) -> Any:
        return completion("ready", 9) if body["max_tokens"] < 1_000 else said

    listed = {"object": "list", "data": [{"id": "qwen3:4b"}]}
    return {"GET /v1/models": listed, "POST /v1/chat/completions": answer}


def llama_cpp() -> dict[str, Any]:
    return {**without_window(REFUSED), "GET /props": {"default_generation_settings": {"n_ctx": 12_288}}}


REFUSED = {"error": {"message": "max_tokens is too large. This model's maximum context length is 24576 tokens."}}


@pytest.mark.parametrize(
    ("answers", "window", "origin"),
    [
        (ollama, 8_192, "server"),
        (lambda _: llama_cpp(), 12_288, "server"),
        (lambda _: without_window((400, REFUSED)), 24_576, "measured"),
        (
            lambda _: without_window((400, {"error": {"message": "max_tokens must be at most 8192."}})),
            32_000,
            "assumed",
        ),
        (lambda _: without_window(completion("ready", 9)), 32_000, "assumed"),
    ],
)
def test_the_window_of_a_model_is_asked_or_measured(serve: Any, answers: Any, window: int, origin: str) -> None:
    with serving({}) as server:
        server.answers = answers(server)
        running = serve(None, model="demo")
        running.client.put(f"{KEYS}/own:gpu", json={"url": server.url})
        checked = running.client.post("/api/models/check", json={"model": "own:gpu/qwen3:4b"})
        assert checked.json() == {"model": "own:gpu/qwen3:4b", "window": window, "origin": origin}


def test_what_was_measured_is_known_to_runs(serve: Any) -> None:
    with serving(without_window((400, REFUSED))) as server:
        running = serve(None, model="demo")
        running.client.put(f"{KEYS}/own:gpu", json={"url": server.url})
        for _ in range(2):
            checked = running.client.post("/api/models/check", json={"model": "own:gpu/qwen3:4b"}).json()
            assert (checked["window"], checked["origin"]) == (24_576, "measured")
        larger = {"error": {"message": "This model's maximum context length is 32768 tokens."}}
        server.answers.update(without_window((400, larger)))
        again = running.client.post("/api/models/check", json={"model": "own:gpu/qwen3:4b"}).json()
        assert (again["window"], again["origin"]) == (32_768, "measured"), "it was started again"


def test_a_model_that_does_not_answer_is_told(serve: Any) -> None:
    refused = {"error": {"message": "no such model", "type": "not_found"}}
    with serving({"POST /v1/chat/completions": (404, refused)}) as server:
        running = serve(None, model="demo")
        running.client.put(f"{KEYS}/own:gpu", json={"url": server.url})
        answer = running.client.post("/api/models/check", json={"model": "own:gpu/gone"})
        assert (answer.status_code, answer.json()["code"]) == (409, "model_unavailable")
        assert "no such model" in answer.json()["detail"]
    unknown = running.client.post("/api/models/check", json={"model": "own:none/x"})
    assert (unknown.status_code, unknown.json()["code"]) == (503, "model_unavailable")


def test_only_the_owner_connects_and_sees_what_is_connected(serve: Any, own: ProviderEmulator) -> None:
    running = serve(None, model="demo", no_login=True)
    running.client.put(f"{KEYS}/own:gpu", json={"url": own.base_url, "key": KEY})
    running.client.headers["X-Forwarded-For"] = "198.51.100.9"
    listed = running.client.get("/api/models").json()
    assert (listed["keys_allowed"], listed["providers"], listed["servers"]) == (False, [], [])
    for path, body in ((f"{KEYS}/own:gpu/check", {"url": own.base_url}), ("/api/models/check", {"model": "demo"})):
        answer = running.client.post(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "settings_not_allowed")
    asked = running.client.post("/api/chat", json={"question": "How many?", "model": "own:gpu/qwen3:4b"})
    assert (asked.status_code, asked.json()["code"]) == (403, "model_not_allowed")


def test_every_provider_that_is_asked_for_has_a_row(serve: Any) -> None:
    wanted = ["openai", "anthropic", "google_genai", "deepseek", "dashscope", "zhipu", "moonshot", "siliconflow"]
    wanted += ["minimax", "openrouter", "azure", "ollama", "lmstudio", "vllm", "llamacpp"]
    rows = {each["provider"]: each for each in serve(None, model="demo").client.get("/api/models").json()["providers"]}
    assert set(wanted) <= set(rows)
    assert rows["ollama"]["addresses"] == ["http://localhost:11434/v1"]
    assert rows["azure"]["addresses"] == []
    assert len(rows["dashscope"]["addresses"]) == 2


# The key of a provider, and its address.

CORE = [row for row in ROWS.values() if row.addresses and row.id not in ("openai", "anthropic")]


@pytest.mark.parametrize("row", CORE, ids=lambda row: row.id)
def test_a_provider_is_asked_at_its_address_with_its_key(row: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longthread.llm.models._is_installed", lambda provider: False)
    for url in row.addresses:
        connections = {row.id: Connection(url, SecretStr(KEY))}
        settings = Settings.of(model="demo", openai_api_key=SecretStr(OTHER))
        model = resolve_model(*apply_connection(f"{row.id}:m", settings, connections))
        assert isinstance(model, OpenAIModel) and model.name == "m"
        assert model.endpoint.url.startswith(url) and model.endpoint.url.endswith("/chat/completions")
        assert model.endpoint.headers["authorization"] == f"Bearer {KEY}"
        assert model.reports_usage is row.reports_usage
    with pytest.raises(ModelUnavailable, match="It needs a key"):
        resolve_model(f"{row.id}:m", Settings.of(model="demo"))


def test_a_resource_of_azure_is_asked_at_its_own_address() -> None:
    connections = {"azure": Connection("https://mine.openai.azure.com/openai/v1", SecretStr(KEY))}
    model = resolve_model(*apply_connection("azure:my-deployment", Settings.of(model="demo"), connections))
    assert isinstance(model, OpenAIModel) and model.is_openai
    assert model.endpoint.url == "https://mine.openai.azure.com/openai/v1/chat/completions"
    with pytest.raises(ModelUnavailable, match="not connected"):
        resolve_model("azure:my-deployment", Settings.of(model="demo"))


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("gpu:8000", "http://gpu:8000"),
        ("localhost:11434/v1/", "http://localhost:11434/v1"),
        ("10.0.0.7:8000/v1/chat/completions", "http://10.0.0.7:8000/v1"),
        ("llm.example.com/v1/models", "https://llm.example.com/v1"),
        (" https://mine.openai.azure.com/ ", "https://mine.openai.azure.com"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_an_address_is_read_as_people_give_it(given: str, url: str) -> None:
    assert read_address(given) == url


@pytest.mark.parametrize(
    "given",
    [
        "",
        "http://",
        "http://gpu:99999/v1",
        "http://a b/v1",
        "file:///etc",
        "x\ny",
        "[::1:8000",
        "gpu℀:80",
        "http://模型_服务:8000",
    ],
)
def test_what_is_no_address_is_told(given: str) -> None:
    with pytest.raises(InvalidInput, match="no address"):
        read_address(given)


def test_the_name_of_a_model_of_an_own_server() -> None:
    settings = Settings.of(model="demo")
    assert provider_of("own:gpu/org/model:7b", settings) == "own"
    assert bare_name("own:gpu/org/model:7b") == "org/model:7b"
    assert bare_name("openai:gpt-5") == "gpt-5"


async def test_a_connection_is_sealed_for_its_user_and_provider(store: Driver, tmp_path: Path) -> None:
    keys = ProviderKeys(store, Settings.of(data_dir=tmp_path))
    there = Connection("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", SecretStr(KEY))
    open_ = Connection("http://gpu:8000/v1", None)
    await keys.save("dashscope", there, user_id="ada")
    await keys.save("own:gpu", open_, user_id="ada")
    assert await keys.of("ada") == {"dashscope": there, "own:gpu": open_}
    assert await keys.of("bob") == {}
    async with store.writing() as tx:
        [sealed, _] = await endpoints.list_keys(tx, "ada")
        await endpoints.save_key(tx, "own:mine", sealed.sealed, user_id="bob")
    [stolen] = await ProviderKeys(store, Settings.of(data_dir=tmp_path)).list_connections("bob")
    assert stolen.connection is None
    assert KEY not in json.dumps(sealed.sealed.hex())

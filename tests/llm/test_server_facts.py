"""The context window is asked from the model's own server, at the address where the model is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from tests.llm.servers import FakeServer, completion, serving
from tests.script import events_of

from longthread.llm.chat import ChatModel
from longthread.llm.model_facts import ContextWindows
from longthread.llm.models import resolve_model
from longthread.llm.server_facts import LARGEST, ServerWindow, ask_server
from longthread.runs.analyst import Analyst
from longthread.settings import Settings
from longthread.store.driver import Driver

NAME = "qwen2.5:7b"


def model_at(url: str, name: str = NAME, **settings: Any) -> ChatModel:
    return resolve_model(name, Settings.load(env_file=None, base_url=url, **settings))


def listed(**fields: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "other"}, {"id": NAME, **fields}]}


def ollama(loaded: int | None = None, parameters: str = "", trained: int = 32_768) -> dict[str, Any]:
    running = [{"name": NAME, "model": NAME, "context_length": loaded}] if loaded else []
    about = {"general.architecture": "qwen2", "qwen2.context_length": trained}
    return {
        "GET /v1/models": listed(),
        "GET /api/ps": {"models": [{"name": "other:latest", "context_length": 131_072}, *running]},
        "POST /api/show": {"parameters": parameters, "model_info": about},
    }


def lm_studio(**fields: Any) -> dict[str, Any]:
    item = {"id": NAME, "type": "llm", "max_context_length": 131_072, **fields}
    return {
        "GET /v1/models": listed(),
        "GET /api/v0/models": {"data": [{"id": "other", "max_context_length": 1}, item]},
    }


@pytest.mark.parametrize(
    ("answers", "window"),
    [
        (ollama(loaded=8_192), ServerWindow(8_192, server="Ollama")),
        (ollama(parameters='stop "x"\nnum_ctx                        16384\n'), ServerWindow(16_384, server="Ollama")),
        (ollama(), ServerWindow(4_096, is_loaded=False, server="Ollama")),
        (ollama(trained=2_048), ServerWindow(2_048, is_loaded=False, server="Ollama")),
        (
            {"GET /props": {"default_generation_settings": {"n_ctx": 12_288}, "total_slots": 1}},
            ServerWindow(12_288, server="llama.cpp"),
        ),
        (
            {"GET /v1/models": {"data": [{"id": "/a/model.gguf", "meta": {"n_ctx": 12_288, "n_ctx_train": 32_768}}]}},
            ServerWindow(12_288),
        ),
        (lm_studio(state="loaded", loaded_context_length=6_000), ServerWindow(6_000, server="LM Studio")),
        (lm_studio(state="not-loaded"), ServerWindow(4_096, is_loaded=False, server="LM Studio")),
        (lm_studio(state="loaded"), None),
        ({"GET /v1/models": listed(max_model_len=40_960)}, ServerWindow(40_960)),
        ({"GET /v1/models": listed(context_length=131_072)}, ServerWindow(131_072)),
        ({"GET /v1/models": listed(max_model_len=True)}, None),
        ({"GET /v1/models": listed(max_model_len=5)}, None),
        ({"GET /v1/models": listed(max_model_len="40960")}, None),
        ({"GET /v1/models": {"data": [{"id": "other", "max_model_len": 9_999}, {"id": "third"}]}}, None),
        ({"GET /v1/models": {"data": {"id": NAME}}}, None),
        ({"GET /v1/models": b"[" * 100_000, "GET /props": b"no JSON", "GET /api/ps": [1, 2]}, None),
        ({"GET /props": b'{"default_generation_settings":{"n_ctx":4096}}' + b" " * LARGEST}, None),
        ({"GET /api/ps": {"models": []}, "POST /api/show": 404}, None),
    ],
)
async def test_a_server_tells_its_window(answers: dict[str, Any], window: ServerWindow | None) -> None:
    with serving(answers) as server:
        facts = await ask_server(model_at(f"{server.url}/v1"))
    assert facts is not None and facts.window == window


async def test_a_server_below_a_path_is_asked_there() -> None:
    with serving({"GET /llama/props?k=1": {"default_generation_settings": {"n_ctx": 12_288}}}) as server:
        facts = await ask_server(model_at(f"{server.url}/llama/v1?k=1"))
        assert server.asked == {
            f"GET /llama{path}?k=1" for path in ("/v1/models", "/api/ps", "/props", "/api/v0/models")
        }
    assert facts is not None and facts.window == ServerWindow(12_288, server="llama.cpp")


async def test_the_key_goes_nowhere_else() -> None:
    with serving({}) as other, serving({"GET /v1/models": 307, "GET /props": 307, "location": other.url}) as server:
        facts = await ask_server(model_at(f"{server.url}/v1", api_key=SecretStr("the-key")))
        assert {headers["authorization"] for _, headers in server.requests} == {"Bearer the-key"}
        assert not other.requests
    assert facts is not None and (facts.status, facts.window) == (307, None)


async def test_where_nothing_answers() -> None:
    with serving({}) as server:
        url = server.url
    facts = await ask_server(model_at(f"{url}/v1"))
    assert facts is not None and (facts.status, facts.models, facts.window) == (None, None, None)


async def test_one_that_is_no_ollama_is_sent_nothing() -> None:
    """A server that takes any path for a chat would spend tokens."""
    with serving({"GET /api/ps": {"object": "list", "data": []}}) as server:
        await ask_server(model_at(f"{server.url}/v1"))
        assert all(line.startswith("GET ") for line in server.asked)


async def test_the_window_of_a_run_is_what_the_server_tells(store: Driver) -> None:
    with serving({"GET /props": {"default_generation_settings": {"n_ctx": 12_288}}}) as server:
        model = model_at(f"{server.url}/v1")
        windows = ContextWindows(store, Settings.load(env_file=None))
        assert [await windows.of(model) for _ in range(3)] == [12_288] * 3
        assert len(server.requests) == 4  # it is asked once
        assert await ContextWindows(store, Settings.load(env_file=None, memory_context_window=8_000)).of(model) == 8_000
        large = ContextWindows(store, Settings.load(env_file=None, memory_context_window=64_000))
        assert await large.of(model) == 12_288
        server.answers["GET /props"] = {"default_generation_settings": {"n_ctx": 100_000}}
        assert await ContextWindows(store, Settings.load(env_file=None)).of(model) == 100_000


async def test_what_a_call_taught_holds_as_long_as_the_server_tells_the_same(store: Driver) -> None:
    with serving({"GET /props": {"default_generation_settings": {"n_ctx": 12_288}}}) as server:
        model = model_at(f"{server.url}/v1")
        await ContextWindows(store, Settings.load(env_file=None)).learn(model, 6_000)
        assert await ContextWindows(store, Settings.load(env_file=None)).of(model) == 6_000
        server.answers["GET /props"] = {"default_generation_settings": {"n_ctx": 32_768}}
        assert await ContextWindows(store, Settings.load(env_file=None)).of(model) == 32_768


async def test_a_model_that_is_not_loaded_has_the_window_of_the_last_time(store: Driver) -> None:
    settings = Settings.load(env_file=None)
    with serving(ollama()) as server:
        model = model_at(f"{server.url}/v1")
        windows = ContextWindows(store, settings)
        assert await windows.of(model) == 4_096
        assert await windows.settle(model, 4_096) == 4_096  # still not loaded
        server.answers |= ollama(loaded=32_768)
        assert await windows.settle(model, 4_096) == 32_768 == await windows.of(model)
        server.answers |= ollama()
        assert await ContextWindows(store, settings).of(model) == 32_768
        assert await ContextWindows(store, Settings.load(env_file=None, memory_context_window=9_000)).of(model) == 9_000


def counted(request: Any) -> int:
    """The tokens of a request, as a tokenizer might count them."""
    return len(str(request["messages"])) // 4 + len(str(request.get("tools", ""))) // 5


@pytest.fixture
async def ask(tmp_path: Path, store_address: str, shop: str) -> AsyncIterator[Callable[..., Any]]:
    """Ask a server's model a question, and return the warnings."""
    async with AsyncExitStack() as stack:

        async def asked(
            server: FakeServer, question: str, protocol: Any = "native", expected: str = "Read.", **settings: Any
        ) -> list[str]:
            given = {"data_dir": tmp_path, "database": store_address, "memory_enable_summary": False, "source": shop}
            loaded = Settings.load(env_file=None, **given, base_url=f"{server.url}/v1", model=NAME, **settings)
            analyst = await stack.enter_async_context(Analyst.open(loaded))
            handle = await analyst.ask(question, user_id="u", protocol=protocol)
            events = await events_of(handle)
            assert (events[-1].type, events[-1].data.get("answer")) == ("finished", expected), events[-1].data
            return [event.data["message"] for event in events if event.type == "warning"]

        yield asked


LONG = "Please read this and say when you have read it. " + "These are words, 还有中文。 " * 1_200


@pytest.mark.parametrize("told", [{}, ollama(loaded=32_768)])
async def test_a_prompt_that_was_cut_in_silence_teaches_the_window(
    ask: Callable[..., Any], told: dict[str, Any]
) -> None:
    seen: list[tuple[int, str]] = []

    def answer(request: Any) -> Any:
        seen.append((counted(request), str(request["messages"])))
        return completion("Read." if seen[-1][0] <= 4_096 else "What?", min(4_096, seen[-1][0]))

    with serving(told | {"POST /v1/chat/completions": answer}) as server:
        [warning] = await ask(server, LONG)
        assert "The server read only 4,096 tokens of its prompt" in warning and "`num_ctx`" in warning
        assert "is 4,096 tokens, and not 32," in warning and "MEMORY_CONTEXT_WINDOW=4096" in warning
        assert [size > 4_096 for size, _ in seen] == [True, False]
        again = await ask(server, LONG)
        assert not [each for each in again if "read only" in each], "another process knows it"
        assert seen[-1][0] <= 4_096


async def test_a_short_count_teaches_nothing_where_more_was_counted_before(ask: Callable[..., Any]) -> None:
    """Some servers leave what they had in their cache out of the count."""
    counts = [20_000, 1_500]

    def answer(request: Any) -> Any:
        call = {"id": "c", "type": "function", "function": {"name": "list_tables", "arguments": "{}"}}
        first = completion("", counts.pop(0))
        if counts:
            first["choices"][0]["message"] |= {"content": None, "tool_calls": [call]}
            return first
        return completion("Read.", 1_500)

    with serving({"POST /v1/chat/completions": answer}) as server:
        assert not await ask(server, LONG)
    assert not counts


async def test_a_template_that_finds_no_question_teaches_the_window(ask: Callable[..., Any]) -> None:
    def answer(request: Any) -> Any:
        size = counted(request)
        return (
            completion("Read.", size)
            if size <= 4_500
            else (500, {"error": {"message": "No user query found in messages."}})
        )

    with serving({"POST /v1/chat/completions": answer}) as server:
        warnings = await ask(server, LONG)
        assert warnings and all("is smaller than" in each and "`num_ctx`" in each for each in warnings)
        again = await ask(server, LONG)
        assert not [each for each in again if "read only" in each], "another process knows it"


@pytest.mark.parametrize(
    ("question", "answer"), [("How many customers are there?", "**3** [q1]."), ("有多少位客户？", "**3** [q1]。")]
)
async def test_a_model_of_ones_own_server_is_probed_at_its_first_question(
    ask: Callable[..., Any], question: str, answer: str
) -> None:
    seen: list[str] = []

    def reply(request: Any) -> Any:
        seen.append("tools" if request.get("tools") else "sql")
        text = "I would count them." if seen[-1] == "tools" else "```sql\nSELECT count(*) FROM customers\n```"
        return completion(text, 60 + len(str(request["messages"][-1]["content"])) // 4)

    facts = {"GET /props": {"default_generation_settings": {"n_ctx": 12_288}}}
    with serving(facts | {"POST /v1/chat/completions": reply}) as server:
        [warning] = await ask(server, question, "auto", answer)
        assert "was asked four tiny questions, once: it speaks 'sql' best" in warning
        assert seen == ["tools", "sql", "sql", "sql"]
        assert not await ask(server, question, "auto", answer), "another process knows it"
        assert seen[4:] == ["sql"]


async def test_a_server_that_is_not_known_is_not_probed(ask: Callable[..., Any]) -> None:
    with serving({"POST /v1/chat/completions": lambda request: completion("Read.", 900)}) as server:
        assert not [each for each in await ask(server, "Hello?", "auto") if "tiny questions" in each]
        assert len([line for line, _ in server.requests if line.startswith("POST /v1/chat")]) == 1

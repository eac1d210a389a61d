"""A provider whose context window is smaller than was thought: its call is made again in the same step."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import BaseMessage
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from tests.analysts import OpenAnalyst
from tests.script import call, events_of, finish

from longthread.llm.langchain import LangChainModel
from longthread.llm.models import ModelSummarizer
from longthread.model.run import Event, Step
from longthread.runs.analyst import Analyst
from longthread.runs.inspect import sent
from longthread.settings import Settings
from longthread.store import runs
from longthread.testing import ProviderEmulator, Refused, ScriptedChatModel, ScriptedModel

pytestmark = pytest.mark.one_backend

WIDE = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 80) SELECT 'a row of {} ' || i FROM n"


def size_of(messages: list[BaseMessage]) -> int:
    """As a simple tokenizer counts."""
    return sum(len(str(message.text)) for message in messages) // 3 + 1_500


def limited(limit: int, said: str | Exception, replies: list[Any]) -> ScriptedChatModel:
    """A model that refuses what is longer than its limit, and else gives its replies."""

    def reply(messages: list[BaseMessage]) -> Any:
        if size_of(messages) <= limit:
            return replies.pop(0)
        return said if isinstance(said, Exception) else RuntimeError(said)

    return ScriptedChatModel(reply)


def talk(turns: int) -> list[Any]:
    """Replies to questions, each with a result of some thousand tokens."""
    asked = [call("run_sql", sql=WIDE.format("many words " * 4 + str(n))) for n in range(turns)]
    return [reply for n in range(turns) for reply in (asked[n], finish(f"answer {n}"))]


async def ask(analyst: Analyst, shop: str, question: str, thread_id: str = "t") -> list[Event]:
    return await events_of(await analyst.ask(question, source=shop, thread_id=thread_id, user_id=analyst.settings.user))


def warnings(events: list[Event]) -> list[str]:
    return [event.data["message"] for event in events if event.type == "warning"]


async def model_steps(analyst: Analyst, thread_id: str = "t") -> list[Step]:
    async with analyst.store.reading() as tx:
        return [step for step in await runs.steps_from(tx, thread_id, 0) if step.kind == "model"]


async def test_the_window_is_read_from_the_error_and_kept(open_analyst: OpenAnalyst, shop: str) -> None:
    said = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9999 tokens."
    model = limited(7_500, said, talk(8))
    analyst, other = await open_analyst(model), await open_analyst(model)
    told = [warnings(await ask(analyst, shop, f"Question {n}?")) for n in range(6)]
    [warning] = [each for turn in told for each in turn]
    assert "8,192 tokens, and not 32,000" in warning and "MEMORY_CONTEXT_WINDOW=8192" in warning
    refused = [made for made in model.calls if size_of(made.messages) > 7_500]
    assert len(refused) == 1
    # Another process and another thread know it.
    for n in range(2):
        assert not warnings(await ask(other, shop, f"Question {n}?", "other"))
    assert len([made for made in model.calls if size_of(made.messages) > 7_500]) == 1
    steps = await model_steps(analyst)
    assert [step.status for step in steps] == ["done"] * 12, "the call that was refused is no step of its own"
    answered = [made for made in model.calls if made not in refused]
    async with analyst.store.reading() as tx:
        again = [await sent(tx, step) for step in steps]
    shown = [[message.text for message in made.messages] for made in answered[: len(again)]]
    assert [[message.text for message in each.messages] for each in again] == shown


async def test_without_a_number_it_is_halved(open_analyst: OpenAnalyst, shop: str) -> None:
    model = limited(5_000, ContextOverflowError("No."), talk(6))
    analyst = await open_analyst(model)
    told = [warning for n in range(6) for warning in warnings(await ask(analyst, shop, f"Question {n}?"))]
    assert ["smaller than 32,000 tokens" in told[0], "smaller than 16,000 tokens" in told[1]] == [True, True]
    assert len(told) <= 3 and all("MEMORY_CONTEXT_WINDOW" in each for each in told)


async def test_another_setting_is_tried_anew(open_analyst: OpenAnalyst, shop: str) -> None:
    model = limited(7_500, "maximum context length is 8192 tokens", talk(10))
    first = await open_analyst(model)
    assert [bool(warnings(await ask(first, shop, f"Question {n}?"))) for n in range(4)].count(True) == 1
    larger = await open_analyst(model, memory_context_window=20_000)
    [warning] = [each for n in range(6) for each in warnings(await ask(larger, shop, f"And {n}?", "u"))]
    assert "8,192 tokens, and not 20,000" in warning


async def test_a_tokenizer_that_takes_more_is_believed_without_a_smaller_window(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    model = limited(5_000, "maximum context length is 8192 tokens", talk(8))
    analyst = await open_analyst(model, memory_context_window=8_192)
    for n in range(8):
        events = await ask(analyst, shop, f"Question {n}?")
        assert events[-1].type == "finished"
        assert all("MEMORY_CONTEXT_WINDOW" in each for each in warnings(events))
    fresh = await open_analyst(limited(5_000, "maximum context length is 8192 tokens", talk(1)))
    assert (await ask(fresh, shop, "And now?", "u"))[-1].type == "finished"
    assert not fresh.settings.memory_context_window


async def test_a_limit_is_kept_only_where_a_call_has_fitted(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst(ScriptedChatModel(lambda messages: RuntimeError("prompt is too long")))
    events = await ask(analyst, shop, "How many?")
    error = events[-1].data["error"]
    assert (events[-1].type, error["type"]) == ("failed", "window_too_small")
    assert "MEMORY_CONTEXT_WINDOW" in error["message"]
    other = await open_analyst([finish("Three.")])
    resumed = await events_of(await other.runs.resume("t", user_id=other.settings.user))
    assert (resumed[-1].type, warnings(resumed)) == ("finished", [])
    assert (await model_steps(other))[-1].usage["budget"] > 20_000


NAMES = ("id INTEGER PRIMARY KEY", "customer_name TEXT", "amount REAL", "created_at TEXT", "城市 TEXT")


@pytest.fixture
def many_tables(tmp_path: Path) -> str:
    """Eighty tables, of which one has a row."""
    path = tmp_path / "many.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        for n in range(80):
            connection.execute(f"CREATE TABLE table_number_{n} ({', '.join(NAMES)})")
        connection.execute("INSERT INTO table_number_3 VALUES (1, 'x', 12345.5, '2024', '北京')")
        connection.commit()
    return str(path)


@pytest.mark.parametrize("window", [4_096, 8_192])
async def test_a_small_window_shows_the_newest_rows_and_the_columns_in_use(
    open_analyst: OpenAnalyst, many_tables: str, window: int
) -> None:
    statement = "SELECT a.amount AS the_amount, a.城市 AS 所在城市 FROM table_number_3 AS a WHERE a.customer_name = 'x'"
    looks = [call("list_tables"), call("describe_table", table="table_number_3")]
    model = ScriptedChatModel([*looks, call("run_sql", sql=statement), finish("12,345.5 [q1].")])
    analyst = await open_analyst(model, memory_context_window=window)
    events = await ask(analyst, many_tables, "What is the amount of the customer x in Beijing in 2024?")
    assert events[-1].type == "finished"
    shown = [[str(message.text) for message in made.messages] for made in model.calls]
    assert all(name.split()[0] in "".join(shown[2]) for name in NAMES), "the statement is written from the columns"
    assert "12345.5" in "".join(shown[3]) and "北京" in "".join(shown[3])
    assert all(name.split()[0] in "".join(shown[3]) for name in NAMES)
    assert not warnings(events)


async def test_a_source_of_wide_tables_wants_a_larger_window(open_analyst: OpenAnalyst, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "wide.sqlite")) as connection:
        for n in range(3):
            columns = ", ".join(f"a_column_of_many_words_{c} INTEGER" for c in range(200))
            connection.execute(f"CREATE TABLE wide_{n} ({columns})")
    analyst = await open_analyst([finish("Hello.")], memory_context_window=8_192)
    told = warnings(await ask(analyst, str(tmp_path / "wide.sqlite"), "Hello?"))
    assert ["MEMORY_CONTEXT_WINDOW=16384" in each for each in told] == [True]
    later = await open_analyst([finish("Yes.")], memory_context_window=8_192)
    assert not warnings(await ask(later, str(tmp_path / "wide.sqlite"), "Thanks?")), "it is said once"


async def test_other_errors_are_what_they_were(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel([RuntimeError("Rate limit: too many tokens per minute"), finish("3")])
    analyst = await open_analyst(model, retry_attempts=0)
    events = await ask(analyst, shop, "How many?")
    assert (events[-1].type, events[-1].data["error"]["type"]) == ("failed", "model_failed")
    assert len(model.calls) == 1


OpenAt = Callable[..., Awaitable[Analyst]]


@pytest.fixture
async def open_at(tmp_path: Path, store_address: str) -> AsyncIterator[OpenAt]:
    """Opens analysts that ask servers."""
    async with AsyncExitStack() as stack:

        async def open_(server: ProviderEmulator, **more: Any) -> Analyst:
            given = {"data_dir": tmp_path / "data", "database": store_address, "memory_enable_summary": False}
            settings = Settings.load(env_file=None, **given, model="served", base_url=server.base_url, **more)
            return await stack.enter_async_context(Analyst.open(settings))

        yield open_


def server_of(limit: int, replies: list[Any]) -> ProviderEmulator:
    """A server that refuses what is longer than its limit together with the reply that is reserved, as vLLM does."""

    def reply(messages: list[BaseMessage]) -> Any:
        body = server.requests[-1].body
        asked = len(json.dumps([body["messages"], body.get("tools")], ensure_ascii=False)) // 5
        if asked + body["max_tokens"] <= limit:
            return replies.pop(0)
        return Refused(
            400,
            f"'max_tokens' is too large: {body['max_tokens']}. This model's maximum context length is {limit} tokens "
            f"and your request has {asked} input tokens ({body['max_tokens']} > {limit} - {asked}).",
        )

    server = ProviderEmulator(reply)
    return server


async def test_a_reply_that_is_reserved_too_large_is_refitted_at_its_own_endpoint_alone(
    open_at: OpenAt, shop: str
) -> None:
    with server_of(4_096, talk(4)) as small, server_of(32_000, talk(3)) as large:
        analyst = await open_at(small)
        told = [warning for n in range(3) for warning in warnings(await ask(analyst, shop, f"Question {n}?"))]
        assert ["MEMORY_CONTEXT_WINDOW=4096" in warning for warning in told] == [True]
        reserved = [request.body["max_tokens"] for request in small.requests]
        # At most a quarter of the window is left to the reply, once that is known.
        assert reserved[0] == 2_000 and 256 <= max(reserved[-3:]) <= 1_024
        assert not warnings(await ask(await open_at(small), shop, "And here?", "u"))
        assert 256 <= small.requests[-1].body["max_tokens"] <= 1_024  # it is known in another process, too
        elsewhere = await open_at(large)
        for n in range(3):
            assert not warnings(await ask(elsewhere, shop, f"Question {n}?", "v"))
        assert {request.body["max_tokens"] for request in large.requests} == {2_000}


async def test_a_summary_is_written_of_as_much_as_the_model_can_read() -> None:
    model = limited(1_900, "prompt is too long: 4000 tokens > 400 maximum", ["Short."])
    assert await ModelSummarizer("m", LangChainModel(model)).write("Summarise.", "word " * 2_000) == "Short."
    assert "characters left out" in model.calls[-1].messages[-1].text
    never = ScriptedModel(lambda messages: RuntimeError("prompt is too long"))
    with pytest.raises(RuntimeError, match="too long"):
        await ModelSummarizer("m", never).write("Summarise.", "word " * 2_000)


def test_an_endpoint_is_named_without_what_is_secret() -> None:
    key: Any = "k"
    at = ChatOpenAI(model="m", api_key=key, base_url="https://user:secret@Host.example:8443/v1/?key=secret")
    assert LangChainModel(at).address == "https://host.example:8443/v1"
    assert LangChainModel(ChatOpenAI(model="m", api_key=key)).address == "openai-chat"
    azure = AzureChatOpenAI(azure_endpoint="https://mine.example/", api_key=key, api_version="1")
    assert LangChainModel(azure).address == "https://mine.example"

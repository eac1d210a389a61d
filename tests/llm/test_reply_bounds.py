"""A reply is broken off where a model or its server never ends it, whatever it sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from itertools import repeat
from typing import Any

import httpx
import pytest

from longthread.llm.chat import LOOP, PLAIN, CallOptions, Chunk, ReplyBounds, ToolSpec, find_loop, reply_of
from longthread.llm.failures import ReplyTooLong, ServerFailed
from longthread.llm.http import Endpoint
from longthread.llm.models import retryable
from longthread.llm.openai import OpenAIModel
from longthread.messages.message import Message, tool_call
from longthread.testing import ScriptedModel

QUESTION = [Message("user", "How many?")]


class Endless(ScriptedModel):
    """Says one chunk again and again."""

    def __init__(self, chunk: Chunk | None, max_tokens: int | None) -> None:
        super().__init__([], max_tokens=max_tokens)
        self.chunk, self.closed = chunk, False

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), options: CallOptions = PLAIN
    ) -> AsyncGenerator[Chunk]:
        try:
            while True:
                await asyncio.sleep(0 if self.chunk else 3600)
                yield self.chunk or Chunk()
        finally:
            self.closed = True


@pytest.mark.parametrize("piece", ["blah ", "数字 "])
@pytest.mark.parametrize("kind", ["text", "thinking"])
async def test_what_never_ends_is_broken_off_manifold_beyond_the_limit(kind: str, piece: str) -> None:
    model, shown = Endless(Chunk(**{kind: piece * 100}), 1000), list[str]()

    async def tell(text: str) -> None:
        shown.append(text)

    with pytest.raises(ReplyTooLong, match=r"LLM_MAX_TOKENS is 1000.*raise LLM_MAX_TOKENS") as raised:
        await reply_of(model, QUESTION, tell=tell)
    assert model.closed
    assert not retryable(raised.value), "it would do the same again"
    if kind == "text":
        assert 4 * 1000 < len("".join(shown)) <= 32_000


async def test_the_call_s_own_limit_comes_first() -> None:
    with pytest.raises(ReplyTooLong, match="LLM_MAX_TOKENS is 900"):
        await reply_of(Endless(Chunk("x" * 100), 100_000), QUESTION, options=CallOptions(max_tokens=900))


async def test_a_whole_reply_of_the_limit_passes() -> None:
    text = "word " * 4_000
    assert (await reply_of(ScriptedModel([text], max_tokens=1000), QUESTION)).text == text


async def test_the_arguments_of_calls_count() -> None:
    call = Message("assistant", "", tool_calls=[tool_call("run_sql", {"sql": "x" * 50_000}, "c1")])
    with pytest.raises(ReplyTooLong, match="50,0"):
        await reply_of(ScriptedModel([call], max_tokens=1000), QUESTION)


async def test_a_reply_takes_so_many_seconds_whatever_comes_meanwhile() -> None:
    model = Endless(None, None)
    with pytest.raises(ReplyTooLong, match=r"longer than 0\.05 s.*LLM_REPLY_TIMEOUT"):
        await reply_of(model, QUESTION, bounds=ReplyBounds(0.05))
    assert model.closed


def endless(piece: bytes) -> Iterator[bytes]:
    return repeat(piece * 1000)


DELTA = json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]}}]})


@pytest.mark.parametrize(
    ("status", "kind", "piece"),
    [
        pytest.param(200, "text/event-stream", b": ping\n\n", id="comments"),
        pytest.param(200, "text/event-stream", b"data: x", id="a line without an end"),
        pytest.param(200, "text/event-stream", b"data: x\n", id="an event without an end"),
        pytest.param(200, "text/event-stream", f"data: {DELTA}\n\n".encode(), id="arguments"),
        pytest.param(200, "application/json", b"[", id="an object without an end"),
    ],
)
async def test_a_server_that_never_ends_is_broken_off(
    status: int, kind: str, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ReplyTooLong, match="larger than 1 MB.*LLM_MAX_REPLY_MB"):
        await reply_of(model_of(endless(piece), status, kind, monkeypatch), QUESTION)


async def test_of_an_endless_error_the_beginning_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ServerFailed, match="oops") as raised:
        await reply_of(model_of(endless(b"oops "), 500, "text/plain", monkeypatch), QUESTION)
    assert len(str(raised.value)) <= 1_000


def model_of(pieces: Iterator[bytes], status: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            await asyncio.sleep(0)
            yield piece

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers={"content-type": kind}, content=body())

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    monkeypatch.setattr(Endpoint, "_new_client", lambda self: client)
    return OpenAIModel("m", Endpoint("http://there/v1/chat/completions", most=1024 * 1024))


def nest(depth: int) -> str:
    """Queries in queries, each indented deeper: a small model wrote them up to its limit of tokens."""
    return "".join(
        f"{'    ' * n}SELECT 高中学历的平均月薪, 本科学历的平均月薪, 硕士学历的平均月薪\n{'    ' * n}FROM (\n"
        for n in range(depth)
    )


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        (f"```sql\n{nest(30)}", True),
        ("SELECT a FROM t WHERE " + "b = 1 OR " * 240, True),
        ("的" * 1000, True),
        (f"```sql\n{nest(9)}", False),
        ("SELECT a, b FROM t UNION ALL SELECT " + "NULL, " * 80, False),
        ("WITH n AS (SELECT 0" + " UNION ALL SELECT 0" * 45, False),
        ("| name | n |\n|" + "-" * 120 + "|---|", False),
        ("SELECT * FROM t WHERE id IN (" + ", ".join(map(str, range(1000, 1400))), False),
        ("| 部门 | 平均 |\n" + "".join(f"| 部门{n} | 0 |\n" for n in range(60)), False),
        ("b = 1 OR " * 60 + "c = 2", False),
    ],
)
def test_a_text_that_repeats_itself_to_its_end_is_a_loop(text: str, loops: bool) -> None:
    assert (find_loop(text) is not None) == loops


def test_one_round_of_a_loop_is_left() -> None:
    text = f"```sql\n{nest(30)}"
    assert text[: find_loop(text)].rstrip() == f"```sql\n{nest(1)}".rstrip()


async def test_a_reply_in_a_loop_is_ended_where_the_call_asks_for_it() -> None:
    model = Endless(Chunk("b = 1 OR "), 1000)
    reply = await reply_of(model, QUESTION, options=CallOptions(stops_loops=True))
    assert model.closed
    assert len(reply.text) < 2000 and reply.response_metadata == {"finish_reason": LOOP}
    thinking = Endless(Chunk("b = 1 OR ", "So. "), 1000)
    reply = await reply_of(thinking, QUESTION, options=CallOptions(stops_loops=True))
    assert reply.additional_kwargs["reasoning_content"].startswith("So. So. ")
    with pytest.raises(ReplyTooLong):
        await reply_of(Endless(Chunk("b = 1 OR "), 1000), QUESTION)

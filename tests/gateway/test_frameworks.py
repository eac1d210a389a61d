"""Frameworks through the gateway: LangChain and pydantic-ai, with their own messages and their own tool loops.

What takes seconds to import is imported by the tests: each process that collects them would do it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import Any

import openai
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from tests.gateway.conftest import Start

from longthread.testing import ProviderEmulator, ProviderRules

pytestmark = pytest.mark.one_backend

STRICT = ProviderRules(reasoning_content="deepseek", thought_signatures=True, signatures=True, binding=True)
CHAT, CLAUDE = "deepseek-v4", "claude-opus-5-5"


@pytest.fixture
async def clients() -> AsyncIterator[list[Any]]:
    """Clients that close with the test, on its loop."""
    opened: list[Any] = []
    yield opened
    for each in opened:
        await each.close()


@tool
def clock(zone: str) -> str:
    """The time."""
    return f"12:00 {zone}"


async def langchain_loop(model: BaseChatModel, messages: list[BaseMessage], *, streams: bool) -> None:
    """Ask until no tool is called."""
    bound = model.bind_tools([clock])
    while True:
        if streams:
            whole = AIMessageChunk("")
            async for chunk in bound.astream(messages):
                whole += chunk
            reply: AIMessage = whole
        else:
            reply = await bound.ainvoke(messages)
        messages.append(reply)
        if not reply.tool_calls:
            return
        messages += [ToolMessage(clock.invoke(call["args"]), tool_call_id=call["id"]) for call in reply.tool_calls]


def please(zone: str) -> HumanMessage:
    return HumanMessage(f'use the tool clock with {{"zone": "{zone}"}}')


@pytest.mark.parametrize("streams", [False, True])
async def test_langchain_drops_reasoning_and_signatures_and_gets_its_answers(
    start: Start, clients: list[Any], streams: bool
) -> None:
    with ProviderEmulator(None, rules=STRICT) as provider:

        def model(url: str) -> ChatOpenAI:
            made = ChatOpenAI(model=CHAT, base_url=f"{url}/v1", api_key="k", max_retries=0)
            clients.append(made.root_async_client)
            return made

        with pytest.raises(openai.BadRequestError):
            await langchain_loop(model(provider.anthropic_url), [please("direct")], streams=streams)
        through = model(await start(provider))
        messages: list[BaseMessage] = []
        for zone in ("UTC", "时区"):
            messages.append(please(zone))
            await langchain_loop(through, messages, streams=streams)
        assert messages[-1].text == "The tool said: 12:00 时区"
        sent = [each for each in provider.requests[-1].body["messages"] if each["role"] == "assistant"]
        assert all(each["reasoning_content"] for each in sent)
        assert [bool(call["extra_content"]) for each in sent for call in each.get("tool_calls", ())] == [True, True]


async def test_langchain_speaks_with_claude(start: Start, clients: list[Any]) -> None:
    """It sends all thinking back, and is left alone."""
    from langchain_anthropic import ChatAnthropic

    with ProviderEmulator(None, rules=STRICT) as provider:
        given: Any = {"max_tokens": 2000, "max_retries": 0, "thinking": {"type": "adaptive"}}
        made = ChatAnthropic(model=CLAUDE, base_url=await start(provider), api_key="k", **given)
        messages: list[BaseMessage] = []
        for zone in ("UTC", "时区"):
            messages.append(please(zone))
            await langchain_loop(made, messages, streams=False)
        clients.append(made._async_client)
        assert messages[-1].text == "The tool said: 12:00 时区"


@pytest.mark.parametrize("sends_back", [False, True])
async def test_pydantic_ai_speaks_chat_completions(start: Start, clients: list[Any], sends_back: bool) -> None:
    """It sends all back, unless its profile of the model says otherwise."""
    from pydantic_ai import Agent
    from pydantic_ai.exceptions import ModelHTTPError
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    rules = ProviderRules(reasoning_content="deepseek", thought_signatures=True)
    with ProviderEmulator(None, rules=rules) as provider:

        def agent(url: str) -> Agent:
            client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
            clients.append(client)
            profile = None if sends_back else OpenAIModelProfile(openai_chat_send_back_thinking_parts=False)
            model = OpenAIChatModel(CHAT, provider=OpenAIProvider(openai_client=client), profile=profile)
            return Agent(model, tools=[clock.func])

        with nullcontext() if sends_back else pytest.raises(ModelHTTPError):
            await agent(provider.anthropic_url).run(please("direct").text)
        through = agent(await start(provider))
        first = await through.run(please("UTC").text)
        async with through.run_stream(please("时区").text, message_history=first.all_messages()) as second:
            assert await second.get_output() == "The tool said: 12:00 时区"


async def test_pydantic_ai_speaks_with_claude(start: Start, clients: list[Any]) -> None:
    import anthropic
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    with ProviderEmulator(None, rules=STRICT) as provider:
        client = anthropic.AsyncAnthropic(base_url=await start(provider), api_key="k", max_retries=0)
        clients.append(client)
        model = AnthropicModel(CLAUDE, provider=AnthropicProvider(anthropic_client=client))
        settings: Any = {"anthropic_thinking": {"type": "adaptive"}, "max_tokens": 3000}
        agent = Agent(model, tools=[clock.func], model_settings=settings)
        first = await agent.run(please("UTC").text)
        second = await agent.run(please("时区").text, message_history=first.all_messages())
        assert second.output == "The tool said: 12:00 时区"
        sent = [block for each in provider.requests[-1].body["messages"] for block in each["content"]]
        assert sum("signature" in block for block in sent) == 3

"""The demo model as a chat model: native tool calls when there are tools, JSON text when not."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

from longthread.context.system_prompt import KNOWLEDGE
from longthread.llm.chat import PLAIN, CallOptions, Chunk, ToolSpec
from longthread.messages.message import Message, tool_call
from longthread.settings import Settings
from longthread_demo.brain import NextStep, decide
from longthread_demo.talk import DemoCall, Utterance

_OBSERVATION = "Observation:"
_LIST_TABLES = "list_tables"
_CJK = re.compile(r"[\u3400-\u9fff]")
_PIECE = re.compile(r"\S+\s*|\s+")


class DemoModel:
    """A deterministic, rule-based model: no network, no key, no AI. It answers questions about a database.

    It has no context window: it reads the whole conversation, however long.
    """

    name = address = "demo"
    window = 1_000_000
    tool_calling = True
    max_tokens = None

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), options: CallOptions = PLAIN
    ) -> AsyncGenerator[Chunk]:
        """One reply, see `ChatModel`. The options change nothing: the rules choose."""
        # On a thread: a question on a large schema takes longer than an event loop may stand still.
        message = await asyncio.to_thread(reply_to, messages, tools)
        for piece in _pieces(message.text):
            yield Chunk(piece)
        yield Chunk(message=message)

    async def close(self) -> None:
        """It has no connections."""


def demo_model(name: str, settings: Settings) -> DemoModel:
    """Return the demo model, which has no settings."""
    return DemoModel()


def reply_to(messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
    """What the demo model says."""
    talk = conversation_of(messages)
    decision = decide(talk) if _may_ask(talk, tools) else NextStep("", answer=_without_database(talk))
    digest = _digest(talk)
    usage = _usage(messages, decision)
    facts = {"model_name": "demo", "finish_reason": "tool_calls" if decision.calls and tools else "stop"}
    if not tools:
        return Message("assistant", _as_json(decision), usage_metadata=usage, response_metadata=facts)
    calls = [
        tool_call(call.name, dict(call.args), f"demo_{len(messages)}_{at}_{digest}")
        for at, call in enumerate(decision.calls)
    ]
    text = decision.thought if calls else decision.answer
    return Message("assistant", text, tool_calls=calls, usage_metadata=usage, response_metadata=facts)


def _may_ask(talk: Sequence[Utterance], tools: Sequence[ToolSpec]) -> bool:
    """Whether there is a database to ask: by a tool, or as the prompt tells."""
    if tools:
        return any(tool.name == _LIST_TABLES for tool in tools)
    prompts = [message.text for message in talk if message.role == "system"]
    return not prompts or any(_LIST_TABLES in text or KNOWLEDGE in text for text in prompts)


def _without_database(talk: Sequence[Utterance]) -> str:
    asked = next((message.text for message in reversed(talk) if message.role == "user"), "")
    return _NO_DATABASE["zh" if _CJK.search(asked) else "en"]


_NO_DATABASE = {
    "en": "I am the demo model: rules, and no AI. All that I can do is ask a database, and this agent has none. "
    "Configure a model with LONGTHREAD_MODEL to talk with it.",
    "zh": "我是演示模型：只有规则，没有 AI。我只会查询数据库，而这个智能体没有数据库。"
    "请用 LONGTHREAD_MODEL 配置一个模型。",
}


def _as_json(decision: NextStep) -> str:
    if decision.calls:
        call = decision.calls[0]  # the JSON protocol has room for one; the next reply asks for the next
        value: dict[str, Any] = {"thought": decision.thought, "action": call.name, "args": dict(call.args)}
    else:
        value = {"thought": decision.thought, "finish": decision.answer}
    return json.dumps(value, ensure_ascii=False)


def conversation_of(messages: Sequence[Message]) -> list[Utterance]:
    """Return messages as the demo model reads them, in both protocols. Where a result is shown as text, it reads the
    data."""
    result: list[Utterance] = []
    for number, message in enumerate(messages):
        text = message.text
        if message.role == "system":
            result.append(Utterance("system", text))
        elif message.role == "tool":
            result.append(Utterance("tool", message.artifact or text, call_id=message.tool_call_id or ""))
        elif message.role == "assistant":
            result.append(_assistant(message, text, number))
        else:
            kind = message.kind
            if kind == "digest":  # what stands for other messages asks nothing
                result += [Utterance("system", text)] if KNOWLEDGE in text else []
                continue
            observed = kind == "observation" or text.startswith(_OBSERVATION)
            data = message.artifact or text.removeprefix(_OBSERVATION).strip()
            result.append(Utterance("tool", data) if observed else Utterance("user", text))
    return result


def _assistant(message: Message, text: str, number: int) -> Utterance:
    if message.tool_calls:
        made = tuple(
            DemoCall(call["name"], call["args"], call["id"] or f"call-{number}") for call in message.tool_calls
        )
        return Utterance("assistant", text, calls=made)
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict) and isinstance(value.get("action"), str):
            args = value.get("args")
            call = DemoCall(value["action"], args if isinstance(args, dict) else {}, f"call-{number}")
            return Utterance("assistant", text, calls=(call,))
        if isinstance(value, dict) and "finish" in value:
            return Utterance("assistant", str(value["finish"]))
    return Utterance("assistant", text)


def _digest(talk: Sequence[Utterance]) -> str:
    """Differs with every state of the conversation, so that a call's id is never used twice in it."""
    state = [(message.role, message.text, message.call_id, [call.id for call in message.calls]) for message in talk]
    return hashlib.sha256(json.dumps(state, ensure_ascii=False).encode()).hexdigest()[:12]


def _usage(messages: Sequence[Message], decision: NextStep) -> dict[str, Any]:
    """An estimate: one token a Chinese character, one for four others."""
    given = sum(_tokens(message.text) + 4 for message in messages)
    made = _tokens(decision.answer or decision.thought)
    made += sum(_tokens(json.dumps(dict(call.args), ensure_ascii=False)) + 8 for call in decision.calls)
    return {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}


def _tokens(text: str) -> int:
    chinese = len(_CJK.findall(text))
    return chinese + (len(text) - chinese + 3) // 4


def _pieces(text: str) -> Iterator[str]:
    """A text in pieces of about 24 characters, cut at spaces or between Chinese characters."""
    piece = ""
    for word in _PIECE.findall(text):
        while len(word) > 24:
            yield piece + word[: 24 - len(piece) % 24]
            word, piece = word[24 - len(piece) % 24 :], ""
        piece += word
        if len(piece) >= 24:
            yield piece
            piece = ""
    if piece:
        yield piece

"""Texts that a chat model of the application's writes in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from longthread.llm.failures import asked_in_room

_LOOP_SECONDS = 0.5
"""How often it is looked whether the loop on which the model was asked is still there."""


class ModelWriter:
    """Writes texts with a chat model of the application's.

    The model's connections belong to the loop that used them first, so it is called there. When that loop has ended
    or is ending, as with one `asyncio.run` for each turn, it is called on a thread without one.
    """

    def __init__(
        self,
        model: BaseChatModel,
        loop: asyncio.AbstractEventLoop | None,
        *,
        on_reply: Callable[[BaseMessage], None] | None = None,
    ) -> None:
        self.name = model._llm_type
        self.topics_only = False
        self._model = model
        self._loop = loop
        self._on_reply = on_reply

    async def write(self, instructions: str, text: str) -> str:
        """Return the model's reply to instructions and text, cut to what its window holds."""
        return await asked_in_room(lambda shown: self._asked([SystemMessage(instructions), HumanMessage(shown)]), text)

    async def _asked(self, messages: list[BaseMessage]) -> str:
        reply: BaseMessage | None = None
        if self._loop is None or self._loop is asyncio.get_running_loop():
            reply = await self._model.ainvoke(messages)
        elif self._loop.is_running():
            reply = await self._asked_on(self._loop, messages)
        if reply is None:
            reply = await asyncio.to_thread(self._model.invoke, messages)
        if self._on_reply is not None:
            self._on_reply(reply)
        return str(reply.text)

    async def _asked_on(self, loop: asyncio.AbstractEventLoop, messages: list[BaseMessage]) -> BaseMessage | None:
        """Return the model's reply; None when the loop ends first."""
        coroutine = self._model.ainvoke(messages)
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError:  # it was closed in between
            coroutine.close()
            return None
        waiting = asyncio.wrap_future(future)
        try:
            # A loop that stops does not report work that it never began.
            while not (await asyncio.wait({waiting}, timeout=_LOOP_SECONDS))[0]:
                if not loop.is_running():
                    break
        finally:
            if not waiting.done():
                waiting.cancel()
        if not waiting.done() or waiting.cancelled():
            if loop.is_closed():
                coroutine.close()
            return None
        if waiting.exception() is not None and _is_ending(loop):
            return None
        return waiting.result()


def _is_ending(loop: asyncio.AbstractEventLoop) -> bool:
    """Tell whether a loop that may still run has shut down its threads, so that a model may fail on it."""
    try:
        loop.run_in_executor(None, bool)  # it does nothing
    except RuntimeError:
        return True
    return False

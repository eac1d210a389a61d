"""Takes in a reply as it is streamed: its text is told, and the arguments of its calls are kept byte for byte.

LangChain completes half a JSON while it puts a streamed message together: a call that was cut off in the middle would
look like a whole one, with the beginning of its arguments, and be run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk


class CallRecorder(AsyncCallbackHandler):
    """Sees every piece of the current reply, passes its text on to `tell`, and says by `end` that it is whole. `reset`
    it before each attempt."""

    run_inline = True

    def __init__(
        self, tell: Callable[[str], Awaitable[None]] | None = None, end: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._tell = tell
        self._end = end
        self._args: dict[Any, str] = {}
        self._names: dict[Any, str] = {}

    def reset(self) -> None:
        """Forget the last reply."""
        self._args.clear()
        self._names.clear()

    async def on_llm_new_token(
        self, token: Any, *, chunk: GenerationChunk | ChatGenerationChunk | None = None, **kwargs: Any
    ) -> None:
        """Take in one piece."""
        message = chunk.message if isinstance(chunk, ChatGenerationChunk) else None
        if not isinstance(message, AIMessageChunk):
            return
        for piece in message.tool_call_chunks:
            key = piece["index"] if piece["index"] is not None else piece["id"]
            self._args[key] = self._args.get(key, "") + (piece["args"] or "")
            self._names[key] = self._names.get(key, "") + (piece["name"] or "")
        if self._tell is not None and (text := str(message.text)):
            await self._tell(text)

    async def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        """The reply is whole."""
        if self._end is not None:
            await self._end()

    def written(self) -> list[tuple[str, str]]:
        """Name and arguments of each call of the current reply, as they came; empty when it was not streamed."""
        return [(self._names[key], args) for key, args in self._args.items()]

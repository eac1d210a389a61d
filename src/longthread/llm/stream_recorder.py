"""Takes in a reply as it is streamed: its text is told, and the arguments of its calls are kept byte for byte.

LangChain completes half a JSON while it puts a streamed message together: a call that was cut off in the middle would
look like a whole one, with the beginning of its arguments, and be run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.messages import AIMessageChunk, BaseMessage


class CallRecorder:
    """Sees every piece of the current reply, passes its text on to `tell`, and says by `end` that it is whole. `reset`
    it before each attempt."""

    def __init__(self, tell: Callable[[str], Awaitable[None]], ended: Callable[[], Awaitable[None]]) -> None:
        self._tell = tell
        self._ended = ended
        self._args: dict[Any, str] = {}
        self._names: dict[Any, str] = {}

    def reset(self) -> None:
        """Forget the last reply."""
        self._args.clear()
        self._names.clear()

    async def take(self, message: BaseMessage) -> None:
        """Take in one piece. A reply that is not streamed comes as a whole message, and is no piece."""
        if not isinstance(message, AIMessageChunk):
            return
        for piece in message.tool_call_chunks:
            key = piece["index"] if piece["index"] is not None else piece["id"]
            self._args[key] = self._args.get(key, "") + (piece["args"] or "")
            self._names[key] = self._names.get(key, "") + (piece["name"] or "")
        if text := str(message.text):
            await self._tell(text)

    async def end(self) -> None:
        """The reply is whole."""
        await self._ended()

    def written(self) -> list[tuple[str, str]]:
        """Name and arguments of each call of the current reply, as they came; empty when it was not streamed."""
        return [(self._names[key], args) for key, args in self._args.items()]

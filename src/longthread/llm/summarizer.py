"""A run's chat model as a writer of summaries."""

from __future__ import annotations

from longthread.llm.chat import CallOptions, ChatModel, reply_of
from longthread.llm.models import DEMO
from longthread.llm.overflow import asked_in_room
from longthread.memory.summary.summaries import Summarizer
from longthread.messages.message import Message
from longthread.model.run import Protocol


class ModelSummarizer:
    """Writes with a chat model. A reply has at most `max_tokens` if given, else the model's own limit."""

    def __init__(
        self, name: str, model: ChatModel, *, topics_only: bool = False, max_tokens: int | None = None
    ) -> None:
        self.name = name
        self.topics_only = topics_only
        self._model = model
        self._options = CallOptions(max_tokens=max_tokens)

    async def write(self, instructions: str, text: str) -> str:
        """Return the model's reply to the text, cut if it is too long for it. Raises whatever the provider raises."""

        async def ask(shown: str) -> str:
            messages = [Message("system", instructions), Message("user", shown)]
            return (await reply_of(self._model, messages, options=self._options)).text

        return await asked_in_room(ask, text)


def summarizer_of(name: str, model: ChatModel, protocol: Protocol) -> Summarizer | None:
    """Return the model as a summarizer; None for the demo model, which only answers questions.

    A small model, which speaks *sql*, only names topics: it wrote of a count of all customers that they are in Germany.
    The digest has each query with its rows."""
    return None if name == DEMO else ModelSummarizer(name, model, topics_only=protocol == "sql")

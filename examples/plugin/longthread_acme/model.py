"""A provider of models: `--model acme:NAME`."""

from collections.abc import AsyncIterator

from longthread.llm.chat import Chunk
from longthread.messages.message import Message

NAMES = {"echo"}


class AcmeModel:
    """Runs the SQL that a question is, and says what came back.

    Put your provider's request into `stream`: `messages` go up, with `tools` (each has a name, a description and
    parameters), and its reply comes down in pieces.
    """

    address = ""  # your endpoint: what is learned of a model is kept under its address and name
    window = 32_000
    tool_calling = True
    max_tokens = None

    def __init__(self, name: str, settings) -> None:
        self.name = name.removeprefix("acme:")
        if self.name not in NAMES:
            raise ValueError(f"Acme has {', '.join(sorted(NAMES))}.")  # whatever you raise here is told as the reason

    async def stream(self, messages, tools=(), options=None) -> AsyncIterator[Chunk]:
        results = [message for message in messages if message.role == "tool"]
        if results:
            text = f"The database says: {results[-1].text}"
            for word in text.split(" "):
                yield Chunk(text=f"{word} ")  # shown at once
            yield Chunk(message=Message("assistant", f"{text} "))  # the last piece holds the whole reply
            return
        question = next(message.text for message in messages if message.role == "user")
        call = {"name": "run_sql", "args": {"sql": question}, "id": "acme_1", "type": "tool_call"}
        yield Chunk(message=Message("assistant", "", tool_calls=[call]))

    async def close(self) -> None:
        """Close the connections, if there are any."""

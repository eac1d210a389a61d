"""A bot for a chat like Slack: each thread of a channel is a conversation, with steps while it works and follow-ups.

    python examples/slack_bot.py

`Terminal` stands for the chat: put your client's `chat_postMessage` in its place, and call `on_message` for its events.
The demo model answers; for a real one, set LONGTHREAD_MODEL and its key.
"""

import asyncio
import tempfile
from pathlib import Path

from longthread import Analyst, Settings, errors


class Terminal:
    """The chat, on standard output."""

    async def post(self, channel: str, thread: str, text: str) -> None:
        print(f"#{channel} bot: {text.splitlines()[0]}")


class Bot:
    """Answers messages. It stores nothing itself, so it may be restarted or run twice."""

    def __init__(self, analyst: Analyst, chat: Terminal) -> None:
        self.analyst, self.chat = analyst, chat

    async def on_message(self, channel: str, thread: str, text: str) -> None:
        """Answer in the thread. The members of a channel share its conversations: the channel is the user."""

        async def say(text: str) -> None:
            await self.chat.post(channel, thread, text)

        try:
            asked = await self.analyst.ask(text, user_id=channel, thread_id=f"{channel}-{thread}")
        except errors.RunInProgress:
            return await say("One moment, I still work on the question before.")
        except errors.LongthreadError as error:
            return await say(f"Sorry: {error}")
        async for event in asked.events():
            if event.type == "step_started" and event.data["action"] == "run_sql":
                await say("I ask the database …")
        match event.type:
            case "finished":
                return await say(event.data["answer"])
            case "paused":
                return await say(f"{event.data['summary']} Say “continue” to go on.")
            case "waiting":
                return await say(f"Somebody has to decide: `longthread approve {asked.thread_id}`")
            case _:
                return await say(event.data["error"]["message"])


async def main(folder: Path) -> None:
    async with Analyst.open(Settings.load(source="demo", database=str(folder / "conversations.db"))) as analyst:
        bot = Bot(analyst, Terminal())
        await bot.on_message("space", "1700", "How many rockets are there?")
        await bot.on_message("finance", "1701", "How many launches failed?")  # another channel, another conversation
        await bot.on_message("space", "1700", "only from China")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary)))

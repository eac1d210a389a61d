"""Let a person decide before an agent's tool acts: approve it, change its arguments, or reject it.

    python examples/approval.py

The run needs no process while it waits: here a second `Analyst`, as another process would open one, decides. A scripted
model stands for a real one. For a real model, leave out `models` and give `Settings.load` its name.
"""

import asyncio
import tempfile
from pathlib import Path

from longthread import Analyst, Catalog, Settings
from longthread.testing import ScriptedModel

PARAMETERS = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
CLERK = [
    {
        "kind": "tool",
        "name": "send_mail",
        "type": "code",  # it sends nothing: it stands for an `api` tool of your mail service
        "schema": {"name": "send_mail", "description": "Sends a mail.", "parameters": PARAMETERS},
        "implementation": {"code": "def execute(to):\n    return 'sent to ' + to", "approve": True},
    },
    {"kind": "skill", "name": "mail", "tools": ["send_mail"]},
    {"kind": "agent", "name": "clerk", "system_prompt": "You write mails.", "skills": ["mail"]},
]
MODEL = ScriptedModel(
    [
        [{"action": "send_mail", "args": {"to": "ada"}}, {"action": "send_mail", "args": {"to": "everybody"}}],
        {"finish": "Ada's mail is sent, and that to everybody is not."},
    ]
)


async def main(folder: Path) -> None:
    settings = Settings.load(model="test:scripted", database=str(folder / "conversations.db"))
    async with Analyst.open(settings, models=lambda name, settings: MODEL) as analyst:
        await Catalog(analyst.store).apply(CLERK)
        asked = await analyst.ask("Write to Ada, and to everybody.", user_id="grace", agent="clerk")
        print((await asked.wait()).type)

    async with Analyst.open(settings, models=lambda name, settings: MODEL) as analyst:
        first, second = await analyst.approvals.pending(asked.thread_id, user_id="grace")
        print(f"{first.tool} {first.args}; {second.tool} {second.args}")
        edited = {"name": "send_mail", "args": {"to": "ada@example.org"}}
        decisions = {
            first.call_id: {"type": "edit", "edited_action": edited},
            second.call_id: {"type": "reject", "message": "Not to everybody."},
        }
        goes_on = await analyst.approvals.decide(asked.thread_id, decisions, user_id="grace")
        async for event in goes_on.events():
            if event.type == "step_finished":
                print(event.data["observation"])
        print(event.data["answer"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary)))

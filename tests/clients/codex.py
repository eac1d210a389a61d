"""Codex: OpenAI's Responses."""

from __future__ import annotations

import json
from pathlib import Path

from tests.clients.client import Command, Ended, Turn
from tests.clients.obedient import call

_SETTINGS = """\
model = "any-model"
model_provider = "longthread"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.longthread]
name = "Longthread"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
supports_websockets = {websockets}

[analytics]
enabled = false

[features]
apps = false
plugins = false
"""


class Codex:
    program = "codex"

    def __init__(self, *, websockets: bool = False) -> None:
        self._websockets = websockets

    def prepare(self, home: Path, url: str) -> None:
        settings = _SETTINGS.format(url=url, websockets=str(self._websockets).lower())
        (home / ".codex").mkdir()
        (home / ".codex" / "config.toml").write_text(settings, "utf-8")

    def command(self, turn: Turn, session: str, url: str) -> Command:
        how = {"again": ["resume", "--last"], "fork": ["fork", session]}
        begins = [] if turn.how == "new" else how.get(turn.how, ["resume", session])
        # It has no command for it outside its screen: a small limit does the same.
        limit = ["-c", "model_auto_compact_token_limit=1000"] if turn.how == "compact" else []
        options = ["--skip-git-repo-check", "--json", *limit]
        return Command(["exec", *begins[:1], *options, *begins[1:], turn.prompt], environment={"OPENAI_API_KEY": "any"})

    def ended(self, output: str) -> Ended:
        events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        [session] = [each["thread_id"] for each in events if each["type"] == "thread.started"]
        items = [each["item"] for each in events if each["type"] == "item.completed"]
        errors = [str(each) for each in events if each["type"] in ("error", "turn.failed")]
        return Ended(session, [each["text"] for each in items if each["type"] == "agent_message"], "\n".join(errors))

    def shell(self, command: str) -> str:
        return call("exec_command", cmd=command)

    def delegate(self, prompt: str) -> str:
        wait = call("wait_agent", targets=["$agent"], timeout_ms=60_000)
        return f"{call('spawn_agent', message=prompt)} {wait}"

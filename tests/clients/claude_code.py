"""Claude Code: Anthropic's Messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.clients.client import Command, Ended, Turn
from tests.clients.obedient import call


class ClaudeCode:
    program = "claude"

    def prepare(self, home: Path, url: str) -> None:
        """It needs no settings."""

    def command(self, turn: Turn, session: str, url: str) -> Command:
        how = {
            "again": ["--continue"],
            "resume": ["--resume", session],
            "compact": ["--resume", session],
            "fork": ["--resume", session, "--fork-session"],
        }.get(turn.how, [])
        prompts = ["/compact" if turn.how == "compact" else turn.prompt, *turn.then]
        formats = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        arguments = ["--print", *formats, "--allowedTools", "Bash,Agent", *how]
        return Command(arguments, "".join(map(_message, prompts)), self._environment(url))

    def _environment(self, url: str) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "any",
            "CLAUDE_CODE_GATEWAY_HINT_HEADERS": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def ended(self, output: str) -> Ended:
        results = [each for each in map(json.loads, output.splitlines()) if each["type"] == "result"]
        errors = [str(each) for each in results if each["is_error"]]
        return Ended(results[-1]["session_id"], [each.get("result", "") for each in results], "\n".join(errors))

    def shell(self, command: str) -> str:
        return call("Bash", command=command)

    def delegate(self, prompt: str) -> str:
        return call("Agent", description="look", prompt=prompt, subagent_type="general-purpose")


def _message(prompt: str) -> str:
    said: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": prompt}}
    return json.dumps(said) + "\n"

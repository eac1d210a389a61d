"""Qwen Code: all three dialects, by its kind of authentication."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from tests.clients.client import Command, Ended, Turn
from tests.clients.obedient import call


class QwenCode:
    program = "qwen"

    def __init__(self, dialect: Literal["openai", "openai-responses", "anthropic"]) -> None:
        self._dialect = dialect

    def prepare(self, home: Path, url: str) -> None:
        settings: dict[str, Any] = {
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
        }
        (home / ".qwen").mkdir()
        (home / ".qwen" / "settings.json").write_text(json.dumps(settings), "utf-8")

    def command(self, turn: Turn, session: str, url: str) -> Command:
        how = {
            "again": ["--continue"],
            "resume": ["--resume", session],
            "compact": ["--resume", session],
            "fork": ["--resume", session, "--fork-session"],
        }.get(turn.how, [])
        prompt = "/compress" if turn.how == "compact" else turn.prompt
        arguments = ["--auth-type", self._dialect, "--yolo", "--output-format", "json", *how, prompt]
        return Command(arguments, environment=self._environment(url))

    def _environment(self, url: str) -> dict[str, str]:
        return {
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "any",
            "OPENAI_MODEL": "any-model",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "any",
            "ANTHROPIC_MODEL": "any-model",
        }

    def ended(self, output: str) -> Ended:
        events = json.loads(output)
        errors = [str(each) for each in events if each.get("is_error")]
        blocks = [block for each in events if each["type"] == "assistant" for block in each["message"]["content"]]
        said = [block["text"] for block in blocks if block["type"] == "text"]
        return Ended(events[-1]["session_id"], said, "\n".join(errors))

    def shell(self, command: str) -> str:
        return call("run_shell_command", command=command, is_background=False)

    def delegate(self, prompt: str) -> str:
        return call("agent", description="look", prompt=prompt, subagent_type="general-purpose")
